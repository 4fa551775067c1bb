"""When pods may be created, and when their gate may be opened.

* Pods are created once the backend has said that its own objects stand, for this uid and structure.
* A gate is opened only when the gang is ``Initialized`` and refers to the pod; in a scaled gang only when the base gang
  of the replica is scheduled; and then only if the backend agrees.

A gang that has its PodCliques on record but not this one is about to be recycled, or is about to learn of it: until
then that PodClique creates nothing. Its pods would belong to what the backend made for a former life.
"""

from collections.abc import Callable, Iterable

from spinney.api.conditions import find_condition
from spinney.api.core import Pod
from spinney.api.grove import PodClique
from spinney.api.podgang import BACKEND_READY, INITIALIZED, PODS_MISSING, PodGang
from spinney.operator.desired import gangs, incarnations
from spinney.operator.headcounts import Headcount
from spinney.operator.pod_states import has_gate, is_active

MayRelease = Callable[[Pod, PodGang], bool]


def backend_ready_message(gang: PodGang) -> str:
    """Return what the condition BackendReady says when it is about this gang as it now stands."""
    return f"ready for structure {gangs.structure_hash(gang)} of {gang.metadata.uid}"


def is_backend_ready(gang: PodGang) -> bool:
    """Tell whether the backend has made what the gang, in its present structure, needs."""
    condition = find_condition(gang.status.conditions, BACKEND_READY)
    return condition is not None and condition.status == "True" and condition.message == backend_ready_message(gang)


def was_initialized(gang: PodGang) -> bool:
    """Tell whether all pods of a gang have been there in this life, though some may be missing again.

    A gang that scales out, or of which a pod is replaced, is not Initialized until it refers to all of them; what it
    refers to goes on meanwhile.
    """
    condition = find_condition(gang.status.conditions, INITIALIZED)
    return condition is not None and (condition.status == "True" or condition.reason == PODS_MISSING)


def may_create_pods(clique: PodClique, gang: PodGang | None, *, backend_ready: Callable[[PodGang], bool]) -> bool:
    """Tell whether pods of a PodClique may be created now."""
    if gang is None or gang.metadata.deleting or not backend_ready(gang):
        return False
    return not incarnations.is_recorded(gang) or incarnations.belongs(clique, gang)


def is_scheduled(gang: PodGang, cliques: Callable[[str], PodClique | None]) -> bool:
    """Tell whether every group of a gang has its minimum placed; ``cliques`` finds a PodClique by name."""
    for group in gang.spec.pod_groups:
        clique = cliques(group.name)
        if clique is None or clique.status.scheduled_replicas < group.min_replicas:
            return False
    return bool(gang.spec.pod_groups)


def has_lost_minimum(
    gang: PodGang, cliques: Callable[[str], PodClique | None], pods: Callable[[PodClique], Headcount]
) -> bool:
    """Tell whether pods of a gang have gone that the status of their PodCliques, which lags behind, still counts."""
    for group in gang.spec.pod_groups:
        clique = cliques(group.name)
        if (pods(clique).scheduled if clique is not None else 0) < group.min_replicas:
            return True
    return False


def referenced(clique: PodClique, gang: PodGang) -> set[str]:
    """Return the names of the pods of a PodClique that its gang refers to."""
    groups = [group for group in gang.spec.pod_groups if group.name == clique.metadata.name]
    return {reference.name for group in groups for reference in group.pod_references}


def releasable(
    clique: PodClique, gang: PodGang | None, pods: Iterable[Pod], *, base_scheduled: bool, may_release: MayRelease
) -> list[Pod]:
    """Return the gated pods of a PodClique whose gate may be opened now, by name."""
    if gang is None or gang.metadata.deleting or not base_scheduled or not was_initialized(gang):
        return []
    if not incarnations.belongs(clique, gang):
        return []
    known = referenced(clique, gang)
    return sorted(
        (
            pod
            for pod in pods
            if has_gate(pod) and is_active(pod) and pod.metadata.name in known and may_release(pod, gang)
        ),
        key=lambda pod: pod.metadata.name,
    )
