"""Gangs of scheduler-plugins' PodGroups (``scheduling.x-k8s.io/v1alpha1``): one pod set with a minimum."""

from typing import Final

from spinney.api.coscheduling import PodGroup
from spinney.api.labels import COSCHEDULING_GROUP, KAI_PRIORITY_CLASS
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, single

SOURCE: Final = "coscheduling"


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang and pod set a pod says it belongs to."""
    name = record.labels.get(COSCHEDULING_GROUP)
    return (GangKey(SOURCE, record.namespace, name), DEFAULT_POD_SET) if name else None


def gang(group: PodGroup, context: SourceContext) -> Gang:
    """Return the gang of a PodGroup."""
    metadata, root = group.metadata, single(PodSet(DEFAULT_POD_SET, group.spec.min_member))
    return context.gang(GangKey.of(SOURCE, metadata), root, metadata, metadata.labels.get(KAI_PRIORITY_CLASS))
