"""Multi-node NVLink can be tried on simulated nodes: ComputeDomains are served, pods get a channel of their node."""

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.operator.operator import Settings
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import OUR_BACKENDS, EmbeddedCluster, StackOptions
from tests.cli.workloads import a_training_job


async def test_one_pod_of_a_domain_runs_on_each_node() -> None:
    """Three small pods in one NVLink group go to three nodes: a node has one channel."""
    runtime = Runtime.system()
    settings = Settings(profiles=OUR_BACKENDS, mnnvl_enabled=True, topology_enabled=True)
    cluster = EmbeddedCluster(runtime, StackOptions(nodes=gpu_cluster(3, 8), operator=settings, compute_domains=True))
    manifest = a_training_job("train", workers=3, gpus=1, within=None)
    manifest["metadata"]["annotations"] = {marks.MNNVL_GROUP: "fabric"}
    nodes: dict[str, str] = {}
    async with cluster.running():
        await cluster.client.create(POD_CLIQUE_SET, manifest, "default")
        async for event in cluster.client.watch(POD, "default", type=Pod):
            if event.object.is_true("Ready"):
                nodes[event.object.metadata.name] = event.object.spec.node_name
            if len(nodes) == 3:
                break
    runtime.executor.close()

    assert len(set(nodes.values())) == 3
