"""VolumeRestrictions: a claim with access mode ReadWriteOncePod is used by one pod at a time."""

from typing import Final

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.storage import READ_WRITE_ONCE_POD, claim_uses
from spinney.cluster.filters.verdict import FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView

NAME: Final = "VolumeRestrictions"
IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def restrict(view: ClusterView, pod: Candidate) -> Restriction | None:
    """Refuse a pod whose claim does not exist."""
    for use in claim_uses(pod.pod):
        if not use.ephemeral and view.storage.claim(pod.pod, use.name) is None:
            return Restriction(reason=f'persistentvolumeclaim "{use.name}" not found')
    return None


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse all nodes while another pod uses a claim that only one may."""
    for use in claim_uses(pod.pod):
        claim = view.storage.claim(pod.pod, use.name)
        exclusive = claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes
        if exclusive and not use.ephemeral and view.pods.claim_users(pod.namespace, use.name):
            return (Refusal.evictable(NAME, IN_USE, view.table.alive.copy()),)
    return ()


FILTER: Final = FilterRule(NAME, refuse, restrict)
