"""What the scheduling gates of pods wait for: the operator's, Kueue's, and those of other controllers.

Also what Kueue says of a workload that it has not admitted: one that is suspended, or whose pods are gated.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import Pod
from spinney.api.kueue import ADMITTED, EVICTED, QUOTA_RESERVED, Workload
from spinney.api.kueue import Workload as KueueWorkload
from spinney.api.labels import BASE_POD_GANG, KUEUE_POD_GROUP, KUEUE_PREFIX, KUEUE_WORKLOAD, POD_GANG_GATE
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.podgang import BACKEND_READY, INITIALIZED, PodGang
from spinney.cluster.pods import PodRecord
from spinney.gangs.source_workloads import SourceWorkload

_WELL_KNOWN_GATES: Final = {
    POD_GANG_GATE: "the operator opens it once all pods of the gang exist",
    "kueue.x-k8s.io/admission": "Kueue has not admitted the workload",
    "kueue.x-k8s.io/topology": "Kueue has not assigned the pod to a topology domain",
    "kueue.x-k8s.io/elastic-job": "Kueue has not admitted this part of an elastic workload",
}


def gate_sentences(
    gated: Sequence[PodRecord], gangs: Mapping[tuple[str, str], PodGang], workloads: Iterable[KueueWorkload]
) -> list[str]:
    """Return what each gate of pods waits for; equal ones once. ``gangs`` are by namespace and name."""
    sentences: dict[str, None] = {}
    for record in gated:
        for gate in record.pod.spec.scheduling_gates:
            if gate.name == POD_GANG_GATE:
                reasons = [why_not_released(gangs, record.namespace, record.labels.get(GANG_LABEL, ""))]
            else:
                reasons = [_why_foreign(gate.name, record, workloads)]
            sentences |= dict.fromkeys(f"gate {gate.name}: {reason}" for reason in reasons)
    return list(sentences)


def why_not_released(gangs: Mapping[tuple[str, str], PodGang], namespace: str, name: str) -> str:
    """Return what the operator waits for before it opens the gates of a gang, which may not exist."""
    gang = gangs.get((namespace, name))
    if gang is None:
        return f"the PodGang {namespace}/{name} does not exist: is the operator running?"
    return why_held(gang)


def why_held(gang: PodGang) -> str:
    """Return what the operator waits for before it opens the gates of a gang."""
    name, conditions = gang.metadata.name, gang.status.conditions
    ready = find_condition(conditions, BACKEND_READY)
    if ready is None or ready.status != "True":
        said = f": {ready.message}" if ready is not None and ready.message else ""
        if ready is not None or not is_true(conditions, INITIALIZED):
            return f"PodGang {name} waits for its scheduler's backend (BackendReady){said}"
    if not is_true(conditions, INITIALIZED):
        initialized = find_condition(conditions, INITIALIZED)
        said = f": {initialized.message}" if initialized is not None and initialized.message else ""
        return f"PodGang {name} waits until all its pods exist (Initialized){said}"
    base = gang.metadata.labels.get(BASE_POD_GANG)
    if base is not None:
        return f"PodGang {name} is a scaled gang: it waits until its base gang {base} is scheduled"
    return f"PodGang {name} is initialized; the operator opens the gate as soon as the backend agrees"


def who_opens(gate: str) -> str:
    """Return what a gate of another controller waits for, as far as its name tells."""
    return _WELL_KNOWN_GATES.get(gate, "the controller that set it has to remove it")


def _why_foreign(gate: str, record: PodRecord, workloads: Iterable[KueueWorkload]) -> str:
    """Return what a gate of another controller waits for; Kueue's with what its Workload says."""
    text = who_opens(gate)
    if not gate.startswith(KUEUE_PREFIX):
        return text
    said = kueue_says(workloads, record.pod)
    return f"{text}: {said}" if said else text


def kueue_says(workloads: Iterable[Workload], pod: Pod) -> str:
    """Return why Kueue has not let a pod go, in its own words; empty if its Workload is not there or says nothing."""
    return _said(next((each for each in workloads if _has(each, pod)), None))


def kueue_says_of(workloads: Iterable[Workload], kind: str, name: str, namespace: str | None) -> str:
    """Return why Kueue has not admitted what a user calls ``KIND/NAME`` or, with an empty kind, ``NAME``.

    Empty if it is not Kueue's, or admitted.
    """

    def owns(workload: Workload) -> bool:
        owners = workload.metadata.owner_references
        here = namespace is None or workload.metadata.namespace == namespace
        return here and any(SourceWorkload(each.kind, each.name).is_called(kind, name) for each in owners)

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
