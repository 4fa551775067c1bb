"""What is special about volumes, their claims and classes, and about claims of devices."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from spinney.api.field_error import FieldError, forbidden, invalid, required
from spinney.api.quantity import Quantity
from spinney.api.struct import JSON, fill
from spinney.api.time import timestamp
from spinney.server.kinds.kind import Behaviour


class VolumeBehaviour(Behaviour):
    """A volume begins Pending; who plays the volume controller moves it on."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        if isinstance(spec.get("hostPath"), dict):
            spec["hostPath"].setdefault("type", "")

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp(now)}


class ClaimBehaviour(Behaviour):
    """A volume claim begins Pending; what it asks for stays, but for the size."""

    def fill_defaults(self, obj: JSON) -> None:
        fill_claim_defaults(obj)

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        spec = obj.get("spec") or {}
        causes: list[FieldError] = []
        if not spec.get("accessModes"):
            causes.append(required("spec.accessModes", "at least 1 access mode is required"))
        asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        if asked is None:
            causes.append(required("spec.resources[storage]"))
        elif Quantity.parse(asked).nano <= 0:
            causes.append(invalid("spec.resources[storage]", asked, "must be greater than zero"))
        was = (old or {}).get("spec") or {}
        if old is not None and not causes and _fixed(spec, was) != _fixed(was, was):
            detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            causes.append(forbidden("spec", f"{detail} for bound claims"))
        return causes


def fill_claim_defaults(claim: JSON) -> None:
    """Fill in a volume claim, in place; also one that stands in a template."""
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _fixed(spec: JSON, was: JSON) -> JSON:
    """Return what must stay; a claim that has no volume yet may be given one."""
    free = {"resources", "volumeAttributesClassName"}
    if not was.get("volumeName"):
        free.add("volumeName")
    return {name: value for name, value in spec.items() if name not in free}


class ClassBehaviour(Behaviour):
    """A storage class deletes what it made, and binds at once."""

    def fill_defaults(self, obj: JSON) -> None:
        fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        if not obj.get("provisioner"):
            yield required("provisioner")
        if old is not None:
            yield from (
                forbidden(name, f"updates to {name} are forbidden.")
                for name in ("parameters", "provisioner", "reclaimPolicy")
                if obj.get(name) != old.get(name)
            )


class DriverBehaviour(Behaviour):
    """A storage driver, with what goes without saying."""

    def fill_defaults(self, obj: JSON) -> None:
        fill(obj.setdefault("spec", {}), **_DRIVER, volumeLifecycleModes=["Persistent"])


_DRIVER = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
    "preventPodSchedulingIfMissing": False,
}


class DeviceClaimBehaviour(Behaviour):
    """A claim of devices asks for one of a kind, unless it says how many."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.get("spec") or {}
        if obj.get("kind") == "ResourceClaimTemplate":
            spec = spec.get("spec") or {}
        for request in (spec.get("devices") or {}).get("requests") or ():
            _fill_request(request.get("exactly"))
            for alternative in request.get("firstAvailable") or ():
                _fill_request(alternative)


def _fill_request(request: Any) -> None:
    if isinstance(request, dict):
        request.setdefault("allocationMode", "ExactCount")
        if request["allocationMode"] == "ExactCount":
            request.setdefault("count", 1)
