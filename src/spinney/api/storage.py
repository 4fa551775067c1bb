"""Volumes as far as they decide where a pod can run: claims, volumes, classes and what nodes can attach."""

from collections.abc import Mapping
from typing import Final

from spinney.api.affinity import NodeSelector
from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, ResourceRequirements
from spinney.api.events import ObjectReference
from spinney.api.meta import ProjectedObject
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.selectors import LabelSelector
from spinney.api.struct import Struct

STORAGE_CLASS: Final = Resource(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short_names=("sc",)
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True):
    """What volume is asked for; an absent class means the default one, an empty class none."""

    access_modes: tuple[str, ...] = ()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True):
    """Whether the claim has its volume."""

    phase: str = ""


class PersistentVolumeClaim(ProjectedObject, of=PERSISTENT_VOLUME_CLAIM, frozen=True, kw_only=True):
    """A claim, projected."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def bound(self) -> bool:
        """Tell whether the claim and its volume have found each other."""
        return self.spec.volume_name != "" and "pv.kubernetes.io/bind-completed" in self.metadata.annotations


class VolumeNodeAffinity(Struct, frozen=True, kw_only=True):
    """Which nodes can use the volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True, kw_only=True):
    """What a volume offers, and where."""

    capacity: Mapping[str, RawQuantity] = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Struct, frozen=True, kw_only=True):
    """Whether a volume is free."""

    phase: str = ""


class PersistentVolume(ProjectedObject, of=PERSISTENT_VOLUME, frozen=True, kw_only=True):
    """A volume, projected."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorRequirement(Struct, frozen=True, kw_only=True):
    """A node label and the values it may have."""

    key: str
    values: tuple[str, ...]


class TopologySelectorTerm(Struct, frozen=True, kw_only=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(ProjectedObject, of=STORAGE_CLASS, frozen=True, kw_only=True):
    """How volumes of a class are made."""

    provisioner: str
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
