"""The columns of volumes, their claims and classes, and of devices."""

from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.rest.tables.columns import AGE, CREATED, NAME, Column, at, field, named

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(path: str) -> Column:
    def cell(obj: JSON, _: datetime) -> str:
        given = at(obj, path, ())
        return ",".join(short for name, short in _MODES.items() if name in given)

    return Column("Access Modes", cell)


def _claim(volume: JSON, _: datetime) -> str:
    reference = at(volume, "spec.claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


def _state(obj: JSON, _: datetime) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(at(obj, "status.phase", ""))


def _bound_capacity(claim: JSON, _: datetime) -> str:
    return at(claim, "status.capacity.storage", "") if at(claim, "spec.volumeName") else ""


def _audiences(driver: JSON, _: datetime) -> str:
    return ",".join(str(each.get("audience", "")) for each in at(driver, "spec.tokenRequests", ())) or "<unset>"


def _claim_state(claim: JSON, _: datetime) -> str:
    states = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    if at(claim, "status.allocation"):
        states += ["allocated", *(["reserved"] if at(claim, "status.reservedFor") else [])]
    return ",".join(states) or "pending"


_ATTRIBUTES = field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>")
_VOLUME_MODE = field("VolumeMode", "spec.volumeMode", "<unset>", priority=1)
_BOOLEAN = "boolean"

STORAGE: dict[str, tuple[Column, ...]] = {
    "persistentvolumeclaims": (
        NAME,
        Column("Status", _state),
        field("Volume", "spec.volumeName", ""),
        Column("Capacity", _bound_capacity),
        _modes("status.accessModes"),
        field("StorageClass", "spec.storageClassName", ""),
        _ATTRIBUTES,
        AGE,
        _VOLUME_MODE,
    ),
    "persistentvolumes": (
        NAME,
        field("Capacity", "spec.capacity.storage", ""),
        _modes("spec.accessModes"),
        field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
        Column("Status", _state),
        Column("Claim", _claim),
        field("StorageClass", "spec.storageClassName", ""),
        _ATTRIBUTES,
        field("Reason", "status.reason", ""),
        AGE,
        _VOLUME_MODE,
    ),
    "storageclasses.storage.k8s.io": named(
        field("Provisioner", "provisioner", ""),
        field("ReclaimPolicy", "reclaimPolicy", "Delete"),
        field("VolumeBindingMode", "volumeBindingMode", "<unset>"),
        field("AllowVolumeExpansion", "allowVolumeExpansion", False),
    ),
    "csidrivers.storage.k8s.io": named(
        field("AttachRequired", "spec.attachRequired", True, kind=_BOOLEAN),
        field("PodInfoOnMount", "spec.podInfoOnMount", False, kind=_BOOLEAN),
        field("StorageCapacity", "spec.storageCapacity", False, kind=_BOOLEAN),
        Column("TokenRequests", _audiences),
        field("RequiresRepublish", "spec.requiresRepublish", False, kind=_BOOLEAN),
        Column("Modes", lambda obj, _: ",".join(at(obj, "spec.volumeLifecycleModes", ())) or "<none>"),
    ),
    "csinodes.storage.k8s.io": named(
        Column("Drivers", lambda obj, _: len(at(obj, "spec.drivers", ())), type="integer"),
    ),
    "csistoragecapacities.storage.k8s.io": (NAME, CREATED),
    "volumeattachments.storage.k8s.io": named(
        Column("Attacher", lambda obj, _: at(obj, "spec.attacher", ""), format="name"),
        field("PV", "spec.source.persistentVolumeName", ""),
        field("Node", "spec.nodeName", ""),
        field("Attached", "status.attached", False, kind=_BOOLEAN),
    ),
    "resourceclaims.resource.k8s.io": named(Column("State", _claim_state)),
    "resourceslices.resource.k8s.io": named(
        field("Node", "spec.nodeName", ""),
        field("Driver", "spec.driver", ""),
        field("Pool", "spec.pool.name", ""),
    ),
}
