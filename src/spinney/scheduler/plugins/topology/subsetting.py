"""Dividing nodes by topology: which domains to try for a group of tasks, in which order.

Domains are ordered from the preferred level up to the required one, and within a level from the tightest that still
fits to the loosest, below the tightest parent first. So a group lands in the smallest domain that holds it, and large
domains stay free for large groups.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import overload

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.journal import Rows, distinct
from spinney.cluster.resources import Vector
from spinney.cluster.table import Mask
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import FirstChoice, Nodes, NodeSet
from spinney.scheduler.plugins.topology.ahead import Lookahead
from spinney.scheduler.plugins.topology.demand import GroupDemand
from spinney.scheduler.topology.domains import Domains, Numbers, Sums, sum_by
from spinney.scheduler.topology.planning import GangSize

_NOTHING_FREE = 1000.0
"""What a domain without any of a needed resource counts as."""


class TopologyRefusal(msgspec.Struct, frozen=True):
    """Why no domain holds a group, as data."""

    topology: str
    required_level: str
    domains: dict[str, int]
    """How many of the pods each domain of the required level holds."""
    needed: int
    cluster_lacks_resources: bool = False
    """All nodes together are too small, so no domain was looked at."""

    def messages(self, job: str) -> list[str]:
        """Return one line per domain and one in summary."""
        lines = [
            f"node-group {domain}: can allocate only {fits} of {self.needed} required pods"
            for domain, fits in self.domains.items()
        ]
        where = f"topology {self.topology or 'of the node labels'}"
        if self.required_level:
            where += f", requirement {self.required_level}"
        return [*lines, f"{where}: not enough resources for {self.needed} pods of job {job}"]


class InvalidConstraint(ValueError):
    """A constraint that names a level the topology lacks, or a preferred level above the required one."""


class Bounds(msgspec.Struct, frozen=True):
    """The levels a constraint speaks of, as depths, 0 the coarsest; -1 where it names none."""

    required: int
    preferred: int

    @classmethod
    def of(cls, constraint: TopologyConstraintInfo, domains: Domains) -> "Bounds":
        """Return the levels of ``constraint``; raises :class:`InvalidConstraint`."""
        depths = []
        for level in (constraint.required, constraint.preferred):
            depth = domains.topology.depth(level) if level else -1
            if depth is None:
                known = ", ".join(domains.topology.levels)
                raise InvalidConstraint(f"topology {domains.topology.name} has no level {level!r}; it has {known}")
            depths.append(depth)
        if -1 not in depths and depths[1] < depths[0]:
            raise InvalidConstraint(
                f"preferred level {constraint.preferred} is coarser than required level {constraint.required}"
            )
        return cls(*depths)

    @property
    def finest(self) -> int:
        """Return the deepest level to try."""
        return self.preferred if self.preferred >= 0 else self.required


LevelScores = tuple[Numbers, npt.NDArray[np.float64]]
"""Domain by row and steps (1 to 10) by domain of the preferred level."""


class NodeSubsets(msgspec.Struct, frozen=True):
    """The answer: node sets to try, scores by domain of the preferred level, or why there are none."""

    sets: Sequence[NodeSet]
    level_scores: Callable[[], LevelScores] | None = None
    """Finds them, where a level is preferred: few groups have to spread over several of its domains."""
    refusal: TopologyRefusal | None = None


class Subsetting:
    """Divides one node set for one group of tasks."""

    def __init__(
        self, nodes: Nodes, domains: Domains, constraint: TopologyConstraintInfo, demand: GroupDemand, node_set: NodeSet
    ) -> None:
        self._nodes = nodes
        self._domains = domains
        self._constraint = constraint
        self._bounds = Bounds.of(constraint, domains)
        self.preferred = self._bounds.preferred
        """The depth of the preferred level; -1 if there is none."""
        self._demand = demand
        whole = len(node_set) == len(nodes.all)
        self._rows: Rows = domains.rows if whole else node_set.rows[domains.inside[node_set.rows]]
        self._whole = whole

    def divide(self, occupied: Rows) -> NodeSubsets:
        """Return the sets to try; ``occupied`` are rows the group already has pods on."""
        bounds = self._bounds
        if len(self._rows) == 0 or not self._holds_everything():
            return NodeSubsets((), refusal=self._refusal({}, lacking=True))
        if self._whole:
            common = min(self._domains.common_depth, bounds.finest)
        else:
            common = self._domains.common(self._rows, bounds.finest)
        tightness = [self._tightness(depth) for depth in range(bounds.finest + 1)]
        order = self._tree_order(tightness)
        allowed = self._allowed(occupied)
        sets: list[tuple[int, Numbers]] = []
        for depth in range(bounds.finest, max(bounds.required, common + 1, 0) - 1, -1):
            fits = self._fits(depth, tightness[depth])
            if allowed is not None:
                fits &= allowed[depth]
            chosen = order[depth][fits[order[depth]]]
            if len(chosen):
                sets.append((depth, chosen))
        if common >= bounds.required and self._common_is_allowed(common, allowed):
            # The incoming set lies in one domain of every wider level: that is the last to try.
            sets.append((-1, np.zeros(1, dtype=np.int64)))
        if not sets:
            return NodeSubsets((), refusal=self._refusal(self._fitting_pods(allowed), lacking=False))
        # Placing in the first domain that fits makes it, and those around it, tighter, and changes no other.
        lasting = self._room is not None and allowed is None
        found = DomainSets(self._nodes, self._domains, self._rows, sets, whole=self._whole, lasting=lasting)
        return NodeSubsets(found, partial(self._scores, order) if bounds.preferred >= 0 else None)

    def chosen_by(self, plans: Lookahead, job: PodGroupInfo, sets: "DomainSets") -> Rows | None:
        """Return the nodes to try first as plans have it, where the whole gang goes to the level it requires."""
        request, bounds = self._demand.single, self._bounds
        if bounds.required < 0 or bounds.preferred >= 0 or request is None or self._room is None:
            return None
        wanted = GangSize(bounds.required, self._demand.count)
        return plans.choose(job, self._domains, request, wanted, sets.domains(bounds.required))

    # -- judging domains ---------------------------------------------------------------------------------------------

    def _holds_everything(self) -> bool:
        if self._demand.homogeneous:
            pods = self._room.total[0] if self._room is not None else self._pods.sum()
            return bool(pods >= self._demand.count)
        table, wanted = self._nodes.table, self._demand.total
        for column in np.flatnonzero(wanted).tolist():
            free = table.idle[self._rows, column] + table.releasing[self._rows, column]
            if free.sum() < wanted[column]:
                return False
        return True

    def _pods_by_domain(self, depth: int) -> Numbers:
        """Return how many of the pods each domain of a level holds."""
        if self._room is not None:
            return self._room.of_level(depth)[:, 0]
        level = self._domains.levels[depth]
        return sum_by(level.of_row[self._rows], self._pods[:, None], len(level))[:, 0]

    @cached_property
    def _room(self) -> Sums | None:
        """Return kept sums of :meth:`GroupDemand.room_on`, where the whole cluster is divided for pods that are alike.

        They serve all gangs of such pods, of whatever size.
        """
        request = self._demand.single
        if not self._whole or request is None or request.share is not None:
            return None
        demand, nodes = self._demand.alone, self._nodes
        return self._domains.sums(("room", request.number), lambda rows: demand.room_on(nodes, rows))

    @cached_property
    def _pods(self) -> Vector:
        return self._demand.pods_on(self._nodes, self._rows)

    def _tightness(self, depth: int) -> npt.NDArray[np.float64]:
        """Return, per domain, the largest part of a free resource that the demand takes."""
        level, columns = self._domains.levels[depth], self._demand.columns
        if self._room is not None:
            free = self._room.of_level(depth)[:, 1:]
        elif self._whole:
            free = self._domains.free(depth, tuple(columns.tolist()))
        else:
            free = sum_by(level.of_row[self._rows], self._nodes.table.free_at(columns, self._rows).T, len(level))
        ratio = np.full(free.shape, _NOTHING_FREE, order="F")
        np.divide(self._demand.total[columns], free, out=ratio, where=free > 0)
        tightest: npt.NDArray[np.float64] = np.maximum.reduce(ratio, axis=1, initial=0.0)
        return tightest

    def _tree_order(self, tightness: list[npt.NDArray[np.float64]]) -> list[Numbers]:
        """Return the domains of each level, tightest parent first, then tightest, then by name."""
        orders: list[Numbers] = []
        place = np.zeros(1, dtype=np.int64)
        for depth, ratios in enumerate(tightness):
            order = np.lexsort((-ratios, place[self._domains.levels[depth].parent]))  # stable: numbers follow names
            orders.append(order)
            if depth < len(tightness) - 1:
                place = np.empty(len(order), dtype=np.int64)
                place[order] = np.arange(len(order))
        return orders

    def _fits(self, depth: int, tightness: npt.NDArray[np.float64]) -> Mask:
        if not self._demand.homogeneous:
            return tightness <= 1.0
        return self._pods_by_domain(depth) >= self._demand.count

    def _allowed(self, occupied: Rows) -> list[Mask] | None:
        """Return, per level, the domains that are compatible with where the group's pods already are."""
        if self._bounds.required < 0 or len(occupied) == 0:
            return None
        levels = self._domains.levels
        allowed: list[Mask] = []
        for depth in range(self._bounds.finest + 1):
            mask = np.ones(len(levels[depth]), dtype=np.bool_)
            if depth == self._bounds.required:
                here = levels[depth].of_row[occupied]
                mask[:] = False
                mask[here[here >= 0]] = True
            elif depth > self._bounds.required:
                mask = allowed[depth - 1][levels[depth].parent]
            allowed.append(mask)
        return allowed

    def _common_is_allowed(self, common: int, allowed: list[Mask] | None) -> bool:
        if allowed is None or common < 0:
            return True
        depth = min(common, self._bounds.finest)
        return bool(allowed[depth][self._domains.levels[depth].of_row[self._rows[0]]])

    # -- the answer --------------------------------------------------------------------------------------------------

    def _scores(self, order: list[Numbers]) -> LevelScores:
        """Return steps by domain of the preferred level: those with more room score more."""
        preferred = self._bounds.preferred
        level = self._domains.levels[preferred]
        ranked = order[preferred]
        if not self._whole:
            present = np.zeros(len(level), dtype=np.bool_)
            present[level.of_row[self._rows]] = True
            ranked = ranked[present[ranked]]
        steps = np.zeros(len(level))
        steps[ranked] = np.floor(10.0 * np.arange(1, len(ranked) + 1) / len(ranked))
        return level.of_row, steps

    def _fitting_pods(self, allowed: list[Mask] | None) -> dict[str, int]:
        """Return how many of the pods each domain holds that the group may go to."""
        depth = self._bounds.required if self._bounds.required >= 0 else 0
        level = self._domains.levels[depth]
        open_ = allowed[depth] if allowed is not None else np.ones(len(level), dtype=np.bool_)
        if not self._demand.homogeneous:
            return {level.names[domain]: 0 for domain in np.flatnonzero(open_).tolist()}
        sums = self._pods_by_domain(depth)
        inside = distinct(level.of_row[self._rows]).tolist()
        return {level.names[domain]: int(sums[domain]) for domain in inside if open_[domain]}

    def _refusal(self, domains: dict[str, int], *, lacking: bool) -> TopologyRefusal:
        return TopologyRefusal(
            topology=self._domains.topology.name,
            required_level=self._constraint.required,
            domains=domains,
            needed=self._demand.count,
            cluster_lacks_resources=lacking,
        )


class DomainSets(Sequence[NodeSet]):
    """Node sets by domain, each made when it is looked at: the first is mostly the last that is needed."""

    def __init__(
        self, nodes: Nodes, domains: Domains, rows: Rows, sets: list[tuple[int, Numbers]], *, whole: bool, lasting: bool
    ) -> None:
        self._nodes = nodes
        self._domains = domains
        self._rows = rows
        self._sets = sets
        self._whole = whole
        self._lasting = lasting
        self.try_level: Callable[[int], None] | None = None
        """Is told the level of each set, -1 for one that is no domain, before the set is tried."""
        self.planned: Rows | None = None
        """Nodes to try before all others, which need not be a whole domain."""

    def domains(self, depth: int) -> Sequence[int]:
        """Return the domains of a level that are tried, in order."""
        if self._sets[-1][0] < 0 and len(self._sets) == 1:
            return [int(self._domains.levels[depth].of_row[self._rows[0]])]
        return [domain for each, domains in self._sets if each == depth for domain in domains.tolist()]

    def __len__(self) -> int:
        return sum(len(domains) for _, domains in self._sets) + (self.planned is not None)

    def __iter__(self) -> Iterator[NodeSet]:
        lasting = self._lasting and self.planned is None
        if self.planned is not None:
            yield NodeSet(self._nodes, self.planned)
        for depth, domains in self._sets:
            for domain in domains:
                if self.try_level is not None:
                    self.try_level(depth)
                found = self._make(depth, int(domain))
                yield FirstChoice(self._nodes, found.rows) if lasting and depth >= 0 else found
                lasting = False

    @overload
    def __getitem__(self, index: int) -> NodeSet: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeSet]: ...
    def __getitem__(self, index: int | slice) -> NodeSet | Sequence[NodeSet]:
        return list(self)[index]

    def _make(self, depth: int, domain: int) -> NodeSet:
        if depth < 0:
            return NodeSet(self._nodes, self._rows)
        level = self._domains.levels[depth]
        if self._whole:
            return NodeSet(self._nodes, level.members(domain))
        return NodeSet(self._nodes, self._rows[level.of_row[self._rows] == domain])
