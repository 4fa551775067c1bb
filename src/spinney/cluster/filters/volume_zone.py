"""VolumeZone: a bound volume with zone or region labels is only used by nodes of that zone or region."""

from typing import Final

import numpy as np

from spinney.api.affinity import NodeSelectorRequirement
from spinney.api.storage import PersistentVolume
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.label_masks import matches_expression
from spinney.cluster.filters.storage import claim_uses
from spinney.cluster.filters.verdict import FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask

NAME: Final = "VolumeZone"
REASON: Final = "node(s) had no available volume zone"
_CURRENT: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS: Final = (*_CURRENT, *_CURRENT.values())
_SEPARATOR: Final = "__"


def restrict(view: ClusterView, pod: Candidate) -> Restriction | None:
    """Refuse a pod whose claim is bound to a volume that does not exist."""
    for use in claim_uses(pod.pod):
        claim = view.storage.claim(pod.pod, use.name)
        named = claim.spec.volume_name if claim is not None and not use.ephemeral else ""
        if named and named not in view.storage.volumes:
            return Restriction(reason=f'persistentvolume "{named}" not found')
    return None


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes outside the zones of the pod's volumes; nodes without any zone label are let be."""
    outside = np.zeros(view.table.capacity, dtype=np.bool_)
    for use in claim_uses(pod.pod):
        claim = view.storage.claim(pod.pod, use.name)
        volume = view.storage.volumes.get(claim.spec.volume_name) if claim is not None else None
        if volume is not None and not use.ephemeral:
            outside |= _outside(view, volume)
    if not outside.any():
        return ()
    zoned = np.logical_or.reduce([view.domains(label).labelled for label in _LABELS])
    return (Refusal.final(NAME, REASON, view.table.alive & zoned & outside),)


def _outside(view: ClusterView, volume: PersistentVolume) -> Mask:
    rows = np.arange(view.table.capacity)
    outside = np.zeros(view.table.capacity, dtype=np.bool_)
    for label in _LABELS:
        zones = tuple(zone.strip() for zone in volume.metadata.labels.get(label, "").split(_SEPARATOR))
        if not all(zones):
            continue
        inside = _in_zones(view, label, zones, rows)
        if label in _CURRENT:
            old = view.domains(label).labelled
            inside = np.where(old, inside, _in_zones(view, _CURRENT[label], zones, rows))
        outside |= ~inside
    return outside


def _in_zones(view: ClusterView, label: str, zones: tuple[str, ...], rows: Rows) -> Mask:
    return matches_expression(view.table, rows, NodeSelectorRequirement(key=label, operator="In", values=zones))


FILTER: Final = FilterRule(NAME, refuse, restrict)
