"""What a scheduler decided: which pod goes where, and which pods belong together."""

from collections.abc import Mapping

import msgspec

from spinney.api.core import POD
from spinney.api.events import ObjectReference
from spinney.api.struct import JSON
from spinney.cluster.dra.allocating import GivenDevice
from spinney.kube.errors import KubeError
from spinney.kube.keys import Key


class ClaimAllocation(msgspec.Struct, frozen=True):
    """The devices a claim of a pod is to hold, with what class and claim tell their drivers."""

    claim: Key
    devices: tuple[GivenDevice, ...]
    config: tuple[JSON, ...] = ()


class Placement(msgspec.Struct, frozen=True):
    """One pod on one node. ``uid`` makes a bind of a recreated pod of the same name fail instead of succeed."""

    pod: Key
    uid: str
    node: str
    annotations: Mapping[str, str] = {}
    claims: tuple[ClaimAllocation, ...] = ()
    gpu_groups: tuple[str, ...] = ()
    """The shared devices it was given."""


class GangPlacement(msgspec.Struct, frozen=True):
    """Pods that were placed in one decision and mean something only together."""

    gang: str
    placements: tuple[Placement, ...]
    told_of: ObjectReference | None = None
    """What the one event about its binds is about; ``None``: each pod has its own."""


class BindFailure(msgspec.Struct, frozen=True):
    """A placement that did not become a bind, and why."""

    placement: Placement
    error: KubeError


class GangOutcome(msgspec.Struct, frozen=True):
    """What became of a gang's placements; every placement is in exactly one of the two."""

    bound: tuple[Placement, ...]
    failed: tuple[BindFailure, ...]


def pod_reference(pod: Key, uid: str) -> ObjectReference:
    """Return what an event about a pod points at."""
    return ObjectReference(api_version=POD.api_version, kind=POD.kind, name=pod.name, namespace=pod.namespace, uid=uid)
