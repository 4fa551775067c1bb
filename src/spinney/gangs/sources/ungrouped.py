"""Pods whose gang the grouper has still to name: they wait, because it may be a gang that starts as one."""

from typing import Final

from spinney.api.labels import GANG, GROUPED, KAI_SKIP_POD_GROUPER
from spinney.cluster.pods import PodRecord
from spinney.gangs.tree import DEFAULT_POD_SET, GangKey

SOURCE: Final = "ungrouped"


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang that does not exist, for a pod that belongs to a workload and that nobody has looked at yet."""
    metadata = record.pod.metadata
    if not metadata.owner_references and GANG not in metadata.labels:
        return None
    if GROUPED in metadata.labels or metadata.annotations.get(KAI_SKIP_POD_GROUPER) == "true":
        return None
    return GangKey(SOURCE, record.namespace, record.name), DEFAULT_POD_SET
