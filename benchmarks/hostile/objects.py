"""Objects that nothing forbids and nobody needs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from spinney.api import kai
from spinney.api import workload_v1beta1 as native
from spinney.api.core import Node, Pod
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.scheduling import PriorityClass
from spinney.api.struct import convert

PODS: Final = 100_000
GANG: Final = 50_000
SUB_GROUPS: Final = 10_000
LEVELS: Final = 1_000
RULES: Final = 4_000
QUEUES: Final = 4_000
COMPOSITES: Final = 2_000
CLASSES: Final = 2_000
CLAIMS: Final = 50
_SCHEDULER: Final = "spinney-scheduler"


def nodes(count: int, scenario: str) -> Iterator[Node]:
    """Return ordinary nodes; those of a topology have a label for each of its levels."""
    levels = {f"example.com/level-{level}": "all" for level in range(LEVELS)} if scenario == "levels" else {}
    for number in range(count):
        name = f"n{number:04d}"
        yield convert(
            Node,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **levels}},
                "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "1000", "nvidia.com/gpu": "8"}},
            },
        )


def an_ordinary_gang() -> Iterator[Any]:
    """Return somebody else's gang of two pods."""
    yield _group("ordinary", {"minMember": 2})
    for number in range(2):
        yield a_pod(f"ordinary-{number}", gang="ordinary", requests={"cpu": "1", "nvidia.com/gpu": "1"})


def a_pod(
    name: str,
    *,
    gang: str = "",
    requests: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Pod:
    """Return a pending pod."""
    metadata = {"name": name, "namespace": "team", "uid": name, "labels": labels or {}}
    if gang:
        metadata["annotations"] = {"pod-group-name": gang}
    container = {"name": "main", "resources": {"requests": requests or {"cpu": "1m"}}}
    return convert(
        Pod, {"metadata": metadata, "spec": {"schedulerName": _SCHEDULER, "containers": [container], **spec}}
    )


DISTINCT: Final[dict[str, Callable[[int], Pod]]] = {
    "selectors": lambda number: a_pod(f"p{number}", nodeSelector={f"example.com/key-{number}": "value"}),
    "labels": lambda number: a_pod(f"p{number}", labels={f"example.com/key-{number}": "value"}),
    "tolerations": lambda number: a_pod(
        f"p{number}", tolerations=[{"key": f"example.com/key-{number}", "operator": "Exists"}]
    ),
    "resources": lambda number: a_pod(f"p{number}", requests={"cpu": "1m", f"example.com/resource-{number}": "1"}),
}
"""Pods of which no two have the same, by what they differ in."""


def _pods(make: Callable[[int], Pod], scale: float) -> Iterator[Any]:
    return map(make, range(round(PODS * scale)))


def _gang(requests: dict[str, str], scale: float) -> Iterator[Any]:
    size = round(GANG * scale)
    yield _group("large", {"minMember": size})
    for number in range(size):
        yield a_pod(f"p{number}", gang="large", requests=requests)


def _sub_groups(scale: float) -> Iterator[Any]:
    count = round(SUB_GROUPS * scale)
    yield _group("wide", {"minMember": count, "subGroups": [{"name": f"s{n}", "minMember": 1} for n in range(count)]})
    for number in range(count):
        yield a_pod(f"p{number}", gang="wide", labels={"kai.scheduler/subgroup-name": f"s{number}"})


def _levels(scale: float) -> Iterator[Any]:
    levels = [{"nodeLabel": f"example.com/level-{level}"} for level in range(round(LEVELS * scale))]
    yield convert(kai.Topology, {"metadata": {"name": "deep"}, "spec": {"levels": levels}})
    constraint = {"topology": "deep", "requiredTopologyLevel": levels[-1]["nodeLabel"]}
    for gang in range(10):
        yield _group(f"deep-{gang}", {"minMember": 4, "topologyConstraint": constraint})
        for number in range(4):
            yield a_pod(f"deep-{gang}-{number}", gang=f"deep-{gang}")


def _rules(scale: float) -> Iterator[Any]:
    """Four pods that would rather be near everybody, for as many reasons, and single pods beside them."""
    for carrier in range(4):
        selectors = [{"key": f"x-{carrier}-{n}", "operator": "DoesNotExist"} for n in range(round(RULES * scale) // 4)]
        terms = [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchExpressions": [each]},
                "namespaceSelector": {},
            }
            for each in selectors
        ]
        preferred = [{"weight": 1, "podAffinityTerm": each} for each in terms]
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        yield a_pod(f"carrier-{carrier}", affinity=affinity, nodeName=f"n{carrier:04d}")
    for number in range(200):
        yield a_pod(f"p{number}")


def _queues(scale: float) -> Iterator[Any]:
    unlimited = {resource: {"quota": -1, "limit": -1} for resource in ("cpu", "memory", "gpu")}
    names = [f"q{number}" for number in range(round(QUEUES * scale))]
    for name in ("default-queue", *names):
        yield convert(kai.Queue, {"metadata": {"name": name, "uid": name}, "spec": {"resources": unlimited}})
    for number, name in enumerate(names):
        yield _group(f"g{number}", {"minMember": 1, "queue": name})
        yield a_pod(f"p{number}", gang=f"g{number}")


def _classes(scale: float) -> Iterator[Any]:
    count = round(CLASSES * scale)
    yield from (_group(f"g{number}", {"minMember": 1}) for number in range(count))
    for number in range(count):
        yield convert(PriorityClass, {"metadata": {"name": f"class-{number}"}, "value": number})


def _composites(scale: float) -> Iterator[Any]:
    """One composite of many, each with a group of one pod; the pods come first."""
    count = round(COMPOSITES * scale)
    for number in range(count):
        yield a_pod(f"p{number}", schedulingGroup={"podGroupName": f"g{number}"})
    yield _part(native.CompositePodGroup, "job", "", {"minGroupCount": count})
    for number in range(count):
        yield _part(native.CompositePodGroup, f"c{number}", "job", {"minGroupCount": 1})
        yield _part(native.PodGroup, f"g{number}", f"c{number}", {"minCount": 1})


def _part(kind: type[Any], name: str, parent: str, gang: dict[str, int]) -> Any:
    above = {"parentCompositePodGroupName": parent} if parent else {}
    reference = {"workloadName": "work", "templateName": "any"}
    spec = {"workloadRef": reference, "schedulingPolicy": {"gang": gang}, **above}
    return convert(kind, {"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": spec})


def _claims(scale: float) -> Iterator[Any]:
    """Pods with claims of which two devices would have to be the same."""
    yield convert(DeviceClass, {"metadata": {"name": "gpu"}})
    for number in range(100):
        devices = [{"name": f"d{n}", "attributes": {"index": {"int": n}}} for n in range(16)]
        spec = {"driver": "d", "nodeName": f"n{number:04d}", "pool": {"name": f"n{number:04d}"}, "devices": devices}
        yield convert(ResourceSlice, {"metadata": {"name": f"n{number:04d}"}, "spec": spec})
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "gpu"}} for n in range(6)]
    asked = {"requests": requests, "constraints": [{"matchAttribute": "d/index", "requests": ["r4", "r5"]}]}
    for number in range(round(CLAIMS * scale)):
        metadata = {"name": f"c{number}", "namespace": "team", "labels": {"kai.scheduler/queue": "default-queue"}}
        yield convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": asked}})
        yield a_pod(f"p{number}", resourceClaims=[{"name": "c", "resourceClaimName": f"c{number}"}])


def _group(name: str, spec: dict[str, Any]) -> kai.PodGroup:
    return convert(kai.PodGroup, {"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": spec})


SCENARIOS: Final[dict[str, Callable[[float], Iterator[Any]]]] = {
    **{name: partial(_pods, make) for name, make in DISTINCT.items()},
    "gang": partial(_gang, {"cpu": "1m"}),
    "gang-refused": partial(_gang, {"nvidia.com/gpu": "1"}),
    "sub-groups": _sub_groups,
    "levels": _levels,
    "rules": _rules,
    "queues": _queues,
    "classes": _classes,
    "composites": _composites,
    "claims": _claims,
}
"""What a tenant creates, by name; ``gang-refused`` asks for more than there is."""
