"""What Kueue says of a workload that it has not admitted: one that is suspended, or whose pods are gated."""

from collections.abc import Iterable

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import Pod
from spinney.api.kueue import ADMITTED, EVICTED, QUOTA_RESERVED, Workload
from spinney.api.labels import KUEUE_POD_GROUP, KUEUE_WORKLOAD


def kueue_says(workloads: Iterable[Workload], pod: Pod) -> str:
    """Return why Kueue has not let a pod go, in its own words; empty if its Workload is not there or says nothing."""
    return _said(next((each for each in workloads if _has(each, pod)), None))


def kueue_says_of(workloads: Iterable[Workload], kind: str, name: str, namespace: str | None) -> str:
    """Return why Kueue has not admitted what a user calls ``KIND/NAME``; empty if it is not Kueue's, or admitted."""

    def owns(workload: Workload) -> bool:
        owners = workload.metadata.owner_references
        here = namespace is None or workload.metadata.namespace == namespace
        return here and any((each.kind.lower(), each.name) == (kind.lower(), name) for each in owners)

    return _said(next(filter(owns, workloads), None))


def _said(workload: Workload | None) -> str:
    conditions = workload.status.conditions if workload is not None else ()
    words = [word for word in (QUOTA_RESERVED, ADMITTED) if not is_true(conditions, word)]
    if is_true(conditions, EVICTED) and QUOTA_RESERVED in words:
        words.insert(0, EVICTED)
    said = (condition.message for word in words if (condition := find_condition(conditions, word)) is not None)
    return "; ".join(dict.fromkeys(" ".join(message.split()) for message in said if message))


def _has(workload: Workload, pod: Pod) -> bool:
    """Tell whether a pod is of a Workload: it names it, is in the group it is called after, or owns it."""
    metadata = pod.metadata
    if workload.metadata.namespace != metadata.namespace:
        return False
    named = {metadata.annotations.get(KUEUE_WORKLOAD), metadata.labels.get(KUEUE_POD_GROUP)}
    uids = {metadata.uid, *(each.uid for each in metadata.owner_references)} - {None, ""}
    return workload.metadata.name in named or any(each.uid in uids for each in workload.metadata.owner_references)
