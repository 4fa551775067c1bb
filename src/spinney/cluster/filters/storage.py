"""Persistent volumes, claims and storage classes by name, as filters look them up."""

from collections.abc import Mapping
from typing import Final

import msgspec

from spinney.api.core import Pod
from spinney.api.quantity import value
from spinney.api.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim, StorageClass

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


class Storage(msgspec.Struct, frozen=True):
    """The storage objects of a cluster. The mappings may be live views of caches; nothing here writes to them."""

    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = msgspec.field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = msgspec.field(default_factory=dict)
    classes: Mapping[str, StorageClass] = msgspec.field(default_factory=dict)

    def claim(self, pod: Pod, name: str) -> PersistentVolumeClaim | None:
        """Return a claim in the namespace of ``pod``."""
        return self.claims.get((pod.metadata.namespace or "", name))

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the class ``claim`` asks for, if it exists."""
        return self.classes.get(class_name(claim))

    def waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Tell whether ``claim`` is bound only once a pod that uses it has a node."""
        storage_class = self.class_of(claim)
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


class ClaimUse(msgspec.Struct, frozen=True):
    """A volume of a pod that is backed by a claim; ``ephemeral`` claims are made for the pod by a controller."""

    name: str
    ephemeral: bool


def claim_uses(pod: Pod) -> tuple[ClaimUse, ...]:
    """Return the claims ``pod`` mounts, in the order of its volumes."""
    uses = []
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.metadata.name)
        if name is not None:
            uses.append(ClaimUse(name, ephemeral=volume.persistent_volume_claim is None))
    return tuple(uses)


def class_name(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """Return the storage class a claim asks for or a volume has, empty if none."""
    return item.metadata.annotations.get(_CLASS_ANNOTATION) or item.spec.storage_class_name or ""


def claim_size(claim: PersistentVolumeClaim) -> int:
    """Return the bytes ``claim`` asks for."""
    return value(claim.spec.resources.requests.get("storage", 0))


def volume_size(volume: PersistentVolume) -> int:
    """Return the bytes ``volume`` offers."""
    return value(volume.spec.capacity.get("storage", 0))


def is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume's reference names ``claim``."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    named = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
    return named and (not reference.uid or reference.uid == claim.metadata.uid)
