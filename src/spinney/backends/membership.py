"""Which pods are in the scheduler's gang, for schedulers that count one minimum for all.

A scheduler that only knows "at least n of these pods" would be satisfied by any n. So only the minimum of each group is
in its gang, and the pods beyond are ordinary pods, released once the gang is scheduled. Member is who has one of the
first indexes of its group: indexes are filled from below, so a group with fewer than its minimum of live members gets
one next, and scale-in takes the pods beyond the minimum first.
"""

from collections.abc import Mapping

from spinney.api import labels as marks
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.podgang import SCHEDULED, PodGang


def minimum_count(gang: PodGang) -> int:
    """Return how many pods a gang cannot do without."""
    return sum(group.min_replicas for group in gang.spec.pod_groups)


def may_release_beyond(pod: Pod, gang: PodGang) -> bool:
    """Release members at once, and the pods beyond the minimum when the gang is scheduled."""
    return is_member(pod.metadata.labels, gang) or is_true(gang.status.conditions, SCHEDULED)


def is_member(labels: Mapping[str, str], gang: PodGang) -> bool:
    """Tell whether a pod with these labels belongs to the minimum of its group."""
    name, index = labels.get(marks.POD_CLIQUE), labels.get(marks.POD_INDEX, "")
    group = next((group for group in gang.spec.pod_groups if group.name == name), None)
    return group is not None and index.isdecimal() and int(index) < group.min_replicas
