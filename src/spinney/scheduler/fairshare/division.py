"""Fair shares: the division of the cluster among queues, from the top of the tree down.

Each parent divides what it has among its children; the top-level queues divide the cluster. Per resource:

1. *Quota.* Every queue is given what it requests, up to its quota and limit. Quotas that promise more than there is
   are not scaled down; then nothing is left for step 2.
2. *Surplus*, one priority band after the other, highest first. In a round the queues of the band that still want
   something part the surplus by weight. Who wants less takes just that, and the rest goes into another round;
   everyone else takes whole units and remembers the fraction that was cut off.
3. *Leftovers* of that rounding go out a unit at a time: higher bands first, then the largest fraction cut off, then
   the older queue. This is the one step that may give a queue more than it wants, by less than a unit.

All sibling groups of one depth are divided at the same time as arrays ``[queue, resource]``; a group's own amounts are
``[group, resource]``, and ``group[queue]`` says which row is whose. So the cost is a handful of array operations per
depth, band and round, however many queues there are.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.scheduler.fairshare.amounts import UNITS, Amounts
from spinney.scheduler.fairshare.queues import QueueTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_BOUNDLESS = np.iinfo(np.int64).max // 4
_MOST = 1 << 57  # larger amounts count as this, which is more than any cluster has: sums of many queues stay exact
_UNITS: Ints = np.array(UNITS, dtype=np.int64)
_PULL = 1000  # weights count to a thousandth; whole numbers keep the division exact
_HEAVIEST = 10_000.0


def divide(tree: QueueTree, requested: Sequence[Amounts], total: Amounts) -> list[Amounts]:
    """Return the fair share of each queue of ``total``, by what queues request, both in the tree's order."""
    queues = tree.queues
    if not queues:
        return []
    shares = np.zeros((len(queues), 3), dtype=np.int64)
    limit = _bounds([queue.limit for queue in queues])
    requestable = np.minimum(_array(requested), limit)
    quota = _bounds([queue.quota for queue in queues])
    # A negative weight (KAI's tables give unlimited departments one) counts as 1.
    weight = np.array([queue.weight for queue in queues], dtype=np.float64)
    weight[weight < 0] = 1.0
    band = np.array([queue.priority for queue in queues], dtype=np.int64)
    age = np.argsort(np.array(sorted(range(len(queues)), key=lambda position: queues[position].age_key)))
    parent = np.array(tree.parent, dtype=np.int64)

    rows = np.array(tree.roots, dtype=np.int64)
    amounts = _array([total])
    while rows.size:
        parents, group = np.unique(parent[rows], return_inverse=True)
        if parents[0] >= 0:
            amounts = shares[parents]
        siblings = _Siblings(
            group=group.reshape(-1),
            amounts=amounts,
            quota=quota[rows],
            requestable=requestable[rows],
            weight=weight[rows],
            band=band[rows],
            age=age[rows],
        )
        shares[rows] = siblings.divide()
        rows = np.flatnonzero(np.isin(parent, rows))
    return [Amounts(*row) for row in shares.tolist()]


class _Siblings(msgspec.Struct, frozen=True):
    """All sibling groups of one depth.

    ``group``, ``band`` and ``age`` are [queue], ``amounts`` is [group, resource], the rest [queue, resource].
    """

    group: npt.NDArray[np.intp]
    amounts: Ints
    quota: Ints
    requestable: Ints
    weight: Floats
    band: Ints
    age: npt.NDArray[np.intp]

    def divide(self) -> Ints:
        """Return the share of each queue, [queue, resource]."""
        promised = np.where(self.quota >= _BOUNDLESS, self.amounts[self.group], self.quota)
        shares = np.minimum(promised, self.requestable)
        left = (self.amounts - self._per_group(shares)).clip(min=0)
        cut_off = np.zeros(shares.shape, dtype=np.float64)
        if not left.any():
            return shares
        for members in self._bands():
            self._divide_surplus(shares, left, cut_off, members)
        self._divide_leftovers(shares, left, cut_off)
        return shares

    def _divide_surplus(self, shares: Ints, left: Ints, cut_off: Floats, members: Mask) -> None:
        """Step 2 for one band of every group; writes ``shares``, ``left`` and ``cut_off`` in place."""
        active = left > 0  # [group, resource]
        while active.any():
            wants = self.requestable - shares
            takes_part = members[:, None] & active[self.group] & (wants > 0) & (self.weight > 0)
            pull = self._pulls(takes_part)
            total_pull = self._per_group(pull)
            active = active & (total_pull > 0)
            if not active.any():
                return
            part, remainder = _parts(left[self.group], pull, total_pull[self.group])
            takes_part &= active[self.group]
            content = takes_part & (wants <= part)
            limited = takes_part & ~content
            given = np.where(content, wants, np.where(limited, part - part % _UNITS, 0))
            shares += given
            cut_off[content] = 0.0
            cut_off[limited] = ((part % _UNITS + remainder) / _UNITS)[limited]
            left -= self._per_group(given)
            wants_less = content & ((wants < part) | (remainder > 0))
            active = active & (self._per_group(wants_less.astype(np.int64)) > 0) & (left > 0)

    def _pulls(self, takes_part: Mask) -> Ints:
        """Return how strongly each queue pulls at the surplus of its group: by its weight."""
        weight = np.where(takes_part, self.weight, 0.0)
        heaviest = np.zeros(self.amounts.shape, dtype=np.float64)
        np.maximum.at(heaviest, self.group, weight)
        # Beyond this weights keep their proportions, but lose the digits that 64 bits cannot carry.
        weight *= (_HEAVIEST / np.maximum(heaviest, _HEAVIEST))[self.group]
        pulls: Ints = np.rint(weight * _PULL).astype(np.int64)
        return pulls

    def _divide_leftovers(self, shares: Ints, left: Ints, cut_off: Floats) -> None:
        """Step 3; writes ``shares`` in place."""
        for resource, unit in enumerate(UNITS):
            entitled = np.flatnonzero((cut_off[:, resource] > 0) & (left[self.group, resource] > 0))
            if not entitled.size:
                continue
            fraction = np.round(cut_off[entitled, resource], 9)
            order = np.lexsort((self.age[entitled], -fraction, -self.band[entitled], self.group[entitled]))
            queues = entitled[order]
            groups = self.group[queues]
            first_of_group = np.searchsorted(groups, groups)  # groups are sorted
            before = (np.arange(queues.size) - first_of_group) * unit
            shares[queues, resource] += (left[groups, resource] - before).clip(0, unit)

    def _bands(self) -> list[Mask]:
        """Return, from each group's highest band down, which queues belong to the band at that place."""
        order = np.lexsort((-self.band, self.group))
        group, band = self.group[order], self.band[order]
        starts_group = np.r_[True, group[1:] != group[:-1]]
        starts_band = starts_group | np.r_[True, band[1:] != band[:-1]]
        nth_overall = np.cumsum(starts_band)
        place = nth_overall - nth_overall[np.maximum.accumulate(np.where(starts_group, np.arange(group.size), 0))]
        places = np.empty(group.size, dtype=np.intp)
        places[order] = place
        return [places == nth for nth in range(int(places.max()) + 1)]

    def _per_group(self, values: Ints) -> Ints:
        """Sum [queue, resource] into [group, resource]."""
        sums = np.zeros(self.amounts.shape, dtype=np.int64)
        np.add.at(sums, self.group, values)
        return sums


def _parts(amount: Ints, pull: Ints, total: Ints) -> tuple[Ints, Floats]:
    """Return ``amount * pull / total``, as whole number and fraction, exactly and without overflow."""
    divisor = np.maximum(total, 1)
    whole, rest = np.divmod(amount, divisor)
    more, remainder = np.divmod(rest * pull, divisor)
    return whole * pull + more, remainder / divisor


def _array(amounts: Sequence[Amounts]) -> Ints:
    return np.array([[min(each, _MOST) for each in of_one.astuple()] for of_one in amounts], dtype=np.int64)


def _bounds(amounts: Sequence[Amounts]) -> Ints:
    bounds = _array(amounts)
    bounds[bounds < 0] = _BOUNDLESS
    return bounds
