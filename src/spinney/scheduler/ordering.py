"""Orders made of what several plugins say: the first that tells two things apart decides.

An order is a sort key. Where every plugin gave a key, it is their tuple, computed once; where some gave a comparison,
it compares on demand. A plugin that raises counts as saying *equal*.
"""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, TypeVar

import structlog

from spinney.scheduler.hooks import Order

T = TypeVar("T")
log = structlog.get_logger()


def order_key(orders: Sequence[Order[Callable[[T, T], int]]], last: Callable[[T], Any]) -> Callable[[T], Any]:
    """Return a sort key that asks ``orders`` in turn and falls back to the key ``last``."""
    if all(order.compare is None for order in orders):
        keys = [order.key for order in orders if order.key is not None]
        if not keys:
            return last

        def by_keys(item: T) -> Any:
            return (*[key(item) for key in keys], last(item))

        return by_keys

    compares = [_comparing(order) for order in orders]

    def compare(left: T, right: T) -> int:
        for each in compares:
            found = each(left, right)
            if found:
                return found
        return three_way(last(left), last(right))

    return cmp_to_key(compare)


def sort_by_orders(
    items: list[T], orders: Sequence[Order[Callable[[T, T], int]]], last: Sequence[Callable[[T], Any]]
) -> None:
    """Sort ``items`` as :func:`order_key` would, with the keys ``last`` in the end; quick where most keys are equal."""
    if any(order.compare is not None for order in orders):
        items.sort(key=order_key(orders, lambda item: tuple(key(item) for key in last)))
        return
    keys = [*(order.key for order in orders if order.key is not None), *last]
    # Stable sorts from the least to the most important key; a key that tells nothing apart is skipped.
    for key in reversed(keys):
        values = list(map(key, items))
        if values.count(values[0]) < len(values):
            ranked = sorted(range(len(items)), key=values.__getitem__)
            items[:] = [items[place] for place in ranked]


def three_way(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as ``left`` is less than, equal to or greater than ``right``."""
    return int(left > right) - int(left < right)


def _comparing(order: Order[Callable[[T, T], int]]) -> Callable[[T, T], int]:
    key, own = order.key, order.compare
    if own is None:
        assert key is not None, "an order has a comparison or a key"
        by_key = key
        return lambda left, right: three_way(by_key(left), by_key(right))
    compare = own

    def guarded(left: T, right: T) -> int:
        try:
            return compare(left, right)
        except Exception as error:
            log.exception("plugin order failed, counted as equal", plugin=order.plugin, error=str(error))
            return 0

    return guarded
