"""Gangs of schedulers that know no PodGang say that they are asked to go, and that they were evicted."""

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.labels import CHECKPOINT_BY, CHECKPOINT_GRACE, CHECKPOINT_READY
from spinney.api.meta import Condition
from spinney.api.podgang import DISRUPTION_TARGET
from spinney.api.resource import Resource
from tests.conftest import Cluster
from tests.grouping.world import World, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)


def disruption(world: World, name: str) -> Condition:
    """Return what the gang of a workload says of being disrupted; Unknown if it says nothing."""
    found = (world.gangs.get(key) for key in world.gangs if name in key.name)
    gang = next(filter(None, found), None)
    said = find_condition(gang.status.conditions, DISRUPTION_TARGET) if gang is not None else None
    return said or Condition(type=DISRUPTION_TARGET, status="Unknown")


async def test_a_gang_of_the_coscheduler_says_that_it_is_asked_and_evicted(cluster: Cluster) -> None:
    """The PodGang names who takes its place, first as a request, then as an eviction until it is placed again."""
    async with a_world(cluster, every_backend=True, nodes=2) as world:
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        owner = await world.job("train", 2, least=2, scheduler="coscheduling", annotations={CHECKPOINT_GRACE: "5m"})
        await world.until(lambda: len(world.placed("train")) == 2)
        assert disruption(world, "train").status == "Unknown"
        urgent = a_pod("urgent", scheduler="coscheduling")
        urgent["spec"]["priorityClassName"] = "urgent"
        await world.client.create(POD, urgent, world.namespace)

        await world.until(lambda: disruption(world, "train").reason == "CheckpointRequested")
        assert "urgent of higher priority" in disruption(world, "train").message

        asked = await world.client.get(POD, "train-0", world.namespace)
        ready = {CHECKPOINT_READY: asked["metadata"]["annotations"][CHECKPOINT_BY]}
        await world.client.patch(POD, "train-0", {"metadata": {"annotations": ready}}, world.namespace)
        await world.until(lambda: len(world.placed("urgent")) == 1)
        for number in (2, 3):
            await world.pod(f"train-{number}", owner, scheduler="coscheduling")
        await world.until(lambda: disruption(world, "train").reason != "CheckpointRequested")
        assert disruption(world, "train").status == "True"

        await world.client.delete(POD, "urgent", world.namespace, grace_period_seconds=0)
        await world.until(lambda: disruption(world, "train").status == "False")
        assert len(world.placed("train")) == 2
