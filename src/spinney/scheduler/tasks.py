"""Pods as the session sees and moves them: tasks."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from spinney.api.core import Pod
from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import PodSet

if TYPE_CHECKING:
    from spinney.scheduler.jobs import PodGroupInfo

NOWHERE = -1
"""The row of a task that is on no node."""


class PodInfo:
    """A pod in a session. Mutable: statements change status and place; everybody else reads."""

    __slots__ = ("gpu_groups", "job", "node_name", "pod_set", "record", "request", "row", "status", "virtual")

    def __init__(
        self, record: PodRecord, job: "PodGroupInfo", pod_set: PodSet, request: RequestClass, row: int
    ) -> None:
        self.record = record
        self.job = job
        self.pod_set = pod_set
        self.request = request
        """What it asks for, devices of claims included."""
        self.status = record.status
        self.row = row
        """The row of its node in the session's table, or :data:`NOWHERE`."""
        self.node_name = record.node
        self.gpu_groups = record.gpu_groups
        self.virtual = False
        """True while the status is only an assumption of a statement."""

    def __repr__(self) -> str:
        return f"PodInfo({self.namespace}/{self.name} {self.status.value} {self.node_name or '-'})"

    @property
    def key(self) -> PodKey:
        """Return namespace and name."""
        return self.record.key

    @property
    def name(self) -> str:
        """Return the name of the pod."""
        return self.record.key.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""
        return self.record.key.namespace

    @property
    def uid(self) -> str:
        """Return the uid of the pod."""
        return self.record.uid

    @property
    def pod(self) -> Pod:
        """Return the Kubernetes object of the pod."""
        return self.record.pod

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the pod."""
        return self.record.pod.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations of the pod."""
        return self.record.pod.metadata.annotations

    @property
    def created(self) -> datetime | None:
        """Return when the pod was created."""
        return self.record.pod.metadata.creation_timestamp

    @property
    def requires_gpu(self) -> bool:
        """Tell whether the pod asks for GPUs, whole or shared."""
        return self.request.requires_gpu

    @property
    def nominated_node(self) -> str:
        """Return the node nominated for the pod, empty if none is."""
        return self.record.pod.status.nominated_node_name

    @property
    def should_allocate(self) -> bool:
        """Tell whether the pod is to be placed: it is pending, or a statement has evicted it."""
        return self.status is PodStatus.PENDING or (self.status is PodStatus.RELEASING and self.virtual)
