"""Pods whose gang the grouper has still to name: they wait, because it may be a gang that starts as one."""

from typing import Final

from spinney.api.core import Pod
from spinney.api.labels import GANG, GROUPED, KAI_SKIP_POD_GROUPER
from spinney.cluster.pods import PodRecord
from spinney.gangs.tree import DEFAULT_POD_SET, GangKey

SOURCE: Final = "ungrouped"


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang that does not exist, for a pod that belongs to a workload and that nobody has looked at yet."""
    return (GangKey(SOURCE, record.namespace, record.name), DEFAULT_POD_SET) if is_ungrouped(record.pod) else None


def is_ungrouped(pod: Pod) -> bool:
    """Tell whether a pod belongs to a workload, and the grouper, which is to look at it, has not done so."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not pod.metadata.owner_references and GANG not in labels:
        return False
    return GROUPED not in labels and annotations.get(KAI_SKIP_POD_GROUPER) != "true"
