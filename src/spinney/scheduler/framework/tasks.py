"""Pods as the session sees and moves them: tasks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from spinney.api.core import Pod
from spinney.api.guarding import guarded
from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import PodSet

if TYPE_CHECKING:
    from spinney.scheduler.framework.jobs import PodGroupInfo

NOWHERE = -1
"""The row of a task that is on no node."""


class PodInfo(msgspec.Struct, eq=False):
    """A pod in a session. Mutable: statements change status and place; all other code reads. Compared by identity."""

    record: PodRecord
    job: "PodGroupInfo"
    pod_set: PodSet
    request: RequestClass
    """What it asks for, devices of claims included."""
    status: PodStatus
    row: int
    """The row of its node in the session's table, or :data:`NOWHERE`."""
    node_name: str = ""
    gpu_groups: tuple[str, ...] = ()
    virtual: bool = False
    """True while the status is only an assumption of a statement."""
    _guarded: Pod | None = None

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
        """Return the Kubernetes object of the pod, to look at: its mappings cannot be written to."""
        if self._guarded is None:
            self._guarded = guarded(self.record.pod)
        return self._guarded

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the pod; they cannot be written to."""
        return MappingProxyType(self.record.pod.metadata.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations of the pod; they cannot be written to."""
        return MappingProxyType(self.record.pod.metadata.annotations)

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
        return self.record.nominated_node

    @property
    def should_allocate(self) -> bool:
        """Tell whether the pod is to be placed: it is pending, or a statement has evicted it."""
        return self.status is PodStatus.PENDING or (self.status is PodStatus.RELEASING and self.virtual)


REQUEST: Final = attrgetter("request")
STATUS: Final = attrgetter("status")
NUMBER: Final = attrgetter("request.number")
"""The number of a task's request class."""


def by_request(tasks: Sequence[PodInfo]) -> dict[RequestClass, list[PodInfo]]:
    """Return tasks by what they ask for, in the order in which each request first comes."""
    kinds: Counter[RequestClass] = Counter(map(REQUEST, tasks))
    if len(kinds) == 1:
        return {tasks[0].request: list(tasks)}
    found: dict[RequestClass, list[PodInfo]] = {request: [] for request in kinds}
    for task in tasks:
        found[task.request].append(task)
    return found


def one_of_each(tasks: Sequence[PodInfo]) -> list[PodInfo]:
    """Return the first of the tasks that make each request."""
    return [alike[0] for alike in by_request(tasks).values()]
