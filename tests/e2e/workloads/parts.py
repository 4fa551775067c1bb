"""The parts PodCliqueSets of the scenarios are made of."""

from collections.abc import Sequence
from typing import Any

from spinney.api import labels as marks
from spinney.api.struct import JSON
from tests.e2e.floor import ROLE, TOPOLOGY

QUEUE = "test"


def a_pod_spec(*, memory: str = "80Mi", name: str = "main") -> JSON:
    """Return a pod that only runs on the scenario's nodes and asks for memory alone; two of 80Mi share no node."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["agent"]}]}]}
    return {
        "terminationGracePeriodSeconds": 5,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"key": ROLE, "operator": "Equal", "value": "agent", "effect": "NoSchedule"}],
        "containers": [
            {"name": name, "image": "registry.example/busybox:1", "resources": {"requests": {"memory": memory}}}
        ],
    }


def a_constraint(*, required: str = "", preferred: str = "", topology: str = TOPOLOGY) -> JSON:
    pack = {key: domain for key, domain in (("required", required), ("preferred", preferred)) if domain}
    return {"topologyName": topology, "pack": pack}


def a_clique(
    name: str,
    replicas: int,
    minimum: int | None = None,
    *,
    memory: str = "80Mi",
    after: Sequence[str] = (),
    constraint: JSON | None = None,
) -> JSON:
    """Return a clique; its minimum is all of it unless said otherwise."""
    spec: JSON = {
        "roleName": name,
        "replicas": replicas,
        "minAvailable": replicas if minimum is None else minimum,
        "podSpec": a_pod_spec(memory=memory, name=name),
    }
    if after:
        spec["startsAfter"] = list(after)
    clique: JSON = {"name": name, "labels": {marks.KAI_QUEUE: QUEUE}, "spec": spec}
    return clique if constraint is None else clique | {"topologyConstraint": constraint}


def a_group(name: str, cliques: Sequence[str], replicas: int, minimum: int, *, constraint: JSON | None = None) -> JSON:
    group: JSON = {"name": name, "cliqueNames": list(cliques), "replicas": replicas, "minAvailable": minimum}
    return group if constraint is None else group | {"topologyConstraint": constraint}


def a_set(
    name: str, cliques: Sequence[JSON], groups: Sequence[JSON] = (), *, replicas: int = 1, **template: Any
) -> JSON:
    """Return a PodCliqueSet; ``template`` are further fields of its template."""
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "template": {"cliques": list(cliques), "podCliqueScalingGroups": list(groups), **template},
        },
    }
