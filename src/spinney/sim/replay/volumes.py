"""Volumes of a replay: claims that wait for their first pod get one where it is placed, as the binder has it done.

The pods of a gang get all their volumes or none. A claim keeps its volume when its job begins anew, unless it was made
for one pod; a volume that a claim gives back is free again, or gone if it was provisioned.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from spinney.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.core import PERSISTENT_VOLUME_CLAIM, Node, Pod
from spinney.api.events import ObjectReference
from spinney.api.meta import Metadata
from spinney.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from spinney.cluster.filters.storage import claim_uses, class_name
from spinney.cluster.filters.volume_binding import is_provisioned, reaches, volumes_on_node
from spinney.kube.keys import Key, key_of
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.replay.trace import ClusterChange

_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}


class PlayedVolumes:
    """The volumes of a replay. Mutable.

    ``reach`` says by class which labels of nodes a provisioned volume goes by, ``nodes`` what labels they have.
    """

    def __init__(self, inventory: Inventory, reach: Mapping[str, tuple[str, ...]], nodes: Mapping[str, Node]) -> None:
        self._inventory = inventory
        self._reach = reach
        self._nodes = nodes
        self._recorded: dict[str, PersistentVolume] = {}
        """Volumes as the recording has them now."""
        self._given: dict[Key, tuple[PersistentVolumeClaim, PersistentVolume]] = {}
        """Claims that were given a volume here, as they were before, and the volume."""
        self._taken: set[str] = set()

    def change(self, change: ClusterChange, found: PersistentVolume) -> None:
        """Have a volume come, change or go; one that was given to a claim stays as it is until it is given back."""
        name = found.metadata.name
        if change.gone:
            self._recorded.pop(name, None)
        else:
            self._recorded[name] = found
        if name not in self._taken:
            self._show(found)

    def put_claim(self, claim: PersistentVolumeClaim) -> None:
        """Have a claim come or change; it keeps a volume that it was given here, one made anew under its name not."""
        key = key_of(claim)
        before, volume = self._given.get(key, (None, None))
        if before is None or volume is None or claim.bound or before.metadata.uid != claim.metadata.uid:
            self.give_back(key)
            self._inventory.apply(claim)
        else:
            self._given[key] = claim, volume
            self._inventory.apply(_bound(claim, volume))

    def take(self, placed: Sequence[tuple[Pod, str]]) -> bool:
        """Give pods the volumes that their claims wait for, each on its node; ``False``, and none, if some lack."""
        given: list[Key] = []
        for pod, node in placed:
            for claim, volume in self._chosen(pod, node):
                if volume is None:
                    for key in given:
                        self.give_back(key)
                    return False
                self._give(claim, volume)
                given.append(key_of(claim))
        return True

    def of(self, keys: Sequence[Key]) -> dict[Key, str]:
        """Return the volumes of claims that have one."""
        claims = self._inventory.cluster.view.storage.claims
        found = ((key, claims.get((key.namespace, key.name))) for key in keys)
        return {key: claim.spec.volume_name for key, claim in found if claim is not None and claim.bound}

    def give_back(self, key: Key) -> None:
        """Have a claim be without the volume that it was given here, if it was."""
        if key not in self._given:
            return
        claim, volume = self._given.pop(key)
        self._taken.discard(volume.metadata.name)
        self._inventory.apply(claim)
        self._show(volume)

    def _show(self, found: PersistentVolume) -> None:
        """Have schedulers see a volume as the recording has it now."""
        recorded = self._recorded.get(found.metadata.name)
        if recorded is not None:
            self._inventory.apply(recorded)
        else:
            self._inventory.delete(found)

    def _chosen(self, pod: Pod, node: str) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume | None]]:
        """Yield the claims of a pod that wait for it, each with the volume it gets on a node, if it gets one."""
        view = self._inventory.cluster.view
        row = view.table.find(node)
        found = [view.storage.claim(pod, use.name) for use in claim_uses(pod)]
        claims = [each for each in found if each is not None and not each.bound]
        if row is None:
            return
        for claim in (each for each in found if each is not None and each.bound):
            volume = view.storage.volumes.get(claim.spec.volume_name)
            if volume is None or not reaches(view, volume)[row]:  # bound for a pod of the same gang, just now
                yield claim, None
        if not claims:
            return
        there = volumes_on_node(view, claims, row)
        for claim in claims:
            volume = there.get(claim.metadata.name)
            if volume is None and is_provisioned(view.storage.class_of(claim)):
                volume = self._provisioned(claim, node)
            yield claim, volume

    def _give(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        key = key_of(claim)
        self._given[key] = claim, volume
        self._taken.add(volume.metadata.name)
        owner = ObjectReference(
            kind=PERSISTENT_VOLUME_CLAIM.kind, namespace=key.namespace, name=key.name, uid=claim.metadata.uid or ""
        )
        status = PersistentVolumeStatus(phase="Bound")
        self._inventory.apply(replace(volume, spec=replace(volume.spec, claim_ref=owner), status=status))
        self._inventory.apply(_bound(claim, volume))

    def _provisioned(self, claim: PersistentVolumeClaim, node: str) -> PersistentVolume:
        """Return a volume that is made for a claim and can be used where those of its class could."""
        labels = self._nodes[node].metadata.labels
        here = tuple(
            NodeSelectorRequirement(key=key, operator="In", values=(labels[key],))
            for key in self._reach.get(class_name(claim), ())
            if key in labels
        )
        required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=here),))
        return PersistentVolume(
            metadata=Metadata(name=f"provisioned-{claim.metadata.namespace}-{claim.metadata.name}"),
            spec=PersistentVolumeSpec(
                capacity=claim.spec.resources.requests,
                access_modes=claim.spec.access_modes,
                storage_class_name=class_name(claim),
                volume_mode=claim.spec.volume_mode,
                node_affinity=VolumeNodeAffinity(required=required) if here else None,
            ),
        )


def _bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations={**claim.metadata.annotations, **_BOUND}),
        spec=replace(claim.spec, volume_name=volume.metadata.name),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )
