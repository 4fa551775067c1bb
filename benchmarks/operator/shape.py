"""The shape of Grove's scale tests: one set, one clique of two pods, so N replicas are N gangs and 2N pods."""

from spinney.api import labels as marks
from spinney.api.struct import JSON

NAMESPACE = "bench"
SIZE = 2
CLIQUE = "expert-worker"


def pod_spec() -> JSON:
    """Return the pod spec of scale-test-1000; no node is there to run it, so a pod stays where the gate left it."""
    term = {"matchExpressions": [{"key": "type", "operator": "In", "values": ["kwok"]}]}
    toleration = {
        "key": "node_role.e2e.grove.nvidia.com",
        "operator": "Equal",
        "value": "agent",
        "effect": "NoSchedule",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    container = {"name": CLIQUE, "image": "nginx", "resources": {"requests": {"memory": "1Mi"}}}
    return {
        "schedulerName": "default-scheduler",
        "affinity": {"nodeAffinity": required},
        "tolerations": [toleration],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }


def a_set(name: str, replicas: int, *, size: int = SIZE) -> JSON:
    """Return a PodCliqueSet as admission leaves it."""
    spec = {"roleName": "expert", "replicas": size, "minAvailable": size, "podSpec": pod_spec()}
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliques": [{"name": CLIQUE, "spec": spec}],
    }
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {"replicas": replicas, "template": template},
    }


def a_gang(name: str) -> JSON:
    """Return the PodGang of one replica, its pods named in advance."""
    references = [{"namespace": NAMESPACE, "name": f"{name}-{CLIQUE}-{k}"} for k in range(SIZE)]
    group = {"name": f"{name}-{CLIQUE}", "minReplicas": SIZE, "podReferences": references}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"podgroups": [group]}}


def a_clique(name: str) -> JSON:
    """Return the PodClique of one replica."""
    spec = {"roleName": "expert", "replicas": SIZE, "minAvailable": SIZE, "podSpec": pod_spec()}
    return {"metadata": {"name": f"{name}-{CLIQUE}", "namespace": NAMESPACE}, "spec": spec}


def a_pod(name: str, k: int) -> JSON:
    """Return a gated pod of one replica."""
    labels = {marks.MANAGED_BY: marks.MANAGED_BY_GROVE, marks.PART_OF: "bare", marks.POD_GANG: name}
    spec = pod_spec() | {"schedulingGates": [{"name": marks.POD_GANG_GATE}], "hostname": f"{name}-{CLIQUE}-{k}"}
    return {"metadata": {"name": f"{name}-{CLIQUE}-{k}", "namespace": NAMESPACE, "labels": labels}, "spec": spec}
