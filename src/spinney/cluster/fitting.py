"""How many pods fit: what they ask for against what nodes have, per node and by domain.

All counts are made with these: placing by what is free now, topology and victims by what is free once pods that are
terminating have gone, reservations by empty nodes. Room is necessary, not sufficient: other rules may refuse a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import and_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import Rows
from spinney.cluster.ledger import Ledger
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.table import Mask, Matrix, NodeTable

MANY: Final = int(np.iinfo(np.int32).max)
"""More pods than fit anywhere."""
DomainNumbers = NDArray[np.int32]


def pods_per_node(room: Matrix, amounts: Vector, at_most: int = MANY) -> Vector:
    """Return how many pods that ask for ``amounts[resource]`` fit on each node of ``room[resource, node]``."""
    (asked,) = amounts.nonzero()
    counts: Vector = np.minimum.reduce(room[asked] // amounts[asked, None], initial=at_most)
    return np.maximum(counts, 0, out=counts)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """``count`` like pods that each ask for ``request[resource]``; ``usable[node]`` may rule nodes out for them."""

    request: Vector
    count: int
    usable: Mask | None = None
    one_per_node: bool = False

    def per_node(self, room: Matrix, at_most: int | None = None) -> Vector:
        """Return how many fit on each node of ``room[node, resource]``: no more than there are, or ``at_most``."""
        most = self.count if at_most is None else at_most
        fits = pods_per_node(room.T, self.request, min(most, 1) if self.one_per_node else most)
        return fits if self.usable is None else fits * self.usable

    def at(self, rows: Rows) -> "Demand":
        """Return the same demand on some of the nodes."""
        return self if self.usable is None else Demand(self.request, self.count, self.usable[rows], self.one_per_node)


# -- by domain -------------------------------------------------------------------------------------------------------


def pods_held(domain_of: DomainNumbers, domains: int, free: Matrix, demands: Sequence[Demand]) -> Vector:
    """Return how many pods of ``demands`` each domain has room for, ``[domain]``; ``domain_of`` is ``[node]``.

    For like pods that is also more than there are, so that the tightest of domains that hold them all can be told.
    """
    room = widened(free, demands)
    total = np.zeros(domains, dtype=np.int64)
    left = largest_first(demands, room)
    while left:
        demand = left.pop(0)
        fits = demand.per_node(room)
        if left:
            fits = first_of(fits, demand.count, domain_of)
            room = room - fits[:, None] * demand.request
        inside = np.bincount(domain_of, weights=fits, minlength=domains).astype(np.int64)
        total += inside if len(demands) == 1 else np.minimum(inside, demand.count)
    return total


def capacity(allocatable: Matrix, demands: Sequence[Demand]) -> int:
    """Return how many pods of ``demands`` nodes could hold when empty, at most; fewer only if that is certain."""
    room = widened(allocatable, demands)
    alone = sum(min(int(demand.per_node(room).sum()), demand.count) for demand in demands)
    asked = sum((demand.count * demand.request for demand in demands), np.zeros(room.shape[1], dtype=np.int64))
    enough = bool((asked <= room.sum(axis=0)).all())
    return alone if enough else min(alone, sum(demand.count for demand in demands) - 1)


def first_of(fits: Vector, count: int, domain_of: DomainNumbers | None = None) -> Vector:
    """Return ``fits[node]`` cut to ``count``, the first nodes first: altogether, or in each domain."""
    if domain_of is None:
        taken: Vector = np.clip(count - (np.cumsum(fits) - fits), 0, fits)
        return taken
    order = np.argsort(domain_of, kind="stable")
    before = np.cumsum(fits[order]) - fits[order]
    where = domain_of[order]
    starts = np.flatnonzero(np.r_[True, where[1:] != where[:-1]]) if len(where) else np.empty(0, dtype=np.intp)
    before -= np.repeat(before[starts], np.diff(np.r_[starts, len(where)]))
    cut = np.empty_like(fits)
    cut[order] = np.clip(count - before, 0, fits[order])
    return cut


def largest_first(demands: Sequence[Demand], room: Matrix) -> list[Demand]:
    """Return the demands, those first whose pods ask for most of what there is of some resource."""
    if len(demands) == 1:
        return list(demands)
    most = np.maximum(room.max(axis=0, initial=0), 1)
    return sorted(demands, key=lambda demand: -float((demand.request / most).max(initial=0.0)))


def widened(room: Matrix, demands: Sequence[Demand]) -> Matrix:
    """Return ``room[node, resource]`` with the columns that ``demands`` have, those that were missing with zeros."""
    width = max(len(demand.request) for demand in demands)
    missing = width - room.shape[1]
    return np.pad(room, ((0, 0), (0, missing))) if missing > 0 else room[:, :width]


# -- devices ---------------------------------------------------------------------------------------------------------


def fit_later_and_now(ledger: Ledger, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
    """Return, per row, whether one pod fits once what is terminating is gone, and whether it fits now."""
    table = ledger.table
    least = request.least(table.idle.shape[1])
    free = table.idle.T.take(rows, axis=1)
    now = np.logical_and.reduce(free >= least)
    now &= table.alive.take(rows)
    share = request.share
    if not table.may_release:
        if share is not None:
            now &= _sharable_devices(ledger, share, rows, now=True) >= share.devices
        return now, now
    free += table.releasing.T.take(rows, axis=1)
    later = np.logical_and.reduce(free >= least)
    later &= table.alive.take(rows)
    if share is not None:
        later &= _sharable_devices(ledger, share, rows, now=False) >= share.devices
        now &= _sharable_devices(ledger, share, rows, now=True) >= share.devices
    return later, now & later


def few_fit_later_and_now(ledger: Ledger, request: RequestClass, rows: Sequence[int]) -> tuple[list[bool], list[bool]]:
    """Return the same for a few rows: there numbers are quicker than arrays."""
    now = _few_fit(ledger, request, rows, now=True)
    if not ledger.table.may_release:
        return now, now
    later = _few_fit(ledger, request, rows, now=False)
    return later, list(map(and_, now, later))


def sharing_pods_per_node(ledger: Ledger, share: DeviceShare, rows: Rows) -> Vector:
    """Return how many pods that share devices fit on each row once what is terminating is gone."""
    table = ledger.table
    parts = share.parts_on_each(table.gpu_memory[rows])
    whole = np.maximum(table.idle[rows, GPU] + table.releasing[rows, GPU], 0)
    slots = whole * (DEVICE // parts)
    slots += (np.maximum(ledger.shared.kept_later(rows), 0) // parts).sum(axis=0)
    found: Vector = slots // share.devices
    return found


def _sharable_devices(ledger: Ledger, share: DeviceShare, rows: Rows, *, now: bool) -> Vector:
    """Return, per row, how many devices could take a share: now, or eventually."""
    table, shared = ledger.table, ledger.shared
    parts: Vector | int = share.parts or share.parts_on_each(table.gpu_memory[rows])
    found: Vector = table.idle[:, GPU].take(rows)
    if not now:
        found += table.releasing[:, GPU].take(rows)
    np.maximum(found, 0, out=found)
    free = shared.free_now(rows) if now else shared.kept_later(rows)
    found += np.add.reduce(free >= parts)
    if not share.parts:  # a fraction is no more than a device
        found *= parts <= DEVICE
    return found


def _few_fit(ledger: Ledger, request: RequestClass, rows: Sequence[int], *, now: bool) -> list[bool]:
    table, asked, share = ledger.table, request.asked, request.share
    alive, idle, releasing = table.alive.item, table.idle.item, table.releasing.item
    found: list[bool] = []
    for row in rows:
        fits = alive(row)
        for column, amount in asked:
            if (idle(row, column) if now else idle(row, column) + releasing(row, column)) < amount:
                fits = False
                break
        found.append(fits and (share is None or _takes_share(ledger, share, row, now=now)))
    return found


def _takes_share(ledger: Ledger, share: DeviceShare, row: int, *, now: bool) -> bool:
    """Tell whether enough devices of a row could take a share: now, or eventually."""
    table = ledger.table
    parts = share.parts or share.parts_on(table.gpu_memory.item(row))
    if parts > DEVICE:
        return False
    whole = table.idle.item(row, GPU)
    if not now:
        whole += table.releasing.item(row, GPU)
    missing = share.devices - max(whole, 0)
    if missing <= 0:
        return True
    free = ledger.shared.free_now_on(row) if now else ledger.shared.kept_later_on(row)
    return sum([each >= parts for each in free]) >= missing


def in_usable_mode(table: NodeTable, rows: Rows, request: RequestClass) -> Mask:
    """Return which of ``rows`` may take a pod of a class, as far as the mode of their GPUs goes; ``[row]``."""
    mask = table.alive[rows]
    if request.gpus and not request.constraints.claims:
        mask &= ~table.mig_mixed[rows]
    if request.mig_slices:
        mask &= ~table.mig_single[rows]
    if request.share is not None:
        mask &= ~table.mig_enabled[rows]
        if request.share.memory:
            mask &= table.gpu_memory_known[rows]
    return mask
