"""The gang as handed to a scheduler (``scheduler.grove.io/v1alpha1 PodGang``).

A gang is placed when every group has its minimum. Constraints here name node label keys, not domains: the operator has
translated them. Three levels carry one: the gang, a set of groups, a group.

``status.scheduled`` (``3/4``: pods placed of pods referenced) is Spinney's addition for people who list gangs; nothing
decides by it.
"""

from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

from spinney.api.fields import Int32, described, enum, list_map, schema
from spinney.api.grove_status import Conditions
from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)

POD_GANG: Final = Resource("scheduler.grove.io", "v1alpha1", "PodGang", "podgangs", short_names=("pg",))

INITIALIZED: Final = "Initialized"
BACKEND_READY: Final = "BackendReady"
SCHEDULED: Final = "Scheduled"
READY: Final = "Ready"
UNHEALTHY: Final = "Unhealthy"
DISRUPTION_TARGET: Final = "DisruptionTarget"

PODS_MISSING: Final = "PodsMissing"
"""Why a gang is not Initialized that has been before: it scales out, or a pod of it is being replaced."""
CONSTRAINT_NOT_HONOURED: Final = "ConstraintNotHonoured"
"""Why a gang is not scheduled: it requires what the scheduler that runs does not keep, as it is configured."""
MINIMUM_NOT_PLACED: Final = "MinimumNotPlaced"
"""Why a gang is not scheduled, as its pods show where its scheduler writes no condition: nobody has refused it."""


UNWRITTEN: Final[JSON] = {
    "type": INITIALIZED,
    "status": "False",
    "reason": "PodsPending",
    "message": "waiting for its pods",
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}
"""What a new gang says before any controller has written its status: the CRD's default."""


def phase(*, placed: bool, ready: bool) -> str:
    """Return how far a gang has come whose minimum is placed, or ready, or neither."""
    if not placed:
        return "Pending"
    return "Running" if ready else "Starting"


def written(conditions: Conditions) -> Conditions:
    """Return the conditions that controllers have written."""
    return tuple(condition for condition in conditions if condition.last_transition_time != _NEVER)


class NamespacedName(Struct, frozen=True, kw_only=True):
    """An object by namespace and name."""

    namespace: str
    name: str


class TopologyPackConstraint(Struct, frozen=True, kw_only=True):
    """Node label keys: one value of ``required`` must hold all pods, one of ``preferred`` should."""

    required: str | None = None
    preferred: str | None = None


class GangTopologyConstraint(Struct, frozen=True, kw_only=True):
    """How tightly pods are packed."""

    pack_constraint: TopologyPackConstraint | None = None


class PodGroup(Struct, frozen=True, kw_only=True):
    """Pods that are alike, and how many of them the gang needs."""

    name: str
    pod_references: tuple[NamespacedName, ...] = ()
    min_replicas: Int32
    topology_constraint: GangTopologyConstraint | None = None


class TopologyConstraintGroupConfig(Struct, frozen=True, kw_only=True):
    """Groups that share a constraint: those of one scaling group replica."""

    name: str
    pod_group_names: tuple[str, ...]
    topology_constraint: GangTopologyConstraint | None = None


class PodGangSpec(Struct, frozen=True, kw_only=True):
    """The groups of a gang, and what binds them."""

    pod_groups: Annotated[tuple[PodGroup, ...], list_map("name")] = msgspec.field(default=(), name="podgroups")
    topology_constraint: GangTopologyConstraint | None = None
    topology_constraint_group_configs: Annotated[tuple[TopologyConstraintGroupConfig, ...], list_map("name")] = ()
    priority_class_name: str | None = None
    reuse_reservation_ref: NamespacedName | None = None


class PodGangStatus(Struct, frozen=True, kw_only=True):
    """How far a gang has come."""

    phase: Annotated[str, enum("Pending", "Starting", "Running", default="Pending")] | None = None
    conditions: Conditions = ()
    placement_score: (
        Annotated[float, described("1.0 when every constraint holds at its preferred level, less with each fallback.")]
        | None
    ) = None
    scheduled: Annotated[str, described("Pods placed of pods referenced, such as 3/4.")] | None = None


class PodGang(Object, of=POD_GANG, frozen=True, kw_only=True):
    """Pods that are placed together or not at all."""

    spec: PodGangSpec = PodGangSpec()
    status: Annotated[PodGangStatus, schema({"default": {"conditions": [UNWRITTEN]}})] = PodGangStatus()

    @property
    def size(self) -> int:
        """Return how many pods it refers to, or needs at least."""
        return sum(max(group.min_replicas, len(group.pod_references)) for group in self.spec.pod_groups)
