"""The status of a PodCliqueSet, computed from its PodCliques, scaling groups and gangs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, set_condition
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.grove_status import PodCliqueSetStatus, PodCliqueSetUpdateProgress, PodGangSummary
from spinney.api.meta import Condition, ConditionStatus
from spinney.api.podgang import BACKEND_READY, CONSTRAINT_NOT_HONOURED, SCHEDULED, PodGang
from spinney.backends.interface import Degradation
from spinney.operator.desired import labels, names, topologies
from spinney.operator.desired.hashes import TemplateHashes
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.operator.status.podcliquescalinggroup import is_clique_available, is_clique_updated

TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
CAPABILITIES_MET = "SchedulerCapabilitiesMet"
MOST_SUMMARIES = 50
MOST_FAILURES = 3


@dataclass(frozen=True)
class ObservedSet:
    """What exists for a PodCliqueSet: standalone PodCliques, scaling groups, their members by group, and gangs."""

    cliques: Mapping[str, PodClique] = field(default_factory=dict)
    members: Mapping[str, Sequence[PodClique]] = field(default_factory=dict)
    groups: Mapping[str, PodCliqueScalingGroup] = field(default_factory=dict)
    gangs: Mapping[str, PodGang] = field(default_factory=dict)


def is_replica_available(layout: Layout, observed: ObservedSet, i: int) -> bool:
    """Tell whether every PodClique and scaling group of a replica has its minimum."""
    cliques = [observed.cliques.get(place.name) for place in layout.standalone(i)]
    if not all(each is not None and not each.metadata.deleting and is_clique_available(each) for each in cliques):
        return False
    groups = [observed.groups.get(names.scaling_group(layout.name, i, group)) for group in layout.group_configs]
    return all(
        each is not None and not each.metadata.deleting and each.status.available_replicas >= each.spec.minimum
        for each in groups
    )


def is_replica_converged(layout: Layout, observed: ObservedSet, hashes: TemplateHashes, i: int) -> bool:
    """Tell whether everything of a replica follows the templates in force."""
    cliques = [observed.cliques.get(place.name) for place in layout.standalone(i)]
    groups = [observed.groups.get(names.scaling_group(layout.name, i, group)) for group in layout.group_configs]
    return all(each is not None and is_clique_updated(each, hashes) for each in cliques) and all(
        each is not None and is_group_updated(each, hashes) for each in groups
    )


def is_group_updated(group: PodCliqueScalingGroup, hashes: TemplateHashes) -> bool:
    """Tell whether a scaling group reports the templates in force and has no update open."""
    progress = group.status.update_progress
    if progress is not None and progress.update_ended_at is None:
        return False
    return group.status.current_pod_clique_set_generation_hash == hashes.generation


def counted(
    layout: Layout, observed: ObservedSet, hashes: TemplateHashes, progress: PodCliqueSetUpdateProgress
) -> PodCliqueSetUpdateProgress:
    """Return the progress with its counts: standalone PodCliques and scaling groups, updated and in all."""
    cliques = [place.name for i in range(layout.replicas) for place in layout.standalone(i)]
    groups = [
        names.scaling_group(layout.name, i, group) for i in range(layout.replicas) for group in layout.group_configs
    ]
    found_cliques = [observed.cliques[name] for name in cliques if name in observed.cliques]
    found_groups = [observed.groups[name] for name in groups if name in observed.groups]
    return msgspec.structs.replace(
        progress,
        total_pod_cliques_count=len(cliques),
        updated_pod_cliques_count=sum(is_clique_updated(each, hashes) for each in found_cliques),
        total_pod_clique_scaling_groups_count=len(groups),
        updated_pod_clique_scaling_groups_count=sum(is_group_updated(each, hashes) for each in found_groups),
    )


def set_status(
    layout: Layout,
    observed: ObservedSet,
    *,
    hashes: TemplateHashes,
    progress: PodCliqueSetUpdateProgress | None,
    conditions: Iterable[Condition],
    synced: bool,
    now: datetime,
) -> PodCliqueSetStatus:
    """Return the status of a set; ``conditions`` are the ones that hold now, and no others remain.

    ``synced`` says that everything this generation asks for has been written.
    """
    pcs = layout.pcs
    wanted = tuple(conditions)
    kinds = {condition.type for condition in wanted}
    settled = tuple(condition for condition in pcs.status.conditions if condition.type in kinds)
    for condition in wanted:
        settled = set_condition(settled, condition, now)
    available = [i for i in range(layout.replicas) if is_replica_available(layout, observed, i)]
    return PodCliqueSetStatus(
        observed_generation=pcs.metadata.generation if synced else pcs.status.observed_generation,
        conditions=settled,
        replicas=layout.replicas,
        available_replicas=len(available),
        updated_replicas=sum(is_replica_converged(layout, observed, hashes, i) for i in available),
        hpa_pod_selector=labels.selector(labels.managed(layout.name)),
        pod_gang_statuses=_summaries(observed),
        current_generation_hash=hashes.generation,
        update_progress=None if progress is None else counted(layout, observed, hashes, progress),
    )


def topology_condition(layout: Layout, topology: SetTopology) -> Condition | None:
    """Tell whether the topology levels a set speaks of exist; ``None`` where it speaks of none and none are used."""
    domains = topologies.domains(layout.pcs)
    if not topology.enabled:
        if not domains:
            return None
        text = "topology constraints are not honoured: topology-aware scheduling is disabled in this operator"
        return _topology("Unknown", "TopologyAwareSchedulingDisabled", text)
    if not domains:
        return _topology("False", "AllClusterTopologyLevelsAvailable", "the set has no topology constraints")
    if topology.name is None:
        return _topology("Unknown", "TopologyNameMissing", "no topology constraint of the set names a topology")
    if topology.binding is None:
        text = f"ClusterTopologyBinding {topology.name!r} does not exist"
        return _topology("Unknown", "ClusterTopologyNotFound", text)
    missing = [domain for domain in domains if topology.key(domain) is None]
    if missing:
        text = f"ClusterTopologyBinding {topology.name!r} has no level {', '.join(missing)}"
        return _topology("True", "ClusterTopologyLevelsUnavailable", text)
    text = f"all levels exist in ClusterTopologyBinding {topology.name!r}"
    return _topology("False", "AllClusterTopologyLevelsAvailable", text)


def capability_condition(degradations: Sequence[Degradation], gangs: Iterable[PodGang]) -> Condition:
    """Tell whether the scheduler honours all the set asks for; one line for each thing it does not.

    The backend says what its scheduler can do, the gangs what the one that runs does as it is configured.
    """
    unmet = [each for each in _failing(gangs, SCHEDULED) if each[1] == CONSTRAINT_NOT_HONOURED]
    if unmet:
        text = _lines(unmet)
        return Condition(type=CAPABILITIES_MET, status="False", reason=CONSTRAINT_NOT_HONOURED, message=text)
    if not degradations:
        text = "the scheduler honours everything the set asks for"
        return Condition(type=CAPABILITIES_MET, status="True", reason="AllSupported", message=text)
    text = "\n".join(str(each) for each in degradations)
    return Condition(type=CAPABILITIES_MET, status="False", reason="Degraded", message=text)


def backend_condition(gangs: Iterable[PodGang]) -> Condition | None:
    """Return what is wrong with the backend of some gangs; ``None`` when nothing is."""
    failing = _failing(gangs, BACKEND_READY)
    if not failing:
        return None
    return Condition(type=BACKEND_READY, status="False", reason=failing[0][1], message=_lines(failing))


def _failing(gangs: Iterable[PodGang], kind: str) -> list[tuple[str, str, str]]:
    """Return name, reason and message of the gangs of which a condition is False, in order of name."""
    return sorted(
        (gang.metadata.name, condition.reason, condition.message)
        for gang in gangs
        if (condition := find_condition(gang.status.conditions, kind)) is not None and condition.status == "False"
    )


def _lines(failing: Sequence[tuple[str, str, str]]) -> str:
    lines = [f"PodGang {name}: {message}" for name, _, message in failing[:MOST_FAILURES]]
    if len(failing) > MOST_FAILURES:
        lines.append(f"and {len(failing) - MOST_FAILURES} more")
    return "\n".join(lines)


def replica_index(labelled: Mapping[str, str]) -> int:
    """Return the set replica an object belongs to; -1 when it does not say."""
    index = labelled.get(marks.REPLICA_INDEX, "")
    return int(index) if index.isdecimal() else -1


def _topology(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=TOPOLOGY_LEVELS_UNAVAILABLE, status=status, reason=reason, message=message)


def _summaries(observed: ObservedSet) -> tuple[PodGangSummary, ...]:
    """Return the gangs in short; of very many only the first that do not run yet, or the status would not fit."""
    gangs = [gang for _, gang in sorted(observed.gangs.items())]
    if len(gangs) > MOST_SUMMARIES:
        gangs = [gang for gang in gangs if gang.status.phase != "Running"][:MOST_SUMMARIES]
    return tuple(PodGangSummary(name=gang.metadata.name, phase=gang.status.phase or "Pending") for gang in gangs)
