"""What is there after a storm, beside what users asked for."""

from collections.abc import Mapping
from typing import Any, TypeVar

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import decode
from tests.storms.processes import MortalServer
from tests.storms.wanted import NAME_LABEL, Wanted, WantedWorkload

T = TypeVar("T")

_OWNED: dict[Resource, type[Any]] = {
    POD: Pod,
    POD_CLIQUE: PodClique,
    POD_CLIQUE_SCALING_GROUP: PodCliqueScalingGroup,
    POD_GANG: PodGang,
}


class Remains:
    """The objects in the store of a server, read without asking it."""

    def __init__(self, server: MortalServer) -> None:
        self._server = server

    def missing(self, wanted_sets: Mapping[str, Wanted], workloads: Mapping[str, WantedWorkload]) -> list[str]:
        """Return what is not as users want it."""
        found: list[str] = []
        pods = self._all(POD, Pod)
        sets = self._all(POD_CLIQUE_SET, PodCliqueSet)
        if sorted(sets) != sorted(wanted_sets):
            found.append(f"there are sets {sorted(sets)}, wanted {sorted(wanted_sets)}")
        for name, wanted in sorted(wanted_sets.items()):
            mine = [pod for pod in pods.values() if pod.metadata.labels.get(marks.PART_OF) == name]
            unready = sorted(pod.metadata.name for pod in mine if not pod.is_true("Ready") or pod.metadata.deleting)
            if len(mine) not in wanted.pods or unready:
                found.append(f"set {name} ({wanted}) has {len(mine)} pods of {wanted.pods}, not ready: {unready}")
            images = {container.image for pod in mine for container in pod.spec.containers}
            if mine and images != {f"registry.example/worker:{wanted.image}"}:
                found.append(f"set {name} ({wanted}) runs {sorted(map(str, images))}")
            if name in sets and sets[name].status.available_replicas != wanted.replicas:
                found.append(f"set {name} has {sets[name].status.available_replicas} of {wanted.replicas} available")
        for name, workload in sorted(workloads.items()):
            mine = [pod for pod in pods.values() if _workload_of(pod) == name and not pod.terminal]
            unready = sorted(pod.metadata.name for pod in mine if not pod.is_true("Ready") or pod.metadata.deleting)
            if len(mine) != workload.pods or unready:
                found.append(f"{name} ({workload}) has {len(mine)} pods of {workload.pods}, not ready: {unready}")
        stray = [n for n, pod in pods.items() if _workload_of(pod) and _workload_of(pod) not in workloads]
        if stray:
            found.append(f"pods of workloads that are gone: {sorted(stray)}")
        for resource, kind in _OWNED.items():
            there = {n: _set_of(each) for n, each in self._all(resource, kind).items()}
            left = [n for n, owner in there.items() if owner and owner not in wanted_sets]
            if left:
                found.append(f"{resource.kind} of sets that are gone: {sorted(left)}")
        return found

    def _all(self, resource: Resource, kind: type[T]) -> dict[str, T]:
        if self._server.server is None:
            return {}
        collection = self._server.server.context.store.collection(str(resource))
        records = collection.records("test") if collection is not None else ()
        return {record.key.name: decode(kind, record.raw) for record in records}

    def state(self) -> str:
        """Return all that matters of what is there: which pods, and where."""
        pods = self._all(POD, Pod).values()
        return " ".join(sorted(f"{pod.metadata.name}@{pod.spec.node_name}:{pod.metadata.uid}" for pod in pods))


def _workload_of(pod: Pod) -> str:
    return pod.metadata.labels.get(NAME_LABEL, "")


def _set_of(found: Any) -> str:
    name: str = found.metadata.labels.get(marks.PART_OF, "")
    return name
