"""Pods as compact records, and where they are.

A record keeps what scheduling decides by and the projection it came from, which the watch cache holds anyway. Records
are immutable: a change in the cluster replaces the record.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from spinney.api.core import Pod
from spinney.cluster.classes import RequestClass, RequestClasses
from spinney.cluster.row_books import RowBooks
from spinney.cluster.statuses import PodStatus, status_of
from spinney.kube.keys import Key

GPU_GROUP_LABEL: Final = "runai-gpu-group"
_GPU_GROUPS_PREFIX: Final = f"{GPU_GROUP_LABEL}/"

PodKey = Key
"""Namespace and name."""


class PodRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """What is known about one pod. Compared by identity."""

    key: PodKey
    uid: str
    status: PodStatus
    request: RequestClass
    pod: Pod
    """The pod as the API server last showed it."""
    node: str = ""
    """The node it is on, or is being bound to; empty if none."""
    gpu_groups: tuple[str, ...] = ()
    """The shared devices it uses on that node."""
    nominated_node: str = ""
    """The node that was nominated for it; empty if none was."""

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.pod.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.pod.metadata.annotations

    @property
    def created(self) -> datetime | None:
        """Return when the pod was created."""
        return self.pod.metadata.creation_timestamp


def record_of(pod: Pod, classes: RequestClasses) -> PodRecord:
    """Return the record of ``pod``."""
    metadata = pod.metadata
    namespace = metadata.namespace or ""
    return PodRecord(
        key=PodKey(namespace, metadata.name),
        uid=metadata.uid or f"{namespace}/{metadata.name}",
        status=status_of(pod),
        request=classes.of(pod),
        pod=pod,
        node=pod.spec.node_name,
        gpu_groups=gpu_groups(metadata.labels),
        nominated_node=pod.status.nominated_node_name,
    )


class PodIndex(RowBooks[PodKey, PodRecord]):
    """Pods by the row of the node they are on. Mutable."""

    def add(self, row: int, record: PodRecord) -> bool:
        """Put a pod on a row, replacing the record it had there; return whether it was not there before."""
        pods = self._writable(row)
        new = record.key not in pods
        pods[record.key] = record
        return new

    def remove(self, row: int, key: PodKey) -> bool:
        """Take a pod off a row; return whether it was there."""
        return self._writable(row).pop(key, None) is not None


def gpu_groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the shared devices a pod's labels name: one group, or one label per group for several devices."""
    several = [value for key, value in labels.items() if key.startswith(_GPU_GROUPS_PREFIX)]
    if several:
        return tuple(sorted(several))
    single = labels.get(GPU_GROUP_LABEL)
    return (single,) if single else ()
