"""When a pod leaves a node that has failed: the cluster deletes it once it no longer tolerates the node's taint."""

from datetime import datetime, timedelta

from spinney.api.affinity import Taint
from spinney.nodes.pods import BoundPod


def evicted_at(pod: BoundPod, taint: Taint, *, since: datetime) -> datetime | None:
    """Return when the pod is to be deleted because of a NoExecute taint added at ``since``; None is never.

    Untolerated is at once. Of several tolerations that match, the shortest one counts.
    """
    matching = [toleration for toleration in pod.spec.tolerations if toleration.tolerates(taint)]
    if not matching:
        return since
    seconds = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
    return since + timedelta(seconds=max(0, min(seconds))) if seconds else None
