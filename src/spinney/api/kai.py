"""KAI's objects: queues, pod groups and topologies, and the request its binder reads.

``Queue`` (``scheduling.run.ai/v2``), ``PodGroup`` (``scheduling.run.ai/v2alpha2``), ``BindRequest``
(``scheduling.run.ai/v1alpha2``) and ``Topology`` (``kai.scheduler/v1alpha1``).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from spinney.api.fields import Duration, Int32, OpenObject, described, enum, list_map, rule, rules, schema
from spinney.api.grove_status import Conditions
from spinney.api.meta import ConditionStatus, Object
from spinney.api.names import DNS_LABEL
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.struct import Struct

QUEUE: Final = Resource("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False)
POD_GROUP: Final = Resource("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", short_names=("pg",))
BIND_REQUEST: Final = Resource("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests")
TOPOLOGY: Final = Resource("kai.scheduler", "v1alpha1", "Topology", "topologies", namespaced=False)

UNLIMITED: Final = -1
PREEMPTIBLE: Final = "preemptible"
NON_PREEMPTIBLE: Final = "non-preemptible"

NonNegative = Annotated[Int32, schema({"minimum": 0})]
Amount = int | float


class QueueResource(Struct, frozen=True, kw_only=True):
    """A queue's share of one resource: guaranteed, weight in the surplus, cap. Absent is 0; -1 is unlimited."""

    quota: Annotated[Amount, described("Guaranteed amount; -1 is unlimited.")] | None = None
    over_quota_weight: Annotated[Amount, described("Share of the surplus; 0 receives none.")] | None = None
    limit: Annotated[Amount, described("Hard cap; -1 is unlimited, 0 lets nothing run.")] | None = None


class QueueResources(Struct, frozen=True, kw_only=True):
    """Shares by resource: GPU in devices, CPU in millicores, memory in megabytes (10^6 bytes)."""

    gpu: QueueResource = QueueResource()
    cpu: QueueResource = QueueResource()
    memory: QueueResource = QueueResource()


class QueueSpec(Struct, frozen=True, kw_only=True):
    """Place in the tree of queues, and shares."""

    display_name: str | None = None
    parent_queue: str | None = None
    priority: Annotated[int, described("Higher goes first; 100 when absent.")] | None = None
    resources: QueueResources | None = None
    preempt_min_runtime: Duration | None = None
    reclaim_min_runtime: Duration | None = None


class QueueCondition(Struct, frozen=True, kw_only=True):
    """One aspect of a queue's state."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class QueueStatus(Struct, frozen=True, kw_only=True):
    """What a queue holds and asks for."""

    conditions: Annotated[tuple[QueueCondition, ...], list_map("type")] = ()
    child_queues: tuple[str, ...] = ()
    allocated: Mapping[str, RawQuantity] = {}
    allocated_non_preemptible: Mapping[str, RawQuantity] = {}
    requested: Mapping[str, RawQuantity] = {}


class Queue(Object, of=QUEUE, frozen=True, kw_only=True):
    """A share of the cluster that jobs draw from."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class GroupTopologyConstraint(Struct, frozen=True, kw_only=True):
    """The levels (node labels, or aliases) of a Topology to pack into."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class SubGroup(Struct, frozen=True, kw_only=True):
    """A node of the tree below a pod group: a leaf counts pods, an inner one counts its children."""

    name: Annotated[str, schema({"minLength": 1, "maxLength": 63, "pattern": f"^{DNS_LABEL}$"})]
    parent: str | None = None
    min_member: NonNegative | None = None
    min_sub_group: NonNegative | None = None
    topology_constraint: GroupTopologyConstraint | None = None


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """A job: its queue, its floor, its tree of sub-groups, and how it may be disturbed."""

    queue: str = ""
    min_member: NonNegative | None = None
    min_sub_group: NonNegative | None = None
    priority_class_name: str | None = None
    preemptibility: Annotated[str, enum(PREEMPTIBLE, NON_PREEMPTIBLE, "")] | None = None
    topology_constraint: GroupTopologyConstraint | None = None
    sub_groups: Annotated[tuple[SubGroup, ...], list_map("name")] = ()
    mark_unschedulable: Annotated[bool, described("Also mark the pods; true when absent.")] | None = None
    scheduling_backoff: Annotated[Int32, described("Failed tries before backing off; -1 never.")] | None = None
    preemption_delay: Duration | None = None
    staleness_grace_period: Annotated[Duration, described("Negative never evicts a stale gang.")] | None = None


class QueueDetails(Struct, frozen=True, kw_only=True):
    """The books of the queue that stopped a job."""

    name: str = ""
    queue_requested: Mapping[str, RawQuantity] = {}
    queue_deserved: Mapping[str, RawQuantity] = {}
    queue_allocated: Mapping[str, RawQuantity] = {}
    queue_allocated_non_preemptible: Mapping[str, RawQuantity] = {}
    queue_resource_limits: Mapping[str, RawQuantity] = {}
    pod_group_requested: Mapping[str, RawQuantity] = {}
    pod_group_requested_non_preemptible: Mapping[str, RawQuantity] = {}


class UnschedulableDetails(Struct, frozen=True, kw_only=True):
    """Figures behind a reason."""

    queue_details: QueueDetails | None = None


class UnschedulableReason(Struct, frozen=True, kw_only=True):
    """One reason why a job does not run."""

    reason: str = ""
    message: str = ""
    details: UnschedulableDetails | None = None


class SchedulingCondition(Struct, frozen=True, kw_only=True):
    """Why a job does not run on a node pool; at most one is live per pool."""

    type: str
    node_pool: str = ""
    reason: str = ""
    message: str = ""
    reasons: tuple[UnschedulableReason, ...] = ()
    status: ConditionStatus = "True"
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None


class PodGroupResources(Struct, frozen=True, kw_only=True):
    """What a job holds and asks for."""

    allocated: Mapping[str, RawQuantity] = {}
    allocated_non_preemptible: Mapping[str, RawQuantity] = {}
    requested: Mapping[str, RawQuantity] = {}


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """State of a pod group."""

    conditions: Conditions = ()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()
    resources_status: PodGroupResources | None = None


class PodGroup(Object, of=POD_GROUP, frozen=True, kw_only=True):
    """A job of pods that run together."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class ReceivedGpu(Struct, frozen=True, kw_only=True):
    """Devices given to a pod; ``portion`` is a decimal text such as 0.50."""

    count: int = 0
    portion: str = ""


class ResourceClaimAllocation(Struct, frozen=True, kw_only=True):
    """The devices chosen for one claim of the pod."""

    name: str
    allocation: OpenObject | None = None


class BindRequestSpec(Struct, frozen=True, kw_only=True):
    """Which pod goes to which node, with which devices."""

    pod_name: str
    selected_node: str
    received_resource_type: Annotated[str, enum("Regular", "Fraction", "MigInstance")] | None = None
    received_gpu: ReceivedGpu | None = msgspec.field(default=None, name="receivedGPU")
    selected_gpu_groups: tuple[str, ...] = msgspec.field(default=(), name="selectedGPUGroups")
    resource_claim_allocations: tuple[ResourceClaimAllocation, ...] = ()
    extended_resource_claim_allocation: OpenObject | None = None
    predicted_numa_zones: tuple[Any, ...] = msgspec.field(default=(), name="predictedNUMAZones")
    backoff_limit: Int32 | None = None


class BindRequestStatus(Struct, frozen=True, kw_only=True):
    """Whether the binder has done it."""

    phase: Annotated[str, enum("Pending", "Succeeded", "Failed")] | None = None
    reason: str | None = None
    failed_attempts: Int32 | None = None


class BindRequest(Object, of=BIND_REQUEST, frozen=True, kw_only=True):
    """A decision of the scheduler for the binder to carry out; named like its pod."""

    spec: BindRequestSpec
    status: BindRequestStatus = BindRequestStatus()


class TopologyLevel(Struct, frozen=True, kw_only=True):
    """A level: the node label whose values are its domains, and a name it also goes by."""

    node_label: Annotated[str, schema({"minLength": 1, "maxLength": 316})]
    alias: Annotated[str, schema({"minLength": 1, "maxLength": 63})] | None = None


class TopologySpec(Struct, frozen=True, kw_only=True):
    """Levels from coarse to fine."""

    levels: Annotated[
        tuple[TopologyLevel, ...],
        schema({"minItems": 1, "maxItems": 16, "x-kubernetes-list-type": "atomic"}),
        rules(
            rule("self == oldSelf", "levels are immutable: delete the Topology and create it anew"),
            rule("self.all(x, self.exists_one(y, x.nodeLabel == y.nodeLabel))", "each nodeLabel may appear once"),
            rule(
                "self.all(x, x.nodeLabel != 'kubernetes.io/hostname' || x == self[size(self) - 1])",
                "kubernetes.io/hostname may only be the last level",
            ),
            rule(
                "self.all(x, !has(x.alias) || (self.exists_one(y, has(y.alias) && x.alias == y.alias)"
                " && !self.exists(y, x.alias == y.nodeLabel)))",
                "each alias may appear once, and must differ from every nodeLabel",
            ),
        ),
    ]


class Topology(Object, of=TOPOLOGY, frozen=True, kw_only=True):
    """The levels of a cluster by which jobs are packed."""

    spec: TopologySpec
