"""A pod as its node reads it: what must run, how it ends, and how far it has come.

This is the kubelet's projection. It differs from the schedulers' (:class:`spinney.api.core.Pod`) in what it keeps:
container arguments and the restart policy rather than scheduling gates and spread constraints.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from spinney.api.affinity import Affinity, Taint, Toleration
from spinney.api.core import ContainerStatus, ResourceRequirements
from spinney.api.labels import POD_CLIQUE, POD_GANG
from spinney.api.meta import Condition, OwnerReference
from spinney.api.pod_requests import Amounts, amounts_of, peak_of_containers, total_of
from spinney.api.quantity import RawQuantity
from spinney.api.struct import Struct


class PodMeta(Struct, frozen=True, kw_only=True):
    """The metadata a node looks at."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ContainerSpec(Struct, frozen=True, kw_only=True):
    """A container to run; an init container that restarts ``Always`` is a sidecar."""

    name: str = ""
    image: str = ""
    args: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None

    @property
    def sidecar(self) -> bool:
        """Tell whether this init container keeps running beside the containers."""
        return self.restart_policy == "Always"


class ReadinessGate(Struct, frozen=True, kw_only=True):
    """A condition, written by another controller, without which the pod is not ready."""

    condition_type: str


class BoundPodSpec(Struct, frozen=True, kw_only=True):
    """What is to run, and where."""

    node_name: str = ""
    containers: tuple[ContainerSpec, ...] = ()
    init_containers: tuple[ContainerSpec, ...] = ()
    overhead: Mapping[str, RawQuantity] = {}
    resources: ResourceRequirements | None = None
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    restart_policy: str = "Always"
    host_network: bool = False
    readiness_gates: tuple[ReadinessGate, ...] = ()


class BoundPodStatus(Struct, frozen=True, kw_only=True):
    """How far the pod has come, as last written."""

    phase: str = "Pending"
    start_time: datetime | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class BoundPod(Struct, frozen=True, kw_only=True):
    """A pod that has been bound to a node."""

    metadata: PodMeta = PodMeta()
    spec: BoundPodSpec = BoundPodSpec()
    status: BoundPodStatus = BoundPodStatus()

    @property
    def terminal(self) -> bool:
        """Tell whether the pod has ended for good."""
        return self.status.phase in {"Succeeded", "Failed"}

    def is_true(self, kind: str) -> bool:
        """Tell whether the condition ``kind`` is present and True."""
        return any(c.type == kind and c.status == "True" for c in self.status.conditions)

    @property
    def clique(self) -> "Clique | None":
        """Return the clique inside a gang that this pod belongs to, if it belongs to one."""
        gang = self.metadata.labels.get(POD_GANG)
        clique = self.metadata.labels.get(POD_CLIQUE)
        return (self.metadata.namespace, gang, clique) if gang and clique else None


Clique = tuple[str, str, str]
"""Namespace, gang and clique: whose ready pods a start-up condition counts."""


def pod_requests(pod: BoundPod) -> Amounts:
    """Return what ``pod`` takes, with one of the node's pod slots."""
    spec = pod.spec
    total = peak_of_containers(
        [(amounts_of(each.resources.requests), each.sidecar) for each in spec.init_containers],
        [amounts_of(each.resources.requests) for each in spec.containers],
    )
    if spec.resources is not None:
        total |= amounts_of(spec.resources.requests)
    return {**total_of(total, amounts_of(spec.overhead)), "pods": 1}


def evicted_at(pod: BoundPod, taint: Taint, *, since: datetime) -> datetime | None:
    """Return when the pod is to be deleted because of a NoExecute taint added at ``since``; None is never.

    Untolerated is at once. Of several tolerations that match, the shortest one counts.
    """
    matching = [toleration for toleration in pod.spec.tolerations if toleration.tolerates(taint)]
    if not matching:
        return since
    seconds = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
    return since + timedelta(seconds=max(0, min(seconds))) if seconds else None
