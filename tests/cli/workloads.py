"""Workloads as users write them, and waiting for what becomes of them."""

from typing import Any

import yaml

from spinney.api.conditions import find_condition
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.kube.client import Client


def a_training_job(name: str, *, workers: int, gpus: int = 8, within: str | None = "rack", **spec: Any) -> JSON:
    """Return a PodCliqueSet of whole-node workers that must share a domain."""
    constraint = {"topologyName": "gpu-topology", "pack": {"required": within}} if within else None
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "env": [{"name": "TOKEN", "value": "s3cr3t"}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": str(gpus)}},
    }
    pod_spec = {"schedulerName": "spinney-scheduler", "containers": [container], **spec}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": workers, "podSpec": pod_spec}}
    template: JSON = {"cliques": [clique]} | ({"topologyConstraint": constraint} if constraint else {})
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "template": template},
    }


def as_yaml(*manifests: JSON) -> str:
    """Return manifests as a YAML file has them."""
    return yaml.safe_dump_all(manifests, sort_keys=False)


async def until_refused(client: Client, manifest: JSON) -> None:
    """Apply a set and return when the scheduler has refused its first gang."""
    await client.apply(POD_CLIQUE_SET, manifest, field_manager="test")
    gang = f"{manifest['metadata']['name']}-0"
    async for event in client.watch(POD_GANG, "default", type=PodGang):
        condition = find_condition(event.object.status.conditions, SCHEDULED)
        refused = condition is not None and "unschedulable" in condition.message
        if event.object.metadata.name == gang and refused:
            return


async def until_running(client: Client, manifest: JSON, pods: int) -> None:
    """Apply a set and return when that many of its pods run."""
    name = manifest["metadata"]["name"]
    await client.apply(POD_CLIQUE_SET, manifest, field_manager="test")
    running: set[str] = set()
    selector = f"app.kubernetes.io/part-of={name}"
    async for event in client.watch(POD, "default", type=Pod, label_selector=selector):
        if event.object.is_true("Ready"):
            running.add(event.object.metadata.name)
        if len(running) == pods:
            return
