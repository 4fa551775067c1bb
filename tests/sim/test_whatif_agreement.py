"""What a simulation says beforehand is what the cluster then does."""

from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.labels import POD_GANG
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.kube.client import Client
from spinney.runtime import Runtime, run_virtual
from spinney.sim.embedded.shapes import gpu_cluster, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.sim.snapshots.expanding import ExpansionContext, expand
from spinney.sim.snapshots.snapshot import take
from spinney.sim.whatif.simulation import Simulation
from tests.cli.workloads import a_training_job

Nodes = dict[str, list[str]]


def an_inference_service(name: str) -> JSON:
    """Return a set whose second scaling group replica is a gang of its own, each replica inside one rack."""
    manifest = a_training_job(name, workers=3, gpus=4, within=None)
    within = {"topologyName": "gpu-topology", "pack": {"required": "rack"}}
    group = {
        "name": "decode",
        "cliqueNames": ["worker"],
        "replicas": 2,
        "minAvailable": 1,
        "topologyConstraint": within,
    }
    manifest["spec"]["template"]["podCliqueScalingGroups"] = [group]
    return manifest


async def foretold(client: Client, workload: JSON) -> Nodes:
    """Simulate a workload on the cluster as it is; return the nodes of each of its gangs."""
    before = await take(client)
    added = expand([workload], ExpansionContext.of(before, client.runtime.clock.now()))
    outcome = Simulation(before.with_objects(added), runtime=client.runtime).run()
    nodes: Nodes = {}
    for pod, node in outcome.placed.items():
        nodes.setdefault(outcome.gangs[pod].name, []).append(node)
    return {gang: sorted(found) for gang, found in nodes.items()}


async def done(client: Client, workload: JSON) -> Nodes:
    """Apply a workload for real; return the nodes of each of its gangs a minute later."""
    await client.apply(POD_CLIQUE_SET, workload, field_manager="test")
    await client.runtime.clock.sleep(60)
    selector = f"app.kubernetes.io/part-of={workload['metadata']['name']}"
    nodes: Nodes = {}
    for pod in (await client.list(POD, type=Pod, label_selector=selector)).items:
        if pod.spec.node_name:
            nodes.setdefault(pod.metadata.labels[POD_GANG], []).append(pod.spec.node_name)
    return {gang: sorted(found) for gang, found in nodes.items()}


async def compare(*workloads: JSON) -> list[tuple[Nodes, Nodes]]:
    """Return what was foretold and what was done, for one workload after the other."""
    runtime = Runtime.virtual(seed=3)
    cluster = EmbeddedCluster(runtime, StackOptions(nodes=gpu_cluster(16, 8, rack=4, block=8)))
    async with cluster.running():
        await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
        return [(await foretold(cluster.client, each), await done(cluster.client, each)) for each in workloads]


def test_the_cluster_does_what_was_foretold() -> None:
    """A service with a scaled gang, a job that fits a block and one that fits nowhere go as the simulation said."""
    compared = run_virtual(
        compare(
            an_inference_service("chat"),
            a_training_job("train", workers=6, within="block"),
            a_training_job("large", workers=6, within="rack"),
        )
    )

    assert [sorted(said) for said, _ in compared] == [["chat-0", "chat-0-decode-0"], ["train-0"], []]
    assert [came for _, came in compared] == [said for said, _ in compared]
