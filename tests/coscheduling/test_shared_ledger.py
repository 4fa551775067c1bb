"""Two schedulers of one process share one ledger: neither gives away what the other has taken."""

import asyncio
from collections import Counter

import pytest

from spinney.api.kai import QUEUE
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.manager import Manager
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.process import SchedulerProcess
from tests.conftest import Cluster

from .world import World, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


async def test_two_schedulers_share_what_there_is(cluster: Cluster) -> None:
    """Pods of the session scheduler and of the coscheduler, created together, never over-commit a node."""
    async with a_world(cluster) as world:
        world.watch = never_over_committed
        await cluster.client.create(QUEUE, {"metadata": {"name": "default-queue"}, "spec": everything()})
        client = cluster.connect("schedulers")
        manager = Manager(client, cluster.runtime)
        inventory = Inventory(("spinney-scheduler",))
        coscheduler = CoschedulerProcess(client, manager=manager, shared=inventory.shared)
        session = SchedulerProcess(client, SchedulerConfig(), manager=manager, inventory=inventory)
        await coscheduler.prepare()
        await session.prepare()
        running = asyncio.create_task(manager.run())
        await manager.wait_until_ready()
        await world.nodes(a_node("n1", cpu="4"), a_node("n2", cpu="4"))
        for number in range(6):
            await world.create(
                a_pod(f"co-{number}", scheduler="coscheduling"), a_pod(f"se-{number}", scheduler="spinney-scheduler")
            )
        await world.until(lambda: len(world.bound()) == 8)
        await world.settle(20)
        assert len(world.bound()) == 8
        assert world.bound("co-")
        assert world.bound("se-")
        manager.stop()
        await running


def everything() -> dict[str, object]:
    """Return a queue without bounds."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    return {"resources": dict.fromkeys(("gpu", "cpu", "memory"), unlimited)}


def never_over_committed(world: World) -> None:
    """Check that no node has more than four pods of one cpu each."""
    used = Counter(pod.spec.node_name for pod in world.pods.values() if pod.spec.node_name)
    assert max(used.values(), default=0) <= 4
