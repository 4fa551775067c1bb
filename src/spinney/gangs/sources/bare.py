"""Pods that belong to no group: each is a gang of one."""

from typing import Final

from spinney.api.labels import KAI_LAST_START, KAI_PREEMPTIBILITY, KAI_PRIORITY_CLASS
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import SourceContext, is_preemptible, timestamp_of
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, single

SOURCE: Final = "pod"


def membership(record: PodRecord) -> tuple[GangKey, str]:
    """Return the gang and pod set of a pod that names none."""
    return GangKey(SOURCE, record.namespace, record.name), DEFAULT_POD_SET


def gang(record: PodRecord, context: SourceContext) -> Gang:
    """Return the gang of a single pod."""
    class_name = record.labels.get(KAI_PRIORITY_CLASS) or record.pod.spec.priority_class_name
    priority = context.priorities.get(class_name)
    if priority is None:
        priority = record.pod.spec.priority if record.pod.spec.priority is not None else context.default_priority
    return Gang(
        key=GangKey(SOURCE, record.namespace, record.name),
        root=single(PodSet(DEFAULT_POD_SET, 1)),
        uid=record.uid,
        queue=context.queue(record.labels),
        priority=priority,
        priority_class=class_name,
        preemptible=is_preemptible(record.labels.get(KAI_PREEMPTIBILITY), priority),
        preempts=context.preempts(class_name),
        created=record.created,
        last_start=timestamp_of(record.annotations, KAI_LAST_START),
    )


def makes_same_gang(old: PodRecord, new: PodRecord) -> bool:
    """Tell whether nothing that :func:`gang` reads differs between two states of a pod."""
    return old.pod is new.pod or _aspects(old) == _aspects(new)


def _aspects(record: PodRecord) -> tuple[object, ...]:
    spec = record.pod.spec
    return (record.uid, record.labels, record.annotations, spec.priority, spec.priority_class_name, record.created)
