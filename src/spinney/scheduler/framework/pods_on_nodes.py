"""Pods on a node as plugins see them, whoever scheduled them.

Records of pods are the cluster's own, so plugins are shown them through a view that cannot be written to. A function
that counts the pods on nodes is given many, and reads the object of few: it is guarded when it is read.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from spinney.api.core import Pod
from spinney.api.guarding import guarded
from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import PodStatus


class PodOnNode:
    """A pod on a node, or promised one, to look at. Two views of the same pod at the same time are equal."""

    __slots__ = ("_record",)
    _record: PodRecord

    def __init__(self, record: PodRecord) -> None:
        object.__setattr__(self, "_record", record)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a pod is what the cluster says; {name} of {self.key} cannot be set")

    def __repr__(self) -> str:
        return f"PodOnNode({self.key})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodOnNode) and self._record is other._record

    def __hash__(self) -> int:
        return hash(self._record.key)

    @property
    def key(self) -> PodKey:
        """Return namespace and name."""
        return self._record.key

    @property
    def name(self) -> str:
        """Return the name of the pod."""
        return self._record.key.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""
        return self._record.key.namespace

    @property
    def uid(self) -> str:
        """Return the uid of the pod."""
        return self._record.uid

    @property
    def status(self) -> PodStatus:
        """Return the status of the pod, as the cluster says; one that this cycle has placed is pending there."""
        return self._record.status

    @property
    def request(self) -> RequestClass:
        """Return what the pod asks for."""
        return self._record.request

    @property
    def pod(self) -> Pod:
        """Return the Kubernetes object of the pod, to look at: its mappings cannot be written to."""
        return guarded(self._record.pod)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the pod; they cannot be written to."""
        return MappingProxyType(self._record.pod.metadata.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations of the pod; they cannot be written to."""
        return MappingProxyType(self._record.pod.metadata.annotations)

    @property
    def created(self) -> datetime | None:
        """Return when the pod was created."""
        return self._record.pod.metadata.creation_timestamp

    @property
    def gpu_groups(self) -> tuple[str, ...]:
        """Return the shared GPUs that the pod uses on the node, by group id, as the cluster says."""
        return self._record.gpu_groups
