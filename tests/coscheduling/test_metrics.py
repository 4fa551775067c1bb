"""What the coscheduler exports about gangs: how long they waited, who was preempted, and who refuses pods."""

import pytest

from spinney.kube.transport import Response
from tests.conftest import Cluster
from tests.scheduler.process.world import FaultyTransport

from .world import World, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def exported(world: World, metric: str, **labels: str) -> float | None:
    """Return a value that the scheduler exports; None where there is no such series."""
    assert world.process is not None
    return world.process.manager.metrics.registry.get_sample_value(metric, labels)


async def test_a_group_waits_once_whatever_its_size(world: World) -> None:
    """A group of three is one wait of its size, and a pod without a group one of size 1."""
    await world.gang("train", 3)
    await world.settle(60)
    await world.nodes(a_node("n1"))
    await world.until(lambda: len(world.bound("train")) == 3)
    await world.create(a_pod("alone"))
    await world.until(lambda: bool(world.node_of("alone")))
    assert exported(world, "spinney_gang_wait_seconds_count", queue="", size="2-8") == 1
    assert exported(world, "spinney_gang_wait_seconds_count", queue="", size="1") == 1
    assert (exported(world, "spinney_gang_wait_seconds_sum", queue="", size="2-8") or 0) >= 59
    assert exported(world, "spinney_bind_seconds_count", outcome="bound") == 4


async def test_a_group_that_starts_again_waits_again(world: World) -> None:
    """When all pods of a group are gone and others come in their place, that is another wait."""
    await world.nodes(a_node("n1"))
    await world.gang("train", 2)
    await world.until(lambda: len(world.bound("train")) == 2)
    await world.delete("train-0", "train-1")
    await world.settle(2)
    await world.create(a_pod("train-2", group="train"), a_pod("train-3", group="train"))
    await world.until(lambda: len(world.bound("train")) == 2)
    assert exported(world, "spinney_gang_wait_seconds_count", queue="", size="2-8") == 2


async def test_a_victim_that_could_not_be_evicted_is_not_counted(cluster: Cluster) -> None:
    """Only pods that go are victims."""
    async with a_world(cluster) as world:
        world.transport = faulty = FaultyTransport(world.client.transport)
        faulty.fault = lambda method, path: Response(403, {}, b"{}") if method == "DELETE" else None
        await world.nodes(a_node("n1", cpu="1"))
        await world.priority("high", 1000)
        await world.create(a_pod("low"))
        async with world.scheduling():
            await world.until(lambda: bool(world.node_of("low")))
            await world.create(a_pod("urgent", priority_class="high"))
            await world.settle(30)
            assert exported(world, "spinney_victims_total", queue="", reason="preempt") in (None, 0)
            faulty.fault = lambda method, path: None
            await world.until(lambda: bool(world.node_of("urgent")), seconds=600)
            assert exported(world, "spinney_victims_total", queue="", reason="preempt") == 1


async def test_victims_and_refusals_are_counted(world: World) -> None:
    """A pod that is preempted is a victim; one that fits nowhere waits because of the filter that refused it."""
    await world.nodes(a_node("n1", cpu="1"))
    await world.priority("high", 1000)
    await world.create(a_pod("low"))
    await world.until(lambda: bool(world.node_of("low")))
    await world.create(a_pod("huge", cpu="64"))
    await world.create(a_pod("urgent", priority_class="high"))
    await world.until(lambda: bool(world.node_of("urgent")))
    await world.settle(30)
    assert exported(world, "spinney_victims_total", queue="", reason="preempt") == 1
    assert exported(world, "spinney_coscheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
