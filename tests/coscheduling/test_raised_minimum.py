"""What a PodGroup says when it needs more pods than it has, and when its pods have ended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import EVENT, POD
from spinney.api.coscheduling import POD_GROUP
from tests.conftest import Cluster

from .test_pod_group_kind import condition
from .world import World, a_node, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


async def until_scheduled(world: World) -> None:
    await world.until(lambda: condition(world, "gang")[0] == "True")


@asynccontextmanager
async def a_scheduled_gang(cluster: Cluster) -> AsyncIterator[World]:
    """Run a coscheduler that has placed a gang of two."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1"))
        async with world.scheduling():
            await world.gang("gang", 2)
            await until_scheduled(world)
            yield world


async def has_ended(world: World) -> None:
    """Have the pods end one after the other, and see that the group was scheduled all the same."""
    for name in ("gang-0", "gang-1"):
        ended = {"status": {"phase": "Succeeded"}}
        await world.client.patch(POD, name, ended, world.namespace, subresource="status")
        await world.settle(30)
        assert condition(world, "gang")[0] == "True"


async def test_a_group_that_needs_more_than_it_has_is_not_scheduled(cluster: Cluster) -> None:
    """A minimum that is raised above what is placed turns the condition; one that is lowered again turns it back."""
    async with a_scheduled_gang(cluster) as world:
        await world.client.patch(POD_GROUP, "gang", {"spec": {"minMember": 3}}, world.namespace)
        await world.until(lambda: condition(world, "gang")[0] == "False")
        (said,) = world.status("gang").conditions
        assert said.message == "2 pods have their nodes, and 3 must run together"
        await world.client.patch(POD_GROUP, "gang", {"spec": {"minMember": 2}}, world.namespace)
        await until_scheduled(world)


async def test_a_group_that_has_ended_was_scheduled(cluster: Cluster) -> None:
    """Pods that end one after the other, and are deleted, do not make their group one that waits."""
    async with a_scheduled_gang(cluster) as world:
        await has_ended(world)
        for name in ("gang-0", "gang-1"):
            await world.client.delete(POD, name, world.namespace, grace_period_seconds=0)
            await world.settle(30)
            assert condition(world, "gang")[0] == "True"


async def test_a_group_that_was_changed_before_it_ended_was_scheduled(cluster: Cluster) -> None:
    """A change that asks for no more pods, such as of a time-out, is no reason to say that an ended group waits."""
    async with a_scheduled_gang(cluster) as world:
        changed = {"spec": {"scheduleTimeoutSeconds": 90}}
        await world.client.patch(POD_GROUP, "gang", changed, world.namespace)
        await world.settle(30)
        events = (await world.client.list(EVENT, world.namespace)).items
        of_group = [event for event in events if event["involvedObject"]["kind"] == "PodGroup"]
        assert [(event["reason"], event["count"]) for event in of_group] == [("Scheduled", 1)]
        await has_ended(world)
