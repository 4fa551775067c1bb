"""The status of a PodGang that the grouper made: how far its pods have come, and what is odd about it.

The scheduler writes Scheduled and DisruptionTarget; where it does not know PodGangs they are derived from the pods, as
the operator does it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from spinney.api.conditions import find_condition, is_true, remove_condition, set_condition
from spinney.api.core import Pod
from spinney.api.meta import Condition
from spinney.api.podgang import BACKEND_READY, INITIALIZED, READY, SCHEDULED, PodGang, PodGangStatus, phase, written
from spinney.gangs.disruptions import derived_disruption

PROBLEM: Final = "GroupingProblem"
"""The condition that says what is odd about a gang; absent if nothing is."""


def status(
    gang: PodGang,
    pods: Mapping[str, Sequence[Pod]],
    *,
    problem: str,
    backend: str,
    derive_scheduled: bool,
    now: datetime,
) -> PodGangStatus:
    """Return what the status of a gang should be; ``backend`` is what its scheduler's backend complained of."""
    placed = {name: sum(bool(pod.spec.node_name) for pod in each) for name, each in pods.items()}
    ready = {name: sum(is_ready(pod) for pod in each) for name, each in pods.items()}
    conditions = written(gang.status.conditions)
    for wanted in (
        Condition(type=INITIALIZED, status="True", reason="Ready", message="every pod there is belongs to the gang"),
        _backend(backend),
        _minimum(gang, ready, READY, "ready", "Ready"),
    ):
        conditions = set_condition(conditions, wanted, now)
    if derive_scheduled:
        scheduled = _minimum(gang, placed, SCHEDULED, "placed", "Placed")
        conditions = set_condition(conditions, scheduled, now)
        disruption = derived_disruption(conditions, chain(*pods.values()), placed=scheduled.status == "True")
        if disruption is not None:
            conditions = set_condition(conditions, disruption, now)
    if problem:
        said = Condition(type=PROBLEM, status="True", reason="Odd", message=problem)
        conditions = set_condition(conditions, said, now)
    elif find_condition(conditions, PROBLEM) is not None:
        conditions = remove_condition(conditions, PROBLEM)
    total = sum(map(len, pods.values()))
    return PodGangStatus(
        phase=phase(placed=is_true(conditions, SCHEDULED), ready=is_true(conditions, READY)),
        conditions=conditions,
        placement_score=gang.status.placement_score,
        scheduled=f"{sum(placed.values())}/{total}",
    )


def is_ready(pod: Pod) -> bool:
    """Tell whether a pod is ready, or has done what it was for."""
    return pod.status.phase == "Succeeded" or pod.is_true("Ready")


def _backend(complaint: str) -> Condition:
    if complaint:
        return Condition(type=BACKEND_READY, status="False", reason="SyncFailed", message=complaint)
    return Condition(type=BACKEND_READY, status="True", reason="Synced", message="the scheduler's objects stand")


def _minimum(gang: PodGang, counts: Mapping[str, int], kind: str, word: str, reason: str) -> Condition:
    short = [
        f"{group.name} {counts.get(group.name, 0)}/{group.min_replicas}"
        for group in gang.spec.pod_groups
        if counts.get(group.name, 0) < group.min_replicas
    ]
    if short:
        text = f"{word} of the minimum: {', '.join(short)}"
        return Condition(type=kind, status="False", reason=f"MinimumNot{reason}", message=text)
    return Condition(type=kind, status="True", reason=f"Minimum{reason}", message=f"every group has its minimum {word}")
