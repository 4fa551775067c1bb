"""Pods as compact records, and where they are.

A record keeps what scheduling decides by; labels and annotations are shared between pods that have equal ones. Records
are immutable: a change in the cluster replaces the record.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from spinney.api.core import Pod, PodSchedulingGroup, PodWorkloadReference
from spinney.cluster.classes import RequestClass, RequestClasses
from spinney.cluster.statuses import PodStatus, status_of

GPU_GROUP_LABEL: Final = "runai-gpu-group"
_NEVER_DECIDING = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


class PodKey(NamedTuple):
    """Namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """What is known about one pod. Compared by identity."""

    key: PodKey
    uid: str
    status: PodStatus
    request: RequestClass
    node: str = ""
    """The node it is on, or is being bound to; empty if none."""
    gpu_groups: tuple[str, ...] = ()
    """The shared devices it uses on that node."""
    created: datetime | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: str = ""
    """The uid of its controller, empty if it has none."""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class: str = ""
    preemption_policy: str = ""
    nominated_node: str = ""
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: PodWorkloadReference | None = None

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""
        return self.key.namespace

    @property
    def name(self) -> str:
        """Return the name of the pod."""
        return self.key.name


class PodRecords:
    """Makes records out of pods, sharing what pods have in common. Mutable: it remembers what it has seen."""

    def __init__(self, classes: RequestClasses) -> None:
        self.classes = classes
        self._mappings: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def record(self, pod: Pod) -> PodRecord:
        """Return the record of ``pod``."""
        metadata, spec = pod.metadata, pod.spec
        controller = metadata.controller
        return PodRecord(
            key=PodKey(metadata.namespace or "", metadata.name),
            uid=metadata.uid or f"{metadata.namespace}/{metadata.name}",
            status=status_of(pod),
            request=self.classes.of(pod),
            node=spec.node_name,
            gpu_groups=gpu_groups(metadata.labels),
            created=metadata.creation_timestamp,
            labels=self._shared(metadata.labels),
            annotations=self._shared(metadata.annotations),
            owner=controller.uid if controller is not None else "",
            scheduler_name=spec.scheduler_name,
            priority=spec.priority,
            priority_class=spec.priority_class_name,
            preemption_policy=spec.preemption_policy or "",
            nominated_node=pod.status.nominated_node_name,
            scheduling_group=spec.scheduling_group,
            workload_ref=spec.workload_ref,
        )

    def _shared(self, mapping: Mapping[str, str]) -> Mapping[str, str]:
        key = tuple(item for item in mapping.items() if item[0] not in _NEVER_DECIDING)
        return self._mappings.setdefault(key, dict(key))


class PodIndex:
    """Pods by the row of the node they are on. Mutable; a row is copied by the first writer after a fork."""

    def __init__(self) -> None:
        self._by_row: dict[int, dict[PodKey, PodRecord]] = {}
        self._own: set[int] = set()

    def of_row(self, row: int) -> Mapping[PodKey, PodRecord]:
        """Return the pods on one node. Not to be written to."""
        return self._by_row.get(row, {})

    def rows(self) -> Iterator[int]:
        """Return the rows that have pods."""
        return iter(self._by_row)

    def add(self, row: int, record: PodRecord) -> None:
        """Put a pod on a row, replacing the record it had there."""
        self._writable(row)[record.key] = record

    def remove(self, row: int, key: PodKey) -> None:
        """Take a pod off a row."""
        self._writable(row).pop(key, None)

    def drop_row(self, row: int) -> None:
        """Forget every pod of a row."""
        self._by_row.pop(row, None)
        self._own.discard(row)

    def fork(self) -> "PodIndex":
        """Return a copy that shares each row until either side writes."""
        copy = PodIndex()
        copy._by_row = dict(self._by_row)
        self._own.clear()
        return copy

    def _writable(self, row: int) -> dict[PodKey, PodRecord]:
        pods = self._by_row.get(row)
        if pods is None or row not in self._own:
            pods = self._by_row[row] = dict(pods or {})
            self._own.add(row)
        return pods


def gpu_groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the shared devices a pod's labels name: one group, or one label per group for several devices."""
    several = sorted(value for key, value in labels.items() if key.startswith(f"{GPU_GROUP_LABEL}/"))
    if several:
        return tuple(several)
    single = labels.get(GPU_GROUP_LABEL)
    return (single,) if single else ()
