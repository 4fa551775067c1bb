"""Scaling to zero and back through the scale subresource, as an autoscaler does: a set, a clique, a scaling group."""

import pytest

from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    AutoScalingConfig,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world

DELAY = 60


def workload() -> PodCliqueSet:
    """Return a set with a clique of three pods and a scaling group of two replicas, both of which autoscale."""
    cliques = [a_clique("a", 3, 2, autoscaling=AutoScalingConfig(min_replicas=2, max_replicas=9)), a_clique("b", 1)]
    group = a_scaling_group("sg", ["b"], 2, 1, autoscaling=AutoScalingConfig(min_replicas=1, max_replicas=9))
    return a_pod_clique_set("model", cliques, [group], termination_delay=f"{DELAY}s")


async def scale(world: World, resource: Resource, name: str, replicas: int, *, wait: float = 20) -> None:
    """Scale an object as an autoscaler does, and wait."""
    patch = {"spec": {"replicas": replicas}}
    await world.client.patch(resource, name, patch, world.namespace, subresource="scale")
    await world.settle(wait)


async def ready(world: World) -> int:
    """Return how many pods serve."""
    return sum(pod.is_true("Ready") for pod in await world.pods())


@given_a_world
async def test_a_set_goes_to_zero_and_comes_back(world: World) -> None:
    """Nothing of its replicas is left at zero, autoscalers included; from zero it comes back whole, and that twice."""
    await world.bring_up(workload())
    for _ in range(2):
        await scale(world, POD_CLIQUE_SET, "model", 0)
        for resource in (POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_GANG, HORIZONTAL_POD_AUTOSCALER):
            assert await world.names(resource) == []
        status = (await world.client.get(POD_CLIQUE_SET, "model", "test"))["status"]
        assert (status["replicas"], status["availableReplicas"]) == (0, 0)
        await scale(world, POD_CLIQUE_SET, "model", 2)
        assert await ready(world) == 10
        expected = ["model-0-a", "model-0-sg", "model-1-a", "model-1-sg"]
        assert await world.names(HORIZONTAL_POD_AUTOSCALER) == expected


@pytest.mark.parametrize(
    ("resource", "name", "replicas"), [(POD_CLIQUE, "model-0-a", 3), (POD_CLIQUE_SCALING_GROUP, "model-0-sg", 2)]
)
@given_a_world
async def test_a_part_goes_to_zero_and_comes_back_within_the_delay(
    world: World, resource: Resource, name: str, replicas: int
) -> None:
    """A part at zero leaves the others running; back in time, the gang is whole again and kept its other pods."""
    await world.bring_up(workload())
    before = {pod.metadata.uid for pod in await world.pods()}
    await scale(world, resource, name, 0)
    kept = {pod.metadata.uid for pod in await world.pods()}
    assert kept < before
    assert await ready(world) == 5 - replicas
    assert (await world.client.get(POD_CLIQUE_SET, "model", "test"))["status"]["availableReplicas"] == 0
    await scale(world, resource, name, replicas)
    assert await ready(world) == 5
    assert kept < {pod.metadata.uid for pod in await world.pods()}
    assert (await world.client.get(POD_CLIQUE_SET, "model", "test"))["status"]["availableReplicas"] == 1


@given_a_world
async def test_a_clique_left_at_zero_stays_there(world: World) -> None:
    """However long it is at zero, it does not come back by itself, the others run on, and it joins them in the end."""
    await world.bring_up(workload())
    await scale(world, POD_CLIQUE, "model-0-a", 0)
    others = {pod.metadata.uid for pod in await world.pods()}
    await world.settle(20 * DELAY)
    assert {pod.metadata.uid for pod in await world.pods()} == others
    assert await ready(world) == len(others) == 2
    await scale(world, POD_CLIQUE, "model-0-a", 3)
    assert await ready(world) == 5
    assert others < {pod.metadata.uid for pod in await world.pods()}


@given_a_world
async def test_a_group_left_at_zero_is_recycled_once(world: World) -> None:
    """After the delay its replica starts over once, not again and again, and waits behind its gates for the group."""
    await world.bring_up(workload())
    before = {pod.metadata.uid for pod in await world.pods()}
    await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 0, wait=DELAY + 20)
    waiting = {pod.metadata.uid for pod in await world.pods()}
    assert not waiting & before
    assert len(waiting) == 3
    await world.settle(20 * DELAY)
    assert {pod.metadata.uid for pod in await world.pods()} == waiting
    assert all(pod.gated for pod in await world.pods())
    await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 1)
    assert await ready(world) == 4
    assert waiting < {pod.metadata.uid for pod in await world.pods()}


@given_a_world
async def test_a_group_that_breaks_again_is_recycled_again(world: World) -> None:
    """A recycling that healed is over: the next breach, after its own delay, is answered by the next one."""
    await world.bring_up(workload())
    for _ in range(2):
        before = {pod.metadata.uid for pod in await world.pods()}
        await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 0, wait=DELAY + 20)
        assert not {pod.metadata.uid for pod in await world.pods()} & before
        await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 2)
        assert await ready(world) == 5
