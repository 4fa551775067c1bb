"""What a pod is doing, as the operator counts it, and in which order pods go when there are too many.

A ready pod is ready even if it had a hard start: readiness is looked at before past failures.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum

from spinney.api import labels as marks
from spinney.api.core import ContainerStatus, Pod

DISTANT_PAST = datetime(1, 1, 1, tzinfo=UTC)


class PodState(Enum):
    """How far a pod has come; each pod is in exactly one."""

    READY = "ready"
    FAILED_BEFORE = "failed before"  # a container has ended with an error and is not ready again
    NOT_READY = "started, not ready"
    STARTING = "starting"
    PENDING = "pending"


def is_active(pod: Pod) -> bool:
    """Tell whether a pod counts as one of its clique's: not being deleted, not failed for good."""
    return not pod.metadata.deleting and pod.status.phase != "Failed"


def is_scheduled(pod: Pod) -> bool:
    """Tell whether a node was found for the pod."""
    return pod.is_true("PodScheduled") or bool(pod.spec.node_name)


def is_ready(pod: Pod) -> bool:
    """Tell whether the pod serves."""
    return pod.is_true("Ready")


def has_gate(pod: Pod) -> bool:
    """Tell whether our gate holds the pod."""
    return any(gate.name == marks.POD_GANG_GATE for gate in pod.spec.scheduling_gates)


def state(pod: Pod) -> PodState:
    if is_ready(pod):
        return PodState.READY
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    if any(_has_failed(status) for status in statuses):
        return PodState.FAILED_BEFORE
    if any(status.started and not status.ready for status in pod.status.container_statuses):
        return PodState.NOT_READY
    return PodState.STARTING if is_scheduled(pod) else PodState.PENDING


def deletion_order(pods: Iterable[Pod], current_hash: str, *, minimum: int | None = None) -> list[Pod]:
    """Return pods in the order in which scale-in takes them.

    Unplaced before placed, pending before running, unready before ready, old template before current, young before
    old. With ``minimum``, for schedulers whose gang only holds the minimum, the pods beyond it go before all others.
    """

    def rank(pod: Pod) -> tuple[bool, bool, int, bool, bool, float, str]:
        created = pod.metadata.creation_timestamp or DISTANT_PAST
        age = float("-inf") if pod.metadata.creation_timestamp is None else -created.timestamp()
        return (
            minimum is not None and pod_index(pod) < minimum,
            bool(pod.spec.node_name),
            {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2),
            is_ready(pod),
            pod.metadata.labels.get(marks.POD_TEMPLATE_HASH) == current_hash,
            age,
            pod.metadata.name,
        )

    return sorted(pods, key=rank)


class DuplicateIndex(ValueError):
    """Two active pods of a clique claim one index."""


def pod_index(pod: Pod) -> int:
    """Return the index of a pod, from its label or, on pods Grove made, from its host name; -1 when it has none."""
    index = pod.metadata.labels.get(marks.POD_INDEX) or pod.spec.hostname.rpartition("-")[2]
    return int(index) if index.isdecimal() else -1


def free_indexes(pods: Iterable[Pod], count: int) -> list[int]:
    """Return the lowest indexes that no active pod has, holes first."""
    taken: dict[int, str] = {}
    for pod in filter(is_active, pods):
        index = pod_index(pod)
        if index >= 0 and index in taken:
            raise DuplicateIndex(
                f"pods {taken[index]} and {pod.metadata.name} both have index {index}; delete one of them"
            )
        taken[index] = pod.metadata.name
    free: list[int] = []
    candidate = 0
    while len(free) < count:
        if candidate not in taken:
            free.append(candidate)
        candidate += 1
    return free


def _has_failed(status: ContainerStatus) -> bool:
    ended = status.last_state.terminated
    return ended is not None and ended.exit_code != 0
