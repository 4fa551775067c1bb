"""Workloads and their pods, as these controllers read and write them."""

import copy
import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from spinney.api.core import Pod
from spinney.api.meta import Metadata, owner_reference
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, to_json

REPLICA_SET: Final = Resource("apps", "v1", "ReplicaSet", "replicasets")
DEPLOYMENT: Final = Resource("apps", "v1", "Deployment", "deployments")
STATEFUL_SET: Final = Resource("apps", "v1", "StatefulSet", "statefulsets")
JOB: Final = Resource("batch", "v1", "Job", "jobs")

BY_OWNER: Final = "owner"
"""The index of pods and ReplicaSets by the uid of what controls them."""


class WorkloadMetadata(Metadata, frozen=True, kw_only=True):
    """The metadata of a workload; its generation tells whether a status is about this spec."""

    generation: int = 0


class WorkloadObject(Struct, frozen=True, kw_only=True):
    """A workload; spec and status are as they came."""

    metadata: WorkloadMetadata = WorkloadMetadata()
    spec: JSON = msgspec.field(default_factory=dict)
    status: JSON = msgspec.field(default_factory=dict)

    @property
    def replicas(self) -> int:
        """Return how many pods are wanted; one where nothing is said."""
        return int(self.spec.get("replicas", 1))


def owner_uid(found: Pod | WorkloadObject) -> Iterable[str]:
    """Return the uid of what controls an object."""
    controller = found.metadata.controller
    return (controller.uid,) if controller is not None else ()


def pod_of(resource: Resource, found: WorkloadObject, **metadata: Any) -> JSON:
    """Return a pod of the workload's template; ``labels`` and ``annotations`` are added to the template's."""
    template = copy.deepcopy(found.spec.get("template") or {})
    own: JSON = template.get("metadata") or {}
    for field in ("labels", "annotations"):
        if more := metadata.pop(field, None):
            own[field] = {**(own.get(field) or {}), **more}
    owner = to_json(owner_reference(resource, found.metadata))
    own |= {"namespace": found.metadata.namespace, "ownerReferences": [owner], **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template.get("spec") or {}}


def is_active(pod: Pod) -> bool:
    """Tell whether a pod runs, or is going to."""
    return not pod.terminal and not pod.metadata.deleting


def is_ready(pod: Pod) -> bool:
    """Tell whether a pod is active and ready."""
    return is_active(pod) and pod.is_true("Ready")


def dispensable_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in the order in which they are given up: not placed, not ready, then the youngest."""
    return sorted(
        pods,
        key=lambda pod: (
            bool(pod.spec.node_name),
            pod.is_true("Ready"),
            -(pod.metadata.creation_timestamp.timestamp() if pod.metadata.creation_timestamp is not None else 0.0),
            pod.metadata.name,
        ),
    )


def template_hash(found: WorkloadObject) -> str:
    """Return a short hash of what pods are made of: the same template gives the same one."""
    text = msgspec.json.encode(found.spec.get("template") or {}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:10]


def resolved(value: int | str | None, of: int, *, up: bool) -> int:
    """Return a number, or a percentage of ``of`` (a quarter where none is said), rounded as Kubernetes rounds it."""
    value = "25%" if value is None else value
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * of
    return -(-share // 100) if up else share // 100


def condition(kind: str, holds: bool | None, reason: str, message: str, *, before: Iterable[JSON], now: str) -> JSON:
    """Return a condition, unknown without an answer; its time stays while its status does, as those ``before`` show."""
    status = "Unknown" if holds is None else str(holds)
    same = (each for each in before if (each.get("type"), each.get("status")) == (kind, status))
    since = next((each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
