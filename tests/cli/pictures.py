"""Objects as small as a picture needs them."""

from spinney.api.struct import JSON


def a_node(name: str, *, rack: str, gpus: int = 8) -> JSON:
    labels = {"topology.kubernetes.io/rack": rack}
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def a_pod(name: str, *, gang: str, queue: str, gpus: int, node: str = "") -> JSON:
    """Return a pod of a gang, on a node or pending."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    labels = {"grove.io/podgang": gang, "kai.scheduler/queue": queue}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [container], "nodeName": node},
    }


def a_queue(name: str, quota: int, *, parent: str | None = None) -> JSON:
    """Return a queue with a quota of GPUs."""
    spec: JSON = {"resources": {"gpu": {"quota": quota}}} | ({"parentQueue": parent} if parent else {})
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
