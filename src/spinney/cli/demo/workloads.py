"""The workloads of the demo: a disaggregated inference service, and a training job."""

from spinney.api.labels import KAI_QUEUE
from spinney.api.struct import JSON
from spinney.sim.embedded.shapes import TOPOLOGY, queue

SERVING, TRAINING = "serving", "training"


def inference(name: str, scheduler: str) -> JSON:
    """Return a router, and prefill and decode groups of a leader and workers, each group inside one rack."""

    def clique(role: str, *, replicas: int, gpus: int) -> JSON:
        return _clique(role, replicas=replicas, gpus=gpus, scheduler=scheduler, queue=SERVING)

    groups = [
        _group("prefill", ["pleader", "pworker"], replicas=2),
        _group("decode", ["dleader", "dworker"], replicas=1),
    ]
    cliques = [
        clique("router", replicas=2, gpus=0),
        clique("pleader", replicas=1, gpus=4),
        clique("pworker", replicas=2, gpus=4),
        clique("dleader", replicas=1, gpus=8),
        clique("dworker", replicas=1, gpus=8),
    ]
    return _set(name, SERVING, {"podCliqueScalingGroups": groups, "cliques": cliques})


INFERENCE_PODS = 2 + 2 * 3 + 2


def training(name: str = "train", *, workers: int, within: str) -> JSON:
    """Return a job of whole-node workers that must lie in one domain of a level: rack or block."""
    cliques = [_clique("worker", replicas=workers, gpus=8, scheduler="spinney-scheduler", queue=TRAINING)]
    return _set(name, TRAINING, {"topologyConstraint": _within(within), "cliques": cliques})


def _set(name: str, queue: str, template: JSON) -> JSON:
    return {
        "metadata": {"name": name, "labels": {KAI_QUEUE: queue}},
        "spec": {"replicas": 1, "template": template},
    }


def queues() -> list[JSON]:
    """Return the queues of the demo's cluster: serving and training share 256 GPUs."""
    below = [queue(SERVING, 160, parent="company"), queue(TRAINING, 96, parent="company")]
    return [queue("company", 256), *below]


def _group(name: str, cliques: list[str], *, replicas: int) -> JSON:
    return {
        "name": name,
        "cliqueNames": cliques,
        "replicas": replicas,
        "minAvailable": 1,
        "topologyConstraint": _within("rack"),
    }


def _within(level: str) -> JSON:
    return {"topologyName": TOPOLOGY, "pack": {"required": level}}


def _clique(name: str, *, replicas: int, gpus: int, scheduler: str, queue: str) -> JSON:
    resources: JSON = {"requests": {"cpu": "2", "memory": "8Gi"}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    pod_spec = {"schedulerName": scheduler, "containers": [container]}
    return {
        "name": name,
        "labels": {KAI_QUEUE: queue},
        "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec},
    }
