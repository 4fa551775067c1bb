"""The case format as frozen structs, field for field.

Amounts are as the files give them: millicores, bytes, devices, and -1 for unlimited. Fields that the format documents
as optional, or for which it names the default, have that default here; everything else must be present.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Action = Literal["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
Placement = Literal["binpack", "spread"]
GpuKind = Literal["whole", "fraction", "gpu_memory", "mig", "dra", "none"]
TaskState = Literal["Pending", "Pipelined", "Binding", "Bound", "Running", "Releasing", "Succeeded", "Failed"]


class _Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the format's structs."""


class Allocatable(_Struct, frozen=True, kw_only=True):
    """What a node offers; ``gpus`` counts whole devices of both the device plugin and DRA."""

    cpu_milli: int
    memory_bytes: int
    gpus: int
    pods: int = 110
    mig: Mapping[str, int] = {}


class Taint(_Struct, frozen=True, kw_only=True):
    """A node taint; no known case has one."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Node(_Struct, frozen=True, kw_only=True):
    """A node, ready."""

    name: str
    allocatable: Allocatable
    gpus_device_plugin: int
    gpus_dra: int = 0
    physical_gpus: int
    gpu_memory: int = 100
    mig_enabled: bool = False
    mig_strategy: Literal["mixed", "single"] | None = None
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()


class Topology(_Struct, frozen=True, kw_only=True):
    """A topology: node-label keys, widest first."""

    name: str
    levels: tuple[str, ...]


class ResourceShare(_Struct, frozen=True, kw_only=True):
    """What a queue is entitled to of one resource; -1 is unlimited."""

    quota: float
    limit: float
    over_quota_weight: float


class Queue(_Struct, frozen=True, kw_only=True):
    """A queue or department; ``parent`` null is the top level."""

    name: str
    parent: str | None = None
    priority: int = 100
    creation_rank: int
    synthesized: bool = False
    gpu: ResourceShare
    cpu_milli: ResourceShare
    memory_bytes: ResourceShare


class TopologyConstraint(_Struct, frozen=True, kw_only=True):
    """Where the pods of a group must, or should, be together."""

    topology: str
    required_level: str | None = None
    preferred_level: str | None = None


class PodSet(_Struct, frozen=True, kw_only=True):
    """A leaf of the gang tree."""

    name: str
    min_member: int
    topology_constraint: TopologyConstraint | None = None
    tasks: tuple[str, ...]


class Group(_Struct, frozen=True, kw_only=True):
    """An inner node of the gang tree; all of its members are needed."""

    name: str
    topology_constraint: TopologyConstraint | None = None
    groups: "tuple[Group, ...]" = ()
    pod_sets: tuple[PodSet, ...] = ()


class Requests(_Struct, frozen=True, kw_only=True):
    """What a task asks for; ``gpu_kind`` says which of the GPU fields counts."""

    cpu_milli: int
    memory_bytes: int
    gpu_kind: GpuKind
    gpus: float = 0
    gpu_fraction: float | None = None
    gpu_memory: int | None = None
    mig: Mapping[str, int] = {}
    dra_claims: tuple[str, ...] = ()


class NodeAffinity(_Struct, frozen=True, kw_only=True, rename={"values": "in"}):
    """A required node affinity: the label's value is one of ``values``."""

    key: str
    values: tuple[str, ...]


class PodAffinity(_Struct, frozen=True, kw_only=True):
    """A required affinity or anti-affinity to pods with these labels."""

    topology_key: str
    match_labels: Mapping[str, str]


class Task(_Struct, frozen=True, kw_only=True):
    """A pod of a job."""

    name: str
    state: TaskState
    node: str | None = None
    pod_set: str
    requests: Requests
    gpu_groups: tuple[str, ...] = ()
    task_priority: int | None = None
    node_affinity: NodeAffinity | None = None
    pod_labels: Mapping[str, str] = {}
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
    legacy_mig: bool = False


class Job(_Struct, frozen=True, kw_only=True):
    """A gang of tasks in a queue."""

    name: str
    namespace: str = ""
    queue: str
    priority: int
    preemptible: bool
    preemptibility_explicit: bool = False
    created_minutes_ago: float
    creation_rank: int
    started_minutes_ago: float | None = None
    stale_for_seconds: float | None = None
    after_release: Literal["back_to_pending", "stay_releasing"] = "back_to_pending"
    best_effort: bool = False
    root_group: Group
    tasks: tuple[Task, ...]


class Device(_Struct, frozen=True, kw_only=True, order=True):
    """A device of a pool."""

    pool: str
    device: str


class Slice(_Struct, frozen=True, kw_only=True):
    """The devices a driver offers on a node."""

    name: str
    node: str
    pool: str
    driver: str
    devices: tuple[str, ...]


class Claim(_Struct, frozen=True, kw_only=True):
    """A claim for ``count`` devices of a class, and what it holds already."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = {}
    device_class: str
    count: int
    allocated_devices: tuple[Device, ...] = ()
    reserved_for_tasks: tuple[str, ...] = ()
    reserved_for_foreign_count: int = 0


class DynamicResources(_Struct, frozen=True, kw_only=True):
    """Device claims and what they can be met from."""

    device_classes: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()
    claims: tuple[Claim, ...] = ()
    max_consumers_per_claim: int = 256


class NodePlacement(_Struct, frozen=True, kw_only=True):
    """Whether tasks are packed onto few nodes or spread over many."""

    gpu: Placement
    cpu: Placement


class MinRuntime(_Struct, frozen=True, kw_only=True):
    """How long a job may run undisturbed."""

    preempt: float = 0
    reclaim: float = 0


class Config(_Struct, frozen=True, kw_only=True):
    """Which parts of the scheduler are on. The flags restate what ``plugins`` implies."""

    plugins: tuple[str, ...]
    plugin_set: str = "custom"
    node_filters: bool = True
    fair_share_and_quota: bool = True
    job_order_by_priority: bool = True
    job_order_by_elastic_state: bool = True
    prefer_nodes_that_fit_now: bool = True
    prefer_nodes_with_shared_gpu: bool = True
    prefer_cpu_only_nodes_for_cpu_tasks: bool = True
    node_placement: NodePlacement | None = None
    shared_gpu_order: Literal["pack", "spread"] | None = None
    topology_aware: bool = True
    dra: bool = True
    stale_gang_grace_seconds: float = 0
    allow_consolidating_reclaim: bool = True
    max_consolidation_victims: int | None = None
    jobs_per_queue_per_action_limit: int | Mapping[str, int] | None = None
    min_node_gpu_memory: int = 100
    min_runtime_seconds: MinRuntime = MinRuntime()
    reclaimer_saturation_multiplier: float = 1.0
    fair_share_k: float = 1.0


class Rounds(_Struct, frozen=True, kw_only=True):
    """How often the actions run."""

    mode: Literal["single_session", "multi_round"]
    until_match: int = 2
    after_match: int = 5


class Faults(_Struct, frozen=True, kw_only=True):
    """What goes wrong outside the scheduler."""

    every_bind_fails: bool = False


class DomainFit(_Struct, frozen=True, kw_only=True):
    """How many of the required pods a domain holds."""

    pods_fit: int
    pods_required: int


class FitError(_Struct, frozen=True, kw_only=True):
    """Why a job is pending, exactly."""

    kind: str = "topology_unsatisfied"
    topology: str = ""
    required_level: str = ""
    domains: Mapping[str, DomainFit] = {}
    cluster_lacks_resources: bool = False


class Expectation(_Struct, frozen=True, kw_only=True):
    """What must hold of a job's every task, or of one task. Null is not asserted."""

    status: str
    node: str | None = None
    gpus_requested: float | None = None
    gpus_accepted: float | None = None
    cpu_milli_requested: int | None = None
    memory_bytes_requested: int | None = None
    start_time_older_than_seconds: float | None = None
    fit_error: FitError | None = None
    gpu_groups_hint: tuple[str, ...] = ()
    gpus_tentative_then_rolled_back: float | None = None


class NodeExpectation(_Struct, frozen=True, kw_only=True):
    """Whole devices of a node after the session."""

    idle_gpus: float
    releasing_gpus: float


class Limits(_Struct, frozen=True, kw_only=True):
    """Upper bounds on committed operations per session."""

    binds_max: int
    evictions_max: int
    pipelines_max: int


class Expected(_Struct, frozen=True, kw_only=True):
    """What is asserted."""

    jobs: Mapping[str, Expectation] = {}
    tasks: Mapping[str, Expectation] = {}
    nodes: Mapping[str, NodeExpectation] = {}
    limits_per_round: Limits | None = None
    never_checked: Mapping[str, Expectation] = {}
    must_terminate: bool = False


class Case(_Struct, frozen=True, kw_only=True):
    """One case: a cluster, what to run on it, and what must come of it."""

    id: str
    features: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    actions: tuple[Action, ...]
    rounds: Rounds
    config: Config
    nodes: tuple[Node, ...]
    topologies: tuple[Topology, ...] = ()
    departments: tuple[Queue, ...] = ()
    queues: tuple[Queue, ...]
    jobs: tuple[Job, ...]
    dra: DynamicResources | None = None
    faults: Faults = Faults()
    expected: Expected
