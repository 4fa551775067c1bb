"""A workload that shares devices at every level, from templates inside the set and outside it."""

from spinney.api.struct import JSON
from tests.e2e.workloads.parts import a_clique, a_group, a_set

ELSEWHERE = "rs-shared"
"""The other namespace that has a template."""


def a_claim_template(name: str) -> JSON:
    """Return a ResourceClaimTemplate for one device."""
    return {"metadata": {"name": name}, "spec": _claim(name)}


def resource_sharing() -> JSON:
    """Return worker-a and a group of two worker-b, with claims of the set, the group and the cliques."""
    worker_a = a_clique("worker-a", 1) | {
        "resourceSharing": [
            {"name": "int-tpl4", "scope": "PerReplica"},
            {"name": "ext-ns-tpl", "namespace": ELSEWHERE, "scope": "AllReplicas"},
        ]
    }
    worker_b = a_clique("worker-b", 1) | {"resourceSharing": [{"name": "int-tpl6", "scope": "AllReplicas"}]}
    group = a_group("sga", ["worker-b"], 2, 2) | {
        "resourceSharing": [
            {"name": "int-tpl2", "scope": "AllReplicas"},
            {"name": "int-tpl3", "scope": "PerReplica"},
            {"name": "int-tpl8", "scope": "AllReplicas", "filter": {"childCliqueNames": ["worker-b"]}},
        ]
    }
    inside = ["int-tpl", *(f"int-tpl{number}" for number in range(2, 9))]
    return a_set(
        "rs-test",
        [worker_a, worker_b],
        [group],
        resourceClaimTemplates=[{"name": name, "templateSpec": _claim(name)} for name in inside],
        resourceSharing=[
            {"name": "int-tpl5", "scope": "AllReplicas"},
            {"name": "ext-tpl", "scope": "PerReplica"},
            {"name": "int-tpl", "scope": "PerReplica", "filter": {"childCliqueNames": ["worker-a"]}},
            {"name": "int-tpl7", "scope": "AllReplicas", "filter": {"childScalingGroupNames": ["sga"]}},
        ],
    )


def _claim(name: str) -> JSON:
    request = {"name": "device", "exactly": {"deviceClassName": f"{name}-class"}}
    return {"spec": {"devices": {"requests": [request]}}}
