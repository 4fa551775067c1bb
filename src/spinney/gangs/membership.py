"""Which gang a pod belongs to: the first source that the pod names decides."""

from spinney.cluster.pods import PodRecord
from spinney.gangs.sources import bare, coscheduling, kai, native, podgang, ungrouped, volcano
from spinney.gangs.tree import GangKey


def membership(record: PodRecord) -> tuple[GangKey, str]:
    """Return the gang and pod set of a pod; a pod that names no group is a gang of its own."""
    return (
        kai.membership(record)
        or podgang.membership(record)
        or native.membership(record)
        or volcano.membership(record)
        or coscheduling.membership(record)
        or bare.membership(record)
    )


def membership_once_grouped(record: PodRecord) -> tuple[GangKey, str]:
    """Return the gang and pod set of a pod where a grouper is at work: a pod of a workload waits until it is named."""
    found = membership(record)
    return ungrouped.membership(record) or found if found[0].source == bare.SOURCE else found
