"""Why pods that the simulated coscheduler tried are left pending, as explanations.

A group is explained as it was when it had come furthest: what refused the rest, while the others held their places, is
what the group lacks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from spinney.cluster.filters import Candidate, FilterResult
from spinney.cluster.filters.obstacles import obstacle
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.requests import requested
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PodStatus
from spinney.cluster.table import NodeTable
from spinney.coscheduling.cycle.scheduler import UnplacedPod
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.framework.points import CycleState
from spinney.coscheduling.groups.book import Groups, membership
from spinney.coscheduling.groups.group import Group
from spinney.explain.amounts import too_large
from spinney.explain.counting import RESOURCES_FILTER, NodeNames, Room, pod_report
from spinney.explain.reasons import Explanation, Obstacle, PodReport
from spinney.explain.rendering import kube_message
from spinney.gangs.intake import ClusterIntake
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.sim.whatif.outcomes import Waiting


def group_of(record: PodRecord, shared: ClusterIntake) -> GangKey:
    """Return the group whose minimum decides about a pod; a pod without one is its own."""
    return shared.gangs.home(membership(record)[0])


@dataclass(frozen=True)
class _Attempt:
    """How far a unit came when it was refused, and why it came no further."""

    placed: int
    reports: tuple[PodReport, ...]
    others: tuple[str, ...]
    found: FilterResult | None = None
    members: tuple[int, ...] = ()
    """What the reports rest on: of thousands of pods that are alike it is the same for each."""


class Refusals:
    """What was refused in one run. Mutable."""

    def __init__(self, shared: ClusterIntake, groups: Groups, rankings: Mapping[str, NodeRanking]) -> None:
        self._shared = shared
        self._cluster = shared.cluster
        self._groups = groups
        self._rankings = rankings
        self._attempts: dict[GangKey, _Attempt] = {}
        self._furthest: dict[GangKey, int] = {}
        """How many pods of a group held a node at once, at most; those that were bound before are not counted."""
        self._reported: tuple[FilterResult, PodReport] | None = None

    def pod_changed(self, change: PodChange) -> None:
        """Keep how far the group of a pod that got a node has come."""
        record = change.new
        group = self._groups.of(record.key) if record is not None and record.node else None
        if group is not None:
            held = group.assigned - group.bound
            self._furthest[group.key] = max(held, self._furthest.get(group.key, 0))

    def note(self, refused: UnplacedPod) -> None:
        """Keep what refused a pod, if its group has not come further before.

        The members that waited for it have given up their nodes by then, and were refused before it.
        """
        record, group = refused.record, self._groups.of(refused.record.key)
        unit = group_of(record, self._shared)
        placed = self._furthest.get(unit, 0)
        known = self._attempts.get(unit)
        if known is not None and (placed < known.placed or (known.reports and refused.found is None)):
            return
        if refused.found is None:
            self._attempts[unit] = _Attempt(placed, (), (refused.status.message,))
            return
        members = _members(record, group)
        if known is not None and (known.placed, known.members) == (placed, members) and known.found is refused.found:
            return
        reports = [self._report(record, refused.found, _alike(record, group))]
        reports += self._others(group, record) if group is not None else []
        if placed:
            reports = list(map(_beside_its_own, reports))
        self._attempts[unit] = _Attempt(placed, tuple(reports), (), refused.found, members)

    def of(self, pending: Sequence[PodRecord], placed: Collection[PodKey]) -> list[Waiting]:
        """Return the units of those that were ``pending`` of which pods are left."""
        left: dict[GangKey, list[PodKey]] = {}
        gone: dict[GangKey, int] = {}
        for before in pending:
            record = self._cluster.pod(before.key)
            unit = group_of(before, self._shared)
            if before.key in placed:
                gone[unit] = gone.get(unit, 0) + 1
            elif record is not None and record.status is PodStatus.PENDING:
                left.setdefault(unit, []).append(record.key)
        return [
            _waiting(unit, tuple(pods), self._explanation(unit, len(pods), gone.get(unit, 0)))
            for unit, pods in left.items()
        ]

    def _others(self, group: Group, refused: PodRecord) -> Iterable[PodReport]:
        """Yield reports on members of other kinds that fit nowhere either."""
        kinds = {each.request.number: each for each in reversed(group.pending())}
        kinds.pop(refused.request.number, None)
        for record in kinds.values():
            found = self._rankings[record.pod.spec.scheduler_name].explain(CycleState(), record)
            if not found.feasible:
                yield self._report(record, found, _alike(record, group))

    def _report(self, record: PodRecord, found: FilterResult, alike: int) -> PodReport:
        if self._reported is not None and self._reported[0] is found:
            return replace(self._reported[1], pod=str(record.key), alike=alike)
        table = self._cluster.view.table
        report = pod_report(
            str(record.key),
            NodeNames(table.names, table.rows()),
            found.refusals,
            pre_filter=found.pre_filter,
            room=Room(table.idle, Candidate.of(record.pod, table.axis).requests, list(table.axis)),
            alike=alike,
            describe=partial(obstacle, table, record.pod),
        )
        report = replace(report, obstacles=(*_too_large(table, record), *report.obstacles))
        self._reported = found, report
        return report

    def _explanation(self, unit: GangKey, left: int, placed: int) -> Explanation:
        group = self._groups.get(unit) if unit.source != bare.SOURCE else None
        attempt = self._attempts.get(unit, _Attempt(0, (), ()))
        came, needed, others = attempt.placed, 1, attempt.others
        if unit.source != bare.SOURCE and (group is None or group.gang is None):
            others = (f"the PodGroup {unit} that the pods name does not exist",)
        elif group is not None and group.satisfied:
            came, needed = placed, placed + left
        elif group is not None:
            needed = max(group.minimum - group.bound, 1)
            if not group.complete:
                exist = group.size - group.gated
                others = (f"{exist} of the {group.minimum} pods that the group needs exist",)
        return Explanation(
            subject=str(unit),
            kind="Pod" if unit.source == bare.SOURCE else "PodGroup",
            placed=came,
            needed=needed,
            pods=attempt.reports,
            others=others,
            simulated=True,
        )


def _waiting(gang: GangKey, pods: tuple[PodKey, ...], explanation: Explanation) -> Waiting:
    """Return who waits, in one line: with kube-scheduler's sentence where nodes were looked at."""
    message = "; ".join([*explanation.others, *map(kube_message, explanation.pods)])
    return Waiting(gang=gang, pods=pods, message=message, explanation=explanation)


def _too_large(table: NodeTable, record: PodRecord) -> list[Obstacle]:
    """Return what a pod asks for that is more than any node offers, whatever runs there."""
    rows = table.rows()
    offered = dict(zip(table.axis, table.allocatable[rows].max(axis=0, initial=0).tolist(), strict=False))
    return [
        Obstacle(filter="", text=too_large(name, amount, offered.get(name, 0)), nodes=len(rows), node="")
        for name, amount in requested(record.pod).items()
        if amount > offered.get(name, 0)
    ]


def _beside_its_own(report: PodReport) -> PodReport:
    """Return a report without what is only true of nodes that members of the same group held when it was made."""
    filters = tuple(
        replace(each, reasons=tuple(replace(reason, unresolvable=reason.nodes) for reason in each.reasons))
        for each in report.filters
    )
    others = tuple(each for each in report.obstacles if each.filter != RESOURCES_FILTER)
    return replace(report, filters=filters, obstacles=others)


def _alike(record: PodRecord, group: Group | None) -> int:
    members = group.members if group is not None else (record,)
    number = record.request.number
    return sum(each.request.number == number and each.status is PodStatus.PENDING for each in members)


def _members(record: PodRecord, group: Group | None) -> tuple[int, ...]:
    """Return what tells one refusal of a group from another: which class of pods, and how many of them wait."""
    states = (group.size, group.assigned, group.bound, group.gated) if group is not None else ()
    return (record.request.number, *states)
