"""kube-scheduler's rules on a loaded cluster: for pods that neither Spinney nor KAI places.

Pods are tried one at a time by priority and age, with kube-scheduler's filters and scores. Members of a native PodGroup
or of a scheduler-plugins one are tried together: if the minimum does not fit, none stays. Preemption is not simulated:
the explanation says on how many nodes it could help.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import numpy as np

from spinney.api import coscheduling, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.resource import Resource
from spinney.cluster.filters import Candidate, FilterFramework
from spinney.cluster.filters.obstacles import obstacle
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.scores import ScoreFramework
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Mask
from spinney.explain import Explanation, NodeNames, PodReport, Room, kube_message, pod_report
from spinney.gangs.definitions import gang_of
from spinney.gangs.sources import bare, native
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey
from spinney.sim.snapshot import Objects

_EPOCH: Final = datetime.min.replace(tzinfo=UTC)
_FILTERS: Final = FilterFramework()
_SCORES: Final = ScoreFramework()
_GROUP_KINDS: Final[Mapping[Resource, type[Any]]] = {
    workload_v1alpha2.POD_GROUP: workload_v1alpha2.PodGroup,
    workload_v1beta1.POD_GROUP: workload_v1beta1.PodGroup,
    coscheduling.POD_GROUP: coscheduling.PodGroup,
}


@dataclass(frozen=True)
class KubeRefusal:
    """A pod, or the pods of a group, that kube-scheduler's rules leave pending."""

    gang: GangKey
    pods: tuple[PodKey, ...]
    explanation: Explanation

    @property
    def message(self) -> str:
        """Return one line: kube-scheduler's sentence where nodes were looked at."""
        reports = [kube_message(report) for report in self.explanation.pods]
        return "; ".join([*self.explanation.others, *reports])


@dataclass(frozen=True)
class KubeResult:
    """What one pass over the pending pods decided: nodes by pod, and who is left."""

    placed: dict[PodKey, str]
    refused: list[KubeRefusal]


class KubeRules:
    """Places what other schedulers do not, on a cluster state that it changes as it goes. Mutable through that."""

    def __init__(self, cluster: ClusterState, objects: Objects, serves: Callable[[PodRecord], bool]) -> None:
        self._cluster = cluster
        self._serves = serves
        self._groups = dict(_groups_of(objects))
        self._workloads = {
            (each.metadata.namespace or "", each.metadata.name): each
            for each in objects.of(workload_v1alpha1.WORKLOAD, workload_v1alpha1.Workload)
        }

    def run(self) -> KubeResult:
        """Try every pending pod once; what fits stays assumed on its node."""
        placed: dict[PodKey, str] = {}
        refused: list[KubeRefusal] = []
        for key, records in self._units():
            nodes, refusal = self._place(key, records)
            placed |= nodes
            if refusal is not None:
                refused.append(refusal)
        return KubeResult(placed, refused)

    def report(self, record: PodRecord, alike: int = 1) -> PodReport:
        """Return on which nodes a pod fits now, and why not on the others."""
        view = self._cluster.view
        candidate = Candidate.of(record.pod, view.table.axis)
        result = _FILTERS.diagnose(view, candidate)
        return pod_report(
            str(record.key),
            NodeNames(view.table.names, view.table.rows()),
            result.refusals,
            pre_filter=result.pre_filter,
            room=Room(view.table.idle, candidate.requests, list(view.table.axis)),
            alike=alike,
            describe=partial(obstacle, view.table, record.pod),
        )

    def group_of(self, record: PodRecord) -> GangKey:
        """Return the group whose minimum decides about a pod; a pod without one is its own."""
        found = native.membership(record) or coscheduling_source.membership(record) or bare.membership(record)
        return found[0]

    # -- one unit at a time ------------------------------------------------------------------------------------------

    def _units(self) -> Iterator[tuple[GangKey, list[PodRecord]]]:
        pending = [
            record for record in self._cluster.pods() if record.status is PodStatus.PENDING and self._serves(record)
        ]
        units: dict[GangKey, list[PodRecord]] = {}
        for record in sorted(pending, key=_turn):
            units.setdefault(self.group_of(record), []).append(record)
        yield from units.items()

    def _place(self, key: GangKey, records: Sequence[PodRecord]) -> tuple[dict[PodKey, str], KubeRefusal | None]:
        gang = self.gang(key)
        if key.source != bare.SOURCE and gang is None:
            return {}, _refusal(key, records, others=(f"the PodGroup {key} that the pods name does not exist",))
        minimum = next(gang.root.pod_sets()).min_member if gang is not None else 1
        active = self._active(key) if gang is not None else 0
        if active + len(records) < minimum:
            exist = f"{active + len(records)} of the {minimum} pods that the group needs exist"
            return {}, _refusal(key, records, needed=minimum, others=(exist,))
        needed = max(minimum - active, 1)
        nearest: KubeRefusal | None = None
        for within in self._confines(gang):
            nodes = self._try(records, within)
            left = [record for record in records if record.key not in nodes]
            if len(nodes) >= needed:
                return nodes, self._explained(key, left, left, len(nodes), len(records)) if left else None
            if nearest is None or len(nodes) > nearest.explanation.placed:
                # While the others hold their places: what refused the rest is what the group lacks.
                nearest = self._explained(key, records, left, len(nodes), needed)
            for pod in nodes:
                self._cluster.forget(pod)
        return {}, nearest or self._explained(key, records, records, 0, needed)

    def _try(self, records: Iterable[PodRecord], within: Mask | None) -> dict[PodKey, str]:
        """Assume each pod on its best node; return those that found one."""
        nodes: dict[PodKey, str] = {}
        view = self._cluster.view
        for record in records:
            candidate = Candidate.of(record.pod, view.table.axis)
            result = _FILTERS.feasible(view, candidate, within)
            if result.feasible:
                row = int(_SCORES.ranking(view, candidate, result.mask)[0])
                nodes[record.key] = view.table.names[row]
                self._cluster.assume(record.key, view.table.names[row])
        return nodes

    def _confines(self, gang: Gang | None) -> Iterator[Mask | None]:
        """Yield the nodes a group may be on: each domain of the topology key it requires, by name."""
        constraint = gang.root.topology if gang is not None else None
        if constraint is None or not constraint.required:
            yield None
            return
        table = self._cluster.view.table
        column = table.labels.column(constraint.required)
        names = table.labels.values(constraint.required)
        for number in sorted(range(len(names)), key=lambda each: names[each]):
            yield np.asarray(column == number) & table.alive

    def _explained(
        self, key: GangKey, waiting: Sequence[PodRecord], left: Sequence[PodRecord], placed: int, needed: int
    ) -> KubeRefusal:
        """Say why ``waiting`` pods wait: because of those that are ``left`` without a node."""
        alike: dict[int, list[PodRecord]] = {}
        for record in left:
            alike.setdefault(record.request.number, []).append(record)
        reports = tuple(self.report(same[0], len(same)) for same in alike.values())
        return _refusal(key, waiting, needed=needed, placed=placed, pods=reports)

    def gang(self, key: GangKey) -> Gang | None:
        """Return the gang of a group; ``None`` for a single pod, or where the group's object is missing."""
        gang = self._groups.get(key)
        if gang is None and key.source == native.WORKLOAD_SOURCE:
            workload = self._workloads.get((key.namespace, key.name.split("/")[0]))
            gang = native.workload_gang(workload, key, SourceContext()) if workload is not None else None
        return gang

    def _active(self, key: GangKey) -> int:
        return sum(
            record.status in ACTIVE_ALLOCATED and self.group_of(record) == key
            for record in self._cluster.pods()
            if record.namespace == key.namespace
        )


def _groups_of(objects: Objects) -> Iterator[tuple[GangKey, Gang]]:
    for resource, kind in _GROUP_KINDS.items():
        for found in objects.of(resource, kind):
            gang = gang_of(found, SourceContext())
            yield gang.key, gang


def _refusal(
    key: GangKey,
    records: Sequence[PodRecord],
    *,
    needed: int = 1,
    placed: int = 0,
    pods: tuple[PodReport, ...] = (),
    others: tuple[str, ...] = (),
) -> KubeRefusal:
    explanation = Explanation(
        subject=str(key),
        kind="Pod" if key.source == bare.SOURCE else "PodGroup",
        placed=placed,
        needed=needed,
        pods=pods,
        others=others,
        simulated=True,
    )
    return KubeRefusal(key, tuple(record.key for record in records), explanation)


def _turn(record: PodRecord) -> tuple[int, datetime, PodKey]:
    return -(record.pod.spec.priority or 0), record.created or _EPOCH, record.key
