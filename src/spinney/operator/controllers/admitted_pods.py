"""What admission by others must leave on a pod: that by which the operator and schedulers find it, and its gate."""

import msgspec

from spinney.api import labels as marks
from spinney.api.struct import JSON
from spinney.operator.controllers.backend_questions import FOUND_BY
from spinney.operator.status.last_errors import ReconcileFault


class PodAltered(ReconcileFault):
    """A pod came back from the API server without something that it cannot do without."""


class _Owner(msgspec.Struct, frozen=True):
    uid: str


class _Gate(msgspec.Struct, frozen=True):
    name: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    labels: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_gates: tuple[_Gate, ...] = ()


class AdmittedPod(msgspec.Struct, frozen=True):
    """A pod as the API server answers that it was created, read for what must be on it."""

    metadata: _Metadata
    spec: _Spec


def check_kept(manifest: JSON, admitted: AdmittedPod) -> None:
    """Raise :class:`PodAltered` unless a pod still has the labels, the owner and the gate it was to be created with."""
    wanted, found = manifest["metadata"]["labels"], admitted.metadata.labels
    lost = [f"label {label}" for label in FOUND_BY if found.get(label) != wanted.get(label)]
    owners = {owner.uid for owner in admitted.metadata.owner_references}
    if not owners.issuperset(owner["uid"] for owner in manifest["metadata"]["ownerReferences"]):
        lost.append("metadata.ownerReferences")
    if marks.POD_GANG_GATE not in {gate.name for gate in admitted.spec.scheduling_gates}:
        lost.append(f"gate {marks.POD_GANG_GATE}")
    if lost:
        raise PodAltered(
            f"a mutating webhook or policy of the cluster changes {', '.join(lost)} of new pods, so none is kept; "
            f"have it leave alone what has the label {marks.MANAGED_BY}={wanted[marks.MANAGED_BY]}"
        )
