"""Pods and nodes as schedulers and controllers read them (``v1``), and the core resources.

:class:`Pod` and :class:`Node` are *projections*: they keep what this program decides by and drop the rest
while decoding, so a cache of them is small and quick to fill. They are for reading; what is written to the API server
is a patch, or JSON built from a template, never an encoded projection.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from spinney.api.affinity import (
    Affinity,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from spinney.api.conditions import find_condition, is_true
from spinney.api.meta import Condition, ConditionStatus, ProjectedObject
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.struct import Struct

POD: Final = Resource("", "v1", "Pod", "pods", short_names=("po",))
NODE: Final = Resource("", "v1", "Node", "nodes", namespaced=False, short_names=("no",))
NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False, short_names=("ns",))
SERVICE: Final = Resource("", "v1", "Service", "services", short_names=("svc",))
SERVICE_ACCOUNT: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",))
SECRET: Final = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP: Final = Resource("", "v1", "ConfigMap", "configmaps", short_names=("cm",))
EVENT: Final = Resource("", "v1", "Event", "events", short_names=("ev",))
ENDPOINTS: Final = Resource("", "v1", "Endpoints", "endpoints", short_names=("ep",))
BINDING: Final = Resource("", "v1", "Binding", "bindings")
RESOURCE_QUOTA: Final = Resource("", "v1", "ResourceQuota", "resourcequotas", short_names=("quota",))
POD_TEMPLATE: Final = Resource("", "v1", "PodTemplate", "podtemplates")
PERSISTENT_VOLUME: Final = Resource(
    "", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",)
)
PERSISTENT_VOLUME_CLAIM: Final = Resource(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",)
)

ResourceList = Mapping[str, RawQuantity]
"""Resource name to quantity, as JSON carries it; :func:`spinney.api.quantity.milli` and ``value`` read it."""


class ResourceClaimOfContainer(Struct, frozen=True, kw_only=True):
    """A pod's resource claim that a container uses."""

    name: str
    request: str = ""


class ResourceRequirements(Struct, frozen=True, kw_only=True):
    """What is asked for, and what may be used at most."""

    requests: Mapping[str, RawQuantity] = {}
    limits: Mapping[str, RawQuantity] = {}
    claims: tuple[ResourceClaimOfContainer, ...] = ()


class ContainerPort(Struct, frozen=True, kw_only=True):
    """A port, with what may conflict on a host."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Struct, frozen=True, kw_only=True):
    """A container's share of the pod; ``restart_policy`` Always makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class PersistentVolumeClaimVolume(Struct, frozen=True, kw_only=True):
    """A volume backed by a claim in the pod's namespace."""

    claim_name: str
    read_only: bool = False


class EphemeralVolume(Struct, frozen=True, kw_only=True):
    """A volume whose claim is made for the pod and named ``<pod>-<volume>``."""


class Volume(Struct, frozen=True, kw_only=True):
    """A volume, as far as it decides where a pod can run."""

    name: str
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None

    def claim_name(self, pod: str) -> str | None:
        """Return the name of the claim that backs the volume of a pod of this name, if one does."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod}-{self.name}" if self.ephemeral is not None else None


class PodSchedulingGate(Struct, frozen=True, kw_only=True):
    """Something that holds the pod back from scheduling until it is removed."""

    name: str


class PodResourceClaim(Struct, frozen=True, kw_only=True):
    """A DRA claim of the pod: an existing one, or one made from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Struct, frozen=True, kw_only=True):
    """The native pod group a pod belongs to (Kubernetes 1.36 and later)."""

    pod_group_name: str | None = None


class PodWorkloadReference(Struct, frozen=True, kw_only=True):
    """The group of a native Workload a pod belongs to (Kubernetes 1.35)."""

    name: str
    pod_group: str
    pod_group_replica_key: str = ""


class PodSpec(Struct, frozen=True, kw_only=True):
    """What a pod needs and who places it."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, RawQuantity] = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: PodWorkloadReference | None = None
    hostname: str = ""
    subdomain: str = ""
    restart_policy: str = ""
    active_deadline_seconds: int | None = None


class ContainerStateTerminated(Struct, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    finished_at: datetime | None = None


class ContainerStateWaiting(Struct, frozen=True, kw_only=True):
    """Why a container has not started."""

    reason: str = ""


class ContainerStateRunning(Struct, frozen=True, kw_only=True):
    """Since when a container runs."""

    started_at: datetime | None = None


class ContainerState(Struct, frozen=True, kw_only=True):
    """Waiting, running or terminated."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    """What a container is doing, and what the kubelet has set aside for it."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources: Mapping[str, RawQuantity] = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Which claim was made from a template for the pod."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(Struct, frozen=True, kw_only=True):
    """How far a pod has come."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resize: str = ""


class Pod(ProjectedObject, of=POD, frozen=True, kw_only=True):
    """A pod, projected."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def terminal(self) -> bool:
        """Tell whether the pod has ended and holds no resources any more."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def gated(self) -> bool:
        """Tell whether a scheduling gate holds the pod back."""
        return bool(self.spec.scheduling_gates)

    @property
    def priority(self) -> int:
        """Return the pod's priority; a pod without one counts as 0."""
        return self.spec.priority or 0

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of type ``kind``, if present."""
        return find_condition(self.status.conditions, kind)

    def is_true(self, kind: str) -> bool:
        """Tell whether the condition of type ``kind`` is present and True."""
        return is_true(self.status.conditions, kind)


class NodeSpec(Struct, frozen=True, kw_only=True):
    """What an administrator says about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(Struct, frozen=True, kw_only=True):
    """One aspect of a node's health."""

    type: str
    status: ConditionStatus
    reason: str = ""
    last_transition_time: datetime | None = None


class ContainerImage(Struct, frozen=True, kw_only=True):
    """An image a node already has; one that lost its last tag has no names, which Kubernetes writes as null."""

    names: tuple[str, ...] | None = ()
    size_bytes: int = 0


class NodeStatus(Struct, frozen=True, kw_only=True):
    """What a node has, and how it is."""

    capacity: Mapping[str, RawQuantity] = {}
    allocatable: Mapping[str, RawQuantity] = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()


class Node(ProjectedObject, of=NODE, frozen=True, kw_only=True):
    """A node, projected."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def condition(self, kind: str) -> NodeCondition | None:
        """Return the condition of type ``kind``, if present."""
        return next((condition for condition in self.status.conditions if condition.type == kind), None)

    @property
    def ready(self) -> bool:
        """Tell whether the kubelet reports the node as ready."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"


class Namespace(ProjectedObject, of=NAMESPACE, frozen=True, kw_only=True):
    """A namespace, projected: affinity looks at its labels."""
