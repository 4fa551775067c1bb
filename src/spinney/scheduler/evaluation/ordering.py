"""Orders made of what several plugins say: the first that tells two things apart decides.

An order is a sort key. Where every plugin gave a key, it is their tuple, computed once; where some gave a comparison,
it compares on demand. A plugin that raises counts as saying *equal*. Time is measured per plugin.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cmp_to_key
from itertools import islice
from operator import lt
from typing import Any, Final, Generic, TypeVar

from msgspec.structs import replace

from spinney.runtime.faults import raised
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.extension_points import Order
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.knowledge.steadiness import Steady, Version, View

T = TypeVar("T")
Compare = Callable[[T, T], int]


class _Equal:
    """What a key that could not be had is replaced by: it compares equal to anything."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __lt__


_EQUAL: Final = _Equal()


class _Keys:
    """The keys of one thing in the order of plugins. Two that do not compare count as equal, and the next decides."""

    __slots__ = ("_incomparable", "values")

    def __init__(self, values: tuple[Any, ...], incomparable: Callable[[int, BaseException], None]) -> None:
        self.values = values
        self._incomparable = incomparable

    def __lt__(self, other: "_Keys") -> bool:
        try:
            return self.values < other.values
        except raised():  # values are made by plugins
            return self._is_less(other)

    def __gt__(self, other: "_Keys") -> bool:
        return other < self

    def _is_less(self, other: "_Keys") -> bool:
        for place, (left, right) in enumerate(zip(self.values, other.values, strict=True)):
            try:
                if left < right or right < left:
                    return bool(left < right)
            except raised() as error:  # which of them it was is told
                self._incomparable(place, error)
        return False


class Ordering(Generic[T]):
    """The orders of one kind (``hook``) that plugins have registered, asked in turn."""

    def __init__(
        self,
        orders: Sequence[Order[Compare[T]]],
        hook: str,
        timings: Timings,
        failures: Failures,
        *,
        view: View,
        listeners: frozenset[str],
    ) -> None:
        self._hook = hook
        self._timings = timings
        self._failures = failures
        self._by_keys = all(order.compare is None for order in orders)
        watched: list[Steady] = []

        def watch(order: Order[Compare[T]]) -> Order[Compare[T]]:
            if order.alike or order.labels is not None:
                return order
            steady = Steady(order.fn, view, listens=order.plugin in listeners)
            watched.append(steady)
            return replace(order, key=steady) if order.compare is None else replace(order, compare=steady)

        self._orders = [watch(order) for order in orders]
        read = [order.labels for order in orders if order.labels is not None]
        self._labels_read = frozenset[str]().union(*read) if self._by_keys and len(read) == len(orders) else None
        """All labels that orders look at; ``None`` if one of them looks at anything else."""
        self.version = Version(watched)
        """The number of the order as it is: a kept order holds while it is the same."""
        self.is_fixed = not watched
        """Whether the order is promised to stay as it is."""

    def key(self, last: Callable[[T], Any]) -> Callable[[T], Any]:
        """Return a sort key that asks the orders and falls back to the key ``last``."""
        if not self._orders:
            return last
        if self._by_keys:
            keys = [self._measured_key(order) for order in self._orders]
            return lambda item: _Keys((*[key(item) for key in keys], last(item)), self._incomparable)
        compares = [self._comparing(order) for order in self._orders]

        def compare(left: T, right: T) -> int:
            for each in compares:
                found = each(left, right)
                if found:
                    return found
            return three_way(last(left), last(right))

        return cmp_to_key(compare)

    def keys(self, items: Sequence[T], last: Callable[[T], Any]) -> Sequence[Any]:
        """Return what :meth:`key` gives of each item: in columns, where all orders promise to treat alike what is."""
        if not self._orders or not self._by_keys or not all(order.alike for order in self._orders):
            return list(map(self.key(last), items))
        columns = [self._column(order, items) for order in self._orders]
        incomparable = self._incomparable
        return [_Keys(values, incomparable) for values in zip(*columns, map(last, items), strict=True)]

    def _column(self, order: Order[Compare[T]], items: Sequence[T]) -> list[Any]:
        """Return the keys that one order gives."""
        key = order.fn
        try:
            with self._timings.measure(order.plugin, self._hook):
                return [validation.comparable(key(item)) for item in items]
        except raised():  # which item it was is found by asking one by one
            return list(map(self._measured_key(order), items))

    def sort(
        self, items: list[T], labels: Callable[[], set[str]], last: Sequence[Callable[[Sequence[T]], list[Any]]]
    ) -> None:
        """Sort ``items`` as :meth:`key` would, with the keys ``last`` in the end; quick where most keys are equal.

        ``labels`` gives every label that any of the items has: orders that read others have nothing to say. ``last``
        give the keys of many items at once.
        """
        if not self._by_keys:
            items.sort(key=self.key(lambda item: [keys((item,))[0] for keys in last]))
            return
        present: set[str] | None = None
        # Stable sorts from the least to the most important key; a key that tells nothing apart is skipped.
        for keys in reversed(last):
            sort_by(items, keys(items))
        for order in reversed(self._orders):
            if order.labels is not None:
                present = labels() if present is None else present
                if present.isdisjoint(order.labels):
                    continue
            values = self._values(order, items)
            if values is not None:
                try:
                    sort_by(items, values)
                except raised() as error:  # an order that fails says equal
                    self._failed(order, error)

    def is_silent_about(self, labels: Iterable[Collection[str]]) -> bool:
        """Tell whether no order has anything to say about items with ``labels``, given for each."""
        names = self._labels_read
        return names is not None and all(map(names.isdisjoint, labels))

    def _values(self, order: Order[Compare[T]], items: Sequence[T]) -> list[Any] | None:
        key = order.fn
        with self._timings.measure(order.plugin, self._hook):
            try:
                return [validation.comparable(key(item)) for item in items]
            except raised() as error:  # an order that fails says equal
                self._failed(order, error)
                return None

    def _measured_key(self, order: Order[Compare[T]]) -> Callable[[T], Any]:
        key = order.fn

        def measured(item: T) -> Any:
            with self._timings.measure(order.plugin, self._hook):
                try:
                    return validation.comparable(key(item))
                except raised() as error:  # an order that fails says equal
                    self._failed(order, error)
                    return _EQUAL

        return measured

    def _comparing(self, order: Order[Compare[T]]) -> Callable[[T, T], int]:
        if order.compare is None:
            key = self._measured_key(order)

            def compared(left: T, right: T) -> int:
                try:
                    return three_way(key(left), key(right))
                except raised() as error:  # an order that fails says equal
                    self._failed(order, error)
                    return 0

            return compared
        compare = order.compare

        def guarded(left: T, right: T) -> int:
            with self._timings.measure(order.plugin, self._hook):
                try:
                    return validation.sign(compare(left, right))
                except raised() as error:  # an order that fails says equal
                    self._failed(order, error)
                    return 0

        return guarded

    def _incomparable(self, place: int, error: BaseException) -> None:
        """Note that values which the order at a place gave do not compare."""
        self._failed(self._orders[place], error)

    def _failed(self, order: Order[Any], error: BaseException) -> None:
        self._failures.add("plugin order failed, counted as equal", order.plugin, self._hook, order.fn, error)


def three_way(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as ``left`` is less than, equal to or greater than ``right``."""
    return int(left > right) - int(left < right)


def sort_by(items: list[T], values: list[Any]) -> None:
    """Sort ``items`` by ``values``, which are aligned with them; nothing is moved that is in order."""
    if not any(map(lt, islice(values, 1, None), values)):
        return
    ranked = sorted(range(len(items)), key=values.__getitem__)
    items[:] = [items[place] for place in ranked]
