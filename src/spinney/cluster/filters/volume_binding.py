"""VolumeBinding: the node can reach the pod's volumes, or can be given them.

A bound claim pins the pod to the nodes its volume's affinity allows. A claim that waits for its first consumer needs,
on the node, either an available volume that matches it or a class that can provision one there. Several such claims
must find different volumes: as kube-scheduler does, the smallest claim chooses first and takes the smallest volume.
Pods that share such a claim get one volume together, so that one is left which all of them reach that have nodes.
The choice is made for all nodes at once: each volume has a mask of the nodes that reach it and of those where it is
taken.
"""

from collections.abc import Container, Sequence
from typing import Final

import numpy as np

from spinney.api.affinity import NodeSelectorRequirement
from spinney.api.core import Pod
from spinney.api.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.label_masks import matches_expression, matches_selector
from spinney.cluster.filters.storage import claim_size, claim_uses, class_name, is_kept_for, volume_size
from spinney.cluster.filters.verdict import FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

NAME: Final = "VolumeBinding"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
UNREACHABLE: Final = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def restrict(view: ClusterView, pod: Candidate) -> Restriction | None:
    """Refuse a pod whose claims are missing, lost, of an earlier pod, or still to be bound by the volume controller."""
    unbound = False
    for use in claim_uses(pod.pod):
        claim = view.storage.claim(pod.pod, use.name)
        if claim is None and use.ephemeral:
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return Restriction(reason=f'{waiting} "{use.name}"')
        if claim is None:
            return Restriction(reason=f'persistentvolumeclaim "{use.name}" not found')
        if claim.status.phase == "Lost":
            lost = f'bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            return Restriction(reason=f'persistentvolumeclaim "{use.name}" {lost}')
        if claim.metadata.deletion_timestamp is not None:
            return Restriction(reason=f'persistentvolumeclaim "{use.name}" is being deleted')
        if use.ephemeral and not _is_made_for(claim, pod.pod):
            named = f"PVC {pod.namespace}/{use.name} was not created for pod {pod.namespace}/{pod.pod.metadata.name}"
            return Restriction(reason=f"{named} (pod is not owner)")
        waits = view.storage.waits_for_consumer(claim) and not claim.spec.volume_name
        unbound = unbound or not (claim.bound or waits)
    return Restriction(reason=UNBOUND) if unbound else None


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes that cannot reach a bound volume, or where an unbound claim finds none."""
    uses = claim_uses(pod.pod)
    if not uses:
        return ()
    claims = [claim for claim in (view.storage.claim(pod.pod, use.name) for use in uses) if claim is not None]
    alive = view.table.alive
    unreachable, gone = _bound(view, [claim for claim in claims if claim.bound])
    unbound = [claim for claim in claims if not claim.bound]
    return (
        Refusal.final(NAME, UNREACHABLE, alive & unreachable),
        Refusal.final(NAME, NO_VOLUME, alive & ~_bindable(view, unbound)),
        Refusal.final(NAME, VOLUME_GONE, alive & gone),
    )


def volumes_on_node(
    view: ClusterView, claims: Sequence[PersistentVolumeClaim], row: int, *, without: Container[str] = ()
) -> dict[str, PersistentVolume]:
    """Return the existing volumes that unbound claims of one pod take on a node, by claim, as the filter counted them.

    ``without`` names volumes that are spoken for. A claim that is missing in the answer is to be provisioned.
    """
    chosen: dict[str, PersistentVolume] = {}
    taken: set[str] = set()
    for claim in sorted(claims, key=claim_size):
        if SELECTED_NODE in claim.metadata.annotations:
            continue
        for volume in _offered(view, claim):
            name = volume.metadata.name
            if name not in without and name not in taken and _suits(volume, claim) and reaches(view, volume)[row]:
                chosen[claim.metadata.name] = volume
                taken.add(name)
                break
    return chosen


def places_for(view: ClusterView, claim: PersistentVolumeClaim) -> list[Mask]:
    """Return, for each volume that an unbound claim could get, the nodes that reach it, the volume it prefers first.

    What is provisioned counts as one volume, for how far it will reach is not known before.
    """
    found = [reaches(view, volume) for volume in _offered(view, claim) if _suits(volume, claim)]
    provisionable = _provisionable(view, claim)
    return [*found, provisionable] if provisionable.any() else found


def is_provisioned(storage_class: StorageClass | None) -> bool:
    """Tell whether volumes of a class are made when claims ask for them."""
    return storage_class is not None and storage_class.provisioner not in {"", _NO_PROVISIONER}


def _is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Tell whether an ephemeral claim is this pod's, not that of an earlier pod of the same name."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


def _bound(view: ClusterView, claims: list[PersistentVolumeClaim]) -> tuple[Mask, Mask]:
    """Return the nodes that fail to reach a bound volume, and those for which the first failure is a missing volume."""
    unreachable = np.zeros(view.table.capacity, dtype=np.bool_)
    gone = unreachable.copy()
    for claim in claims:
        volume = view.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            gone |= ~unreachable
        else:
            unreachable |= ~gone & ~reaches(view, volume)
    return unreachable, gone


def reaches(view: ClusterView, volume: PersistentVolume) -> Mask:
    """Return the nodes where a volume can be used."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return view.table.alive
    # Volumes are matched against the labels of a node only.
    return matches_selector(view.table, np.arange(view.table.capacity), affinity.required, with_fields=False)


def _bindable(view: ClusterView, claims: list[PersistentVolumeClaim]) -> Mask:
    """Return the nodes where every unbound claim finds a volume or can be provisioned, ``[node]``."""
    bindable = view.table.alive.copy()
    to_match: list[PersistentVolumeClaim] = []
    for claim in claims:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None:
            to_match.append(claim)
            continue
        row = view.table.find(selected)
        bindable &= view.table.mask([] if row is None else [row]) & _provisionable(view, claim)
    free: dict[str, Mask] = {}
    for claim in sorted(to_match, key=claim_size):
        if not bindable.any():
            break
        lacking = _without_volume(view, claim, bindable, free)
        bindable &= ~lacking | _provisionable(view, claim)
    return bindable


def _without_volume(view: ClusterView, claim: PersistentVolumeClaim, nodes: Mask, free: dict[str, Mask]) -> Mask:
    """Return which of ``nodes`` have no volume for ``claim``; elsewhere it takes one, which is ``free`` no longer.

    Where each volume is free is noted by its name: what one claim found out about it holds for the others.
    """
    lacking = nodes.copy()
    for volume in _offered(view, claim):
        if not _suits(volume, claim):
            continue
        name = volume.metadata.name
        if name not in free:
            free[name] = reaches(view, volume).copy()
        here = free[name] & lacking
        free[name] &= ~here
        lacking &= ~here
        if is_kept_for(volume, claim) or not lacking.any():
            break
    return lacking


def _offered(view: ClusterView, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    """Return the volumes of the claim's class that no other has and its users reach, in the order it chooses in."""
    wanted = class_name(claim)
    offered = [
        volume
        for volume in view.storage.volumes.values()
        if (volume.spec.claim_ref is None or is_kept_for(volume, claim)) and class_name(volume) == wanted
    ]
    users = view.pods.claim_rows(claim.metadata.namespace or "", claim.metadata.name)
    if users:
        offered = [volume for volume in offered if reaches(view, volume)[users].all()]
    return sorted(offered, key=lambda each: (not is_kept_for(each, claim), volume_size(each), each.metadata.name))


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.metadata.deletion_timestamp is not None or volume_size(volume) < claim_size(claim):
        return False
    if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
        return False
    if volume.spec.claim_ref is not None:
        return is_kept_for(volume, claim)
    selected = claim.spec.selector is None or claim.spec.selector.matches(volume.metadata.labels)
    modes = set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    return volume.status.phase == "Available" and selected and modes


def _provisionable(view: ClusterView, claim: PersistentVolumeClaim) -> Mask:
    storage_class = view.storage.class_of(claim)
    if storage_class is None or not is_provisioned(storage_class):
        return np.zeros(view.table.capacity, dtype=np.bool_)
    if not storage_class.allowed_topologies:
        return view.table.alive
    rows = np.arange(view.table.capacity)
    allowed = np.zeros(view.table.capacity, dtype=np.bool_)
    for term in storage_class.allowed_topologies:
        here = view.table.alive & bool(term.match_label_expressions)
        for label in term.match_label_expressions:
            within = NodeSelectorRequirement(key=label.key, operator="In", values=label.values)
            here = here & matches_expression(view.table, rows, within)
        allowed |= here
    return allowed


FILTER: Final = FilterRule(NAME, refuse, restrict)
