"""What Kubernetes' own PodGroups and scheduler-plugins' say of the groups that the session scheduler places."""

from typing import Any

import pytest

from spinney.api import coscheduling, workload_v1beta1
from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.meta import Condition
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.crds import install_crds
from tests.scheduler.process.world import NS, World, given_a_world

TYPES: dict[Resource, tuple[type[Any], str]] = {
    workload_v1beta1.POD_GROUP: (workload_v1beta1.PodGroup, workload_v1beta1.INITIALLY_SCHEDULED),
    coscheduling.POD_GROUP: (coscheduling.PodGroup, coscheduling.SCHEDULED),
}


async def said_of(world: World, resource: Resource, name: str) -> Condition | None:
    """Return the scheduled condition of a group."""
    decoded, condition = TYPES[resource]
    group = await world.client.get(resource, name, NS, type=decoded)
    return find_condition(group.status.conditions, condition)


async def add_labelled_gang(world: World, name: str, size: int) -> None:
    """Create a group of scheduler-plugins' and its pods."""
    await world.client.create(
        coscheduling.POD_GROUP, {"metadata": {"name": name, "namespace": NS}, "spec": {"minMember": size}}
    )
    for number in range(size):
        pod = await world.add_pod(f"{name}-{number}", schedulingGates=[{"name": "not-yet"}])
        patch = {"metadata": {"labels": {COSCHEDULING_GROUP: name}}, "spec": {"schedulingGates": None}}
        await world.client.patch(POD, pod.metadata.name, patch, NS)


@pytest.mark.parametrize("resource", TYPES, ids=["native", "scheduler-plugins"])
@given_a_world
async def test_a_group_says_why_it_waits_and_that_it_is_scheduled(world: World, resource: Resource) -> None:
    """The kind's own condition is False with the reason while a group fits nowhere, and True once it is bound."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        if resource is workload_v1beta1.POD_GROUP:
            await world.add_gang("g", 2)
        else:
            await add_labelled_gang(world, "g", 2)
        await world.settle(3)
        waiting = await said_of(world, resource, "g")
        assert waiting is not None
        assert (waiting.status, waiting.reason) == ("False", "Unschedulable")
        assert "unschedulable on cluster" in waiting.message
        await world.add_node("n2", gpus=1)
        await world.settle(3)
        scheduled = await said_of(world, resource, "g")
        assert scheduled is not None
        assert (scheduled.status, scheduled.reason) == ("True", "Scheduled")
        assert scheduled.message == "2 of 2 pods are placed"


@given_a_world
async def test_being_scheduled_once_is_history(world: World) -> None:
    """The condition of Kubernetes' own group stays True when its pods are replaced by pods that fit nowhere."""
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        await world.add_gang("g", 1)
        await world.settle(3)
        first = await said_of(world, workload_v1beta1.POD_GROUP, "g")
        await world.client.delete(POD, "g-0", NS)
        await world.add_pod("g-1", gang="g", gpus=2)
        await world.settle(3)
        assert first is not None
        assert first.status == "True"
        assert await said_of(world, workload_v1beta1.POD_GROUP, "g") == first


@given_a_world
async def test_groups_of_another_scheduler_are_left_alone(world: World) -> None:
    """Nothing is written on a group whose pods ask for another scheduler."""
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        await world.add_group("g", 2)
        for number in range(2):
            await world.add_pod(f"g-{number}", gang="g", schedulerName="default-scheduler")
        await world.settle(3)
        assert await said_of(world, workload_v1beta1.POD_GROUP, "g") is None


@pytest.mark.parametrize("resource", TYPES, ids=["native", "scheduler-plugins"])
@given_a_world
async def test_what_a_scheduler_left_unsaid_the_next_one_says(world: World, resource: Resource) -> None:
    """A group whose pods have nodes is told so by a scheduler that starts later; a group without pods is nobody's."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=2)
    if resource is workload_v1beta1.POD_GROUP:
        await world.add_gang("g", 2)
    else:
        await add_labelled_gang(world, "g", 2)
    spec: JSON = {"schedulingPolicy": {"basic": {}}} if resource is workload_v1beta1.POD_GROUP else {"minMember": 1}
    await world.client.create(resource, {"metadata": {"name": "empty", "namespace": NS}, "spec": spec})
    for number in range(2):
        target = {"metadata": {"name": f"g-{number}"}, "target": {"kind": "Node", "name": "n1"}}
        await world.client.create(POD, target, NS, name=f"g-{number}", subresource="binding")
    async with world.scheduler():
        await world.settle(3)
        said = await said_of(world, resource, "g")
        assert said is not None
        assert (said.status, said.message) == ("True", "2 of 2 pods are placed")
        assert await said_of(world, resource, "empty") is None
