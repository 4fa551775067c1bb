"""Jobs that the grouper made gangs of, on nodes that fail: they are moved whole like any gang."""

from spinney.api.labels import TOPOLOGY_NAME
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.grouping.shapes import REQUIRED_LEVEL
from spinney.sim.embedded.shapes import RACK, topology_binding
from tests.conftest import Cluster
from tests.grouping.world import JOB, World, a_world

_LEAVING = [
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
]
POD = {
    "restartPolicy": "Never",
    "schedulerName": "spinney-scheduler",
    "terminationGracePeriodSeconds": 1,
    "tolerations": _LEAVING,
    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
}
PATIENCE = 110.0
FIRST, SECOND = {f"gpu-00{number}" for number in range(4)}, {f"gpu-00{number}" for number in range(4, 8)}
"""The nodes of two racks."""


def nodes(world: World) -> list[str]:
    """Return the nodes of the pods that are ready and stay."""
    found = filter(None, map(world.pods.get, world.pods))
    return [pod.spec.node_name for pod in found if pod.is_true("Ready") and not pod.metadata.deleting]


async def test_a_job_in_a_full_rack_is_moved_whole(cluster: Cluster) -> None:
    """A Job of four that must share a rack of four loses a node, and runs in the other rack."""
    async with a_world(cluster, workloads=True, nodes=8) as world:
        topology = f"racks-{world.namespace}"
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, topology_binding(topology))
        spec = {"parallelism": 4, "completions": 4, "template": {"spec": POD}}
        asked = {"kai.scheduler/batch-min-member": "4", TOPOLOGY_NAME: topology, REQUIRED_LEVEL: RACK}
        await world.owner(JOB, "train", spec, annotations=asked)
        await world.until(lambda: len(nodes(world)) == 4, PATIENCE)
        before = set(nodes(world))
        assert before in (FIRST, SECOND)

        await world.fleet.fail(min(before))
        await world.until(lambda: set(nodes(world)) == (SECOND if before == FIRST else FIRST), PATIENCE)
        await world.client.delete(CLUSTER_TOPOLOGY_BINDING, topology)
