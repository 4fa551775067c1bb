"""The status of a PodClique, computed from its pods."""

from datetime import datetime, timedelta

import msgspec

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, set_condition
from spinney.api.grove import PodClique
from spinney.api.grove_status import PodCliqueStatus, PodCliqueUpdateProgress
from spinney.api.meta import Condition, ConditionStatus
from spinney.api.time import to_seconds
from spinney.operator.desired import labels
from spinney.operator.headcounts import Headcount

MIN_AVAILABLE_BREACHED = "MinAvailableBreached"
POD_CLIQUE_SCHEDULED = "PodCliqueScheduled"


def clique_status(
    clique: PodClique,
    pods: Headcount,
    *,
    generation_hash: str,
    progress: PodCliqueUpdateProgress | None,
    settled: bool,
    now: datetime,
) -> PodCliqueStatus:
    """Return the status of a PodClique; ``generation_hash`` is the set's, ``progress`` that of its update.

    Until the update is ``settled`` the hashes on record remain.
    """
    template_hash = clique.metadata.labels.get(marks.POD_TEMPLATE_HASH)
    updating = progress is not None and progress.update_ended_at is None
    status = PodCliqueStatus(
        observed_generation=clique.metadata.generation,
        replicas=pods.active,
        ready_replicas=pods.ready,
        scheduled_replicas=pods.scheduled,
        schedule_gated_replicas=pods.gated,
        updated_replicas=pods.made_from(template_hash),
        hpa_pod_selector=_selector(clique),
        conditions=clique.status.conditions,
        current_pod_clique_set_generation_hash=(
            generation_hash if settled else clique.status.current_pod_clique_set_generation_hash
        ),
        current_pod_template_hash=template_hash if settled else clique.status.current_pod_template_hash,
        update_progress=progress,
    )
    conditions = status.conditions
    for condition in _conditions(clique, pods, updating):
        conditions = set_since(conditions, condition, now, clique.metadata.creation_timestamp)
    return msgspec.structs.replace(status, conditions=conditions)


def set_since(
    conditions: tuple[Condition, ...], new: Condition, now: datetime, created: datetime | None
) -> tuple[Condition, ...]:
    """Set a condition; the first one ever that says "not well" holds since the object was created.

    So a reader can tell a workload that never ran from one that ran and broke (see ``was_well_before``). Times
    have whole seconds: one that ran and broke within its first second is said to have broken a second later.
    """
    old = find_condition(conditions, new.type)
    if not _is_well(new) and created is not None:
        if old is None:
            new = msgspec.structs.replace(new, last_transition_time=created)
        elif _is_well(old):
            broke = max(to_seconds(now), created + timedelta(seconds=1))
            new = msgspec.structs.replace(new, last_transition_time=broke)
    return set_condition(conditions, new, now)


def was_well_before(conditions: tuple[Condition, ...], kind: str, created: datetime | None) -> bool:
    """Tell whether a condition is well, or was at some time since the object was created."""
    condition = find_condition(conditions, kind)
    if condition is None or condition.last_transition_time is None or created is None:
        return False
    return _is_well(condition) or condition.last_transition_time > created


def _is_well(condition: Condition) -> bool:
    return condition.status == ("False" if condition.type == MIN_AVAILABLE_BREACHED else "True")


def _conditions(clique: PodClique, pods: Headcount, updating: bool) -> list[Condition]:
    least, scheduled = clique.spec.minimum, pods.scheduled
    healthy = scheduled - pods.unhealthy
    placed = f"{scheduled} of at least {least} pods are scheduled"
    serving = f"{healthy} of at least {least} pods are ready or starting"
    breach: tuple[ConditionStatus, str, str] = ("False", "SufficientReadyPods", serving)
    if updating:
        breach = ("Unknown", "UpdateInProgress", "the PodClique is being updated")
    elif clique.spec.replicas == 0 and marks.SCALING_GROUP not in clique.metadata.labels:
        # It is at zero because it was scaled. To recycle its replica would bring it back.
        breach = ("Unknown", "ScaledToZero", "the PodClique is scaled to zero")
    elif scheduled < least:
        breach = ("True", "ScheduledReplicasBelowMinAvailable", placed)
    elif healthy < least:
        breach = ("True", "InsufficientReadyPods", serving)
    enough: tuple[ConditionStatus, str, str] = ("True", "SufficientScheduledPods", placed)
    if scheduled < least:
        enough = ("False", "InsufficientScheduledPods", placed)
    return [
        Condition(type=kind, status=status, reason=reason, message=message)
        for kind, (status, reason, message) in ((MIN_AVAILABLE_BREACHED, breach), (POD_CLIQUE_SCHEDULED, enough))
    ]


def _selector(clique: PodClique) -> str | None:
    if marks.SCALING_GROUP in clique.metadata.labels:
        return None  # members are scaled through their group
    own = labels.managed(clique.metadata.labels.get(marks.PART_OF, ""))
    return labels.selector(own | {marks.POD_CLIQUE: clique.metadata.name})
