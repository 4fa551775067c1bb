"""Workloads that Kueue admits: its gates hold whole gangs, and what it assigns is where pods go, or why they wait."""

import pytest

from spinney.api.core import NODE, POD
from spinney.api.struct import JSON
from tests.conftest import Cluster
from tests.grouping.world import World, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

TOPOLOGY_GATE = "kueue.x-k8s.io/topology"


async def gated_job(world: World, name: str, pods: int) -> None:
    """Create a Job that Kueue has admitted, with its pods, which wait for their domains."""
    owner = await world.job(name, pods, least=pods, made=0)
    for number in range(pods):
        manifest = {
            "metadata": {
                "name": f"{name}-{number}",
                "ownerReferences": [owner],
                "labels": {"kueue.x-k8s.io/podset": "main"},
                "annotations": {"kueue.x-k8s.io/workload": f"job-{name}"},
            },
            "spec": {
                "schedulerName": "spinney-scheduler",
                "schedulingGates": [{"name": TOPOLOGY_GATE}],
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
            },
        }
        await world.client.create(POD, manifest, world.namespace)


async def ungate(world: World, pod: str, host: str) -> None:
    """Assign a pod to a domain as Kueue's topology ungater does: selector and flavour's toleration, then no gate."""
    spec: JSON = {
        "nodeSelector": {"kubernetes.io/hostname": host, "pool": "reserved"},
        "tolerations": [{"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}],
        "schedulingGates": None,
    }
    await world.client.patch(POD, pod, {"spec": spec}, world.namespace)


async def reserve(world: World, *nodes: str) -> None:
    """Mark nodes as those of a flavour: a label and a taint."""
    taint = {"key": "reserved", "value": "yes", "effect": "NoSchedule"}
    for node in nodes:
        await world.client.patch(
            NODE, node, {"metadata": {"labels": {"pool": "reserved"}}, "spec": {"taints": [taint]}}
        )


async def test_a_gang_waits_until_the_last_gate_is_gone_and_goes_where_it_was_assigned(cluster: Cluster) -> None:
    """Nothing starts while one pod is gated; then each pod is on the node of its assignment, on the flavour's nodes."""
    async with a_world(cluster) as world:
        await reserve(world, "gpu-001", "gpu-003")
        await gated_job(world, "train", 2)
        await ungate(world, "train-0", "gpu-003")
        await world.settle()
        assert world.placed() == []
        await ungate(world, "train-1", "gpu-001")
        await world.until(lambda: len(world.placed()) == 2)
        found = {key.name: pod.spec.node_name for key in world.pods if (pod := world.pods.get(key)) is not None}
        assert found == {"train-0": "gpu-003", "train-1": "gpu-001"}


async def test_an_assignment_that_cannot_be_met_is_refused_whole_with_the_reason(cluster: Cluster) -> None:
    """A domain without the flavour's label holds the whole gang, and its pods say what is in the way."""
    async with a_world(cluster) as world:
        await reserve(world, "gpu-001")
        await gated_job(world, "train", 2)
        await ungate(world, "train-0", "gpu-001")
        await ungate(world, "train-1", "gpu-002")
        await world.settle()
        assert world.placed() == []
        pods = [world.pods.get(key) for key in world.pods]
        conditions = [pod.condition("PodScheduled") for pod in pods if pod is not None]
        assert len(conditions) == 2
        assert all(
            each is not None and "didn't match Pod's node affinity/selector" in each.message for each in conditions
        )
