"""Where a pod stands in its life, as schedulers see it, and the classes of statuses that rules speak of."""

from enum import Enum
from typing import Final

from spinney.api.core import Pod


class PodStatus(Enum):
    """The status of a pod; the value is the word shown to people."""

    PENDING = "Pending"
    GATED = "Gated"
    ALLOCATED = "Allocated"
    """Given a node in the session at hand, not yet handed to the binder."""
    PIPELINED = "Pipelined"
    """Promised a node where something is still terminating."""
    BINDING = "Binding"
    """Handed to the binder; the API server does not know its node yet."""
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    STUCK_IN_RELEASING = "StuckInReleasing"
    """Terminating for so long that nothing is promised on what it holds."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    # Identity hashing: statuses are looked up in sets on the hottest paths.
    __hash__ = object.__hash__


ACTIVE_ALLOCATED: Final = frozenset(
    {PodStatus.ALLOCATED, PodStatus.PIPELINED, PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING}
)
"""Counts toward its gang."""
ACTIVE_USED: Final = ACTIVE_ALLOCATED | {PodStatus.RELEASING, PodStatus.STUCK_IN_RELEASING}
"""Holds, or was promised, something on a node."""
WAITING: Final = frozenset({PodStatus.PENDING, PodStatus.GATED})
"""Without a node: for a scheduler, or for a gate to open."""
ALIVE: Final = ACTIVE_ALLOCATED | WAITING
"""Exists, and is not on its way out."""
CHARGED: Final = frozenset({PodStatus.ALLOCATED, PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})
"""Its queue pays for it when a session opens."""
PLACED: Final = frozenset({PodStatus.BOUND, PodStatus.RUNNING})
"""Is on a node, as the API server says."""
TERMINAL: Final = frozenset({PodStatus.SUCCEEDED, PodStatus.FAILED})


def status_of(pod: Pod) -> PodStatus:
    """Return the status of a pod from what the API server says."""
    if pod.status.phase == "Succeeded":
        return PodStatus.SUCCEEDED
    if pod.status.phase == "Failed":
        return PodStatus.FAILED
    if pod.spec.node_name:
        if pod.metadata.deletion_timestamp is not None:
            return PodStatus.RELEASING
        if pod.status.phase == "Running":
            return PodStatus.RUNNING
        return PodStatus.BOUND
    if pod.metadata.deletion_timestamp is not None:
        # Nothing was placed: such a pod neither counts toward its gang nor holds anything.
        return PodStatus.UNKNOWN
    return PodStatus.GATED if pod.spec.scheduling_gates else PodStatus.PENDING
