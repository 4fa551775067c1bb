"""PodGroups whose CRD is installed while the coscheduler runs."""

from spinney.api.conditions import is_true
from spinney.api.core import NAMESPACE, POD, Pod
from spinney.api.coscheduling import POD_GROUP, SCHEDULED, PodGroup
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.virtual_time import on_virtual_time

from .world import World, a_node, a_pod


@on_virtual_time
async def test_a_kind_that_is_installed_later_is_served() -> None:
    """Pods that wait for a group are bound once its CRD and the group are there, and the group says so."""
    runtime = Runtime.virtual(seed=1)
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        world = World(client, runtime, "test")
        await world.nodes(a_node("n1"))
        async with world.scheduling():
            await world.create(*(a_pod(f"gang-{number}", group="gang") for number in range(2)))
            await world.settle(30)
            waiting = await client.get(POD, "gang-0", "test", type=Pod)
            condition = waiting.condition("PodScheduled")
            assert condition is not None
            assert condition.message == "pod group test/gang not found"

            await install_crds(client)
            await world.group("gang", 2)
            await world.settle(120)
            pods = (await client.list(POD, "test", type=Pod)).items
            assert [pod.spec.node_name for pod in pods] == ["n1", "n1"]
            group = await client.get(POD_GROUP, "gang", "test", type=PodGroup)
            assert is_true(group.status.conditions, SCHEDULED)
            assert (group.status.phase, group.status.scheduled) == ("Scheduling", 2)
            assert group.status.schedule_start_time is not None
