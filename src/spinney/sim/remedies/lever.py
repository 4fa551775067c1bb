"""A lever: one kind of change in many strengths, from the smallest to all of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from spinney.gangs.tree import GangKey
from spinney.sim.remedies.change import RemedyPrice, RemedyStep
from spinney.sim.snapshots.snapshot import ClusterSnapshot

T = TypeVar("T")
Chosen = tuple[int, ...]
"""Which elements of a lever are taken, by position."""
SHOWN: Final = 4
"""How many elements are named; the others are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lever(Generic[T]):
    """Elements that can be changed, and what comes of it when some of them are picked.

    ``ordered`` levers are taken from the first on (three more nodes, a limit two higher); of the others any set may be
    taken. The cheapest elements come first.
    """

    name: str
    elements: Sequence[T]
    apply: Callable[[ClusterSnapshot, Sequence[T]], ClusterSnapshot]
    """Return the cluster with the picked elements changed."""
    text: Callable[[Sequence[T]], str]
    """Return what to do, as an imperative."""
    command: Callable[[Sequence[T]], str] = lambda _: ""
    """Return the command that does it, where there is one."""
    price: Callable[[Sequence[T]], RemedyPrice] = lambda _: RemedyPrice()
    restarts: Callable[[Sequence[T]], Collection[GangKey]] = lambda _: ()
    """Return the other gangs that give up their nodes and have to find new ones: all of their pods."""
    ordered: bool = False
    likely: int | None = None
    """How many elements are probably enough, by arithmetic; the search begins there and does not rely on it."""
    waits: bool = False
    """Time makes the change, and nobody has to."""
    refine: "Callable[[Sequence[T]], list[Lever[T]]] | None" = None
    """Return a lever for each picked element over how much it is changed, where that can be less than all."""

    @property
    def everything(self) -> Chosen:
        return tuple(range(len(self.elements)))

    @property
    def guess(self) -> Chosen | None:
        """Return the elements that are probably enough; ``None`` without an idea, or if it is all of them."""
        return tuple(range(self.likely)) if self.likely is not None and 0 < self.likely < len(self.elements) else None


class Pull(NamedTuple):
    """A lever, and how far it is pulled."""

    lever: Lever[Any]
    chosen: Chosen

    @property
    def picked(self) -> list[Any]:
        """Return the elements that are changed."""
        return [self.lever.elements[each] for each in self.chosen]

    @property
    def step(self) -> RemedyStep:
        """Return what to do, with the command that does it where there is one."""
        lever, picked = self.lever, self.picked
        return RemedyStep(lever=lever.name, text=lever.text(picked), command=lever.command(picked))
