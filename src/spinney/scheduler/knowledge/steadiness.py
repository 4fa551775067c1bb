"""Whether an order that a function gave still holds.

A function that is understood (:mod:`~spinney.scheduler.knowledge.reaching`) orders things as it did before as long as
the data it reaches is the same, and what it reads of them never changes. Any other may order them anew each time.
"""

from collections.abc import Callable, Sequence
from typing import Any

from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.knowledge.facts import PodFact
from spinney.scheduler.knowledge.reaching import reach_of
from spinney.scheduler.knowledge.recording import JobView, TaskView


class Watch:
    """Tells whether anything that may change was read. Mutable."""

    __slots__ = ("moves",)

    def __init__(self) -> None:
        self.moves = False

    def pod(self, fact: PodFact) -> None:
        """A fact about a pod or its job never changes."""


View = Callable[[Any, Watch], Any]


def task_view(task: PodInfo, watch: Watch) -> TaskView:
    """Return a view of a task."""
    return TaskView(task, JobView(task.job, watch), watch)


class Steady:
    """A function that orders things, asked so that it is known whether its order holds. Mutable."""

    def __init__(self, fn: Callable[..., Any], view: View, *, listens: bool) -> None:
        self._fn = fn
        self.__wrapped__ = fn
        self.__qualname__ = getattr(fn, "__qualname__", type(fn).__qualname__)
        self._view = view
        self._watch = Watch()
        self._reach = None if listens else reach_of(fn)
        self._state = self._reach.state() if self._reach is not None else None

    def __call__(self, *things: Any) -> Any:
        if self._reach is not None and not self._watch.moves:
            answer = self._fn(*[self._view(each, self._watch) for each in things])
            if not self._watch.moves:
                return answer
        return self._fn(*things)

    def holds(self) -> bool:
        """Tell whether the order has been the same since this was last asked, as far as can be known."""
        if self._reach is None or self._watch.moves:
            return False
        before, self._state = self._state, self._reach.state()
        return self._state is not None and self._state == before


class Version:
    """A number that stands for an order: while it is the same, the order is. Mutable."""

    def __init__(self, orders: Sequence[Steady]) -> None:
        self._orders = orders
        self._number = 0

    def number(self) -> int:
        """Return the number of the order as it is now."""
        held = [order.holds() for order in self._orders]
        self._number += not all(held)
        return self._number
