"""The status of a PodGang, as far as the operator writes it.

Operator: Initialized, BackendReady, Ready, Unhealthy, the phase, and how many pods are placed. The scheduler that
places the gang writes Scheduled, DisruptionTarget and the placement score; for a scheduler that does not know gangs the
operator derives Scheduled and DisruptionTarget from the pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.grove import PodClique
from spinney.api.meta import Condition
from spinney.api.podgang import (
    BACKEND_READY,
    INITIALIZED,
    MINIMUM_NOT_PLACED,
    PODS_MISSING,
    READY,
    SCHEDULED,
    UNHEALTHY,
    PodGang,
    PodGangStatus,
    PodGroup,
    phase,
    written,
)
from spinney.gangs.disruptions import derived_disruption
from spinney.operator.desired.gates import backend_ready_message, was_initialized
from spinney.operator.desired.topologies import Untranslatable
from spinney.operator.headcounts import Headcount
from spinney.operator.status.podclique import POD_CLIQUE_SCHEDULED, was_well_before
from spinney.operator.status.podcliquescalinggroup import is_breached

WRITTEN = (INITIALIZED, BACKEND_READY, READY, UNHEALTHY)


@dataclass(frozen=True)
class Members:
    """What exists of a gang: its PodCliques, and how many pods of each, by PodClique name."""

    cliques: Mapping[str, PodClique]
    pods: Mapping[str, Headcount]

    def counted(self, group: str) -> Headcount:
        """Return the pods of a group."""
        return self.pods.get(group) or Headcount()


@dataclass(frozen=True)
class BackendAnswer:
    """What became of the last ``sync_pod_gang``: nothing wrong, or the reason and the message to show."""

    reason: str = ""
    message: str = ""

    @property
    def ready(self) -> bool:
        """Tell whether the backend's objects stand."""
        return not self.reason


def missing(gang: PodGang, members: Members) -> str | None:
    """Return what an initialisation still waits for; ``None`` when every pod exists, is labelled and is referred to."""
    for group in gang.spec.pod_groups:
        clique = members.cliques.get(group.name)
        if clique is None or clique.metadata.deleting:
            return f"PodClique {group.name} does not exist yet"
        wanted = clique.spec.replicas or 0
        labelled = members.counted(group.name).references.get(gang.metadata.name, ())
        if len(labelled) < wanted:
            return f"{len(labelled)} of {wanted} pods of PodClique {group.name} exist"
        if labelled == group.pod_references:
            continue
        known = {reference.name for reference in group.pod_references}
        referenced = sum(pod.name in known for pod in labelled)
        if referenced < len(labelled):
            return f"{referenced} of {len(labelled)} pods of PodClique {group.name} are referred to"
    return None


def initialized(gang: PodGang, members: Members, held: Sequence[Untranslatable], *, former_life: bool) -> Condition:
    """Return the condition Initialized: whether every pod exists and is referred to.

    ``PodsMissing`` says of a gang that has been Initialized that it scales out, or that a pod of it is replaced.
    """
    before = was_initialized(gang) and not former_life
    waiting = held[0].reason if held and not before else missing(gang, members)
    if former_life:
        waiting = "the gang is being recycled"
    if waiting is not None:
        reason = PODS_MISSING if before else "PodsPending"
        return Condition(type=INITIALIZED, status="False", reason=reason, message=waiting)
    return Condition(type=INITIALIZED, status="True", reason="Ready", message="every pod exists and is referred to")


def gang_status(
    gang: PodGang,
    members: Members,
    *,
    initialized: Condition,
    backend: BackendAnswer | None,
    derive_scheduled: bool,
    now: datetime,
) -> PodGangStatus:
    """Return the operator's part of a gang's status; without an answer BackendReady stays as it is."""
    groups = [_Counted.of(group, members.counted(group.name)) for group in gang.spec.pod_groups]
    placed = all(each.scheduled >= each.group.min_replicas for each in groups) and bool(groups)
    wanted = [initialized, *_backend_ready(gang, backend), _ready(groups), _unhealthy(gang, members)]
    if derive_scheduled:
        wanted.append(_scheduled(groups, placed))
        disrupted = chain.from_iterable(pods.disrupted for pods in members.pods.values())
        disruption = derived_disruption(gang.status.conditions, disrupted, placed=placed)
        wanted += [disruption] if disruption is not None else []
    else:
        placed = is_true(gang.status.conditions, SCHEDULED)
    conditions = written(gang.status.conditions)
    for condition in wanted:
        conditions = set_condition(conditions, condition, now)
    ours = {condition.type for condition in wanted} | set(WRITTEN)
    return PodGangStatus(
        phase=phase(placed=placed, ready=is_true(conditions, READY)),
        conditions=tuple(condition for condition in conditions if condition.type in ours),
        scheduled=f"{sum(each.scheduled for each in groups)}/{_referenced(gang)}",
    )


class _Counted(NamedTuple):
    """A group of a gang and how many of its pods are placed and ready."""

    group: PodGroup
    scheduled: int
    ready: int

    @classmethod
    def of(cls, group: PodGroup, pods: Headcount) -> "_Counted":
        return cls(group, pods.scheduled, pods.ready)


def _backend_ready(gang: PodGang, backend: BackendAnswer | None) -> list[Condition]:
    if backend is None:
        condition = find_condition(gang.status.conditions, BACKEND_READY)
        return [condition] if condition is not None else []
    if backend.ready:
        message = backend_ready_message(gang)
        return [Condition(type=BACKEND_READY, status="True", reason="Synced", message=message)]
    return [Condition(type=BACKEND_READY, status="False", reason=backend.reason, message=backend.message)]


def _scheduled(groups: Sequence[_Counted], placed: bool) -> Condition:
    if placed:
        text = "every group has its minimum placed"
        return Condition(type=SCHEDULED, status="True", reason="MinimumPlaced", message=text)
    short = [f"{g.name} has {placed} of {g.min_replicas}" for g, placed, _ in groups if placed < g.min_replicas]
    text = f"not enough pods are placed: {', '.join(short)}"
    return Condition(type=SCHEDULED, status="False", reason=MINIMUM_NOT_PLACED, message=text)


def _ready(groups: Sequence[_Counted]) -> Condition:
    short = [f"{g.name} has {ready} of {g.min_replicas}" for g, _, ready in groups if ready < g.min_replicas]
    if not short and groups:
        text = "every group has its minimum ready"
        return Condition(type=READY, status="True", reason="MinimumReady", message=text)
    text = f"not enough pods are ready: {', '.join(short)}"
    return Condition(type=READY, status="False", reason="MinimumNotReady", message=text)


def _unhealthy(gang: PodGang, members: Members) -> Condition:
    breached = [
        group.name
        for group in gang.spec.pod_groups
        if (clique := members.cliques.get(group.name)) is not None and is_breached(clique) and _ran_before(clique)
    ]
    if breached:
        text = f"fewer pods than the minimum in {', '.join(breached)}"
        return Condition(type=UNHEALTHY, status="True", reason="MinimumBreached", message=text)
    return Condition(type=UNHEALTHY, status="False", reason="NoBreach", message="no group has lost its minimum")


def _ran_before(clique: PodClique) -> bool:
    return was_well_before(clique.status.conditions, POD_CLIQUE_SCHEDULED, clique.metadata.creation_timestamp)


def _referenced(gang: PodGang) -> int:
    return sum(len(group.pod_references) for group in gang.spec.pod_groups)
