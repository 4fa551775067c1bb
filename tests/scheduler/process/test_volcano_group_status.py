"""What Volcano's PodGroups say when the session scheduler places them."""

from typing import Any

import pytest

from spinney.api import volcano
from spinney.api.core import POD
from spinney.api.labels import VOLCANO_GROUP
from spinney.gangs.sources.volcano import TASK_ANNOTATION
from spinney.kube.crds import install_crds
from tests.scheduler.process.world import NS, World, given_a_world


async def add_group(world: World, name: str, size: int, **spec: Any) -> None:
    """Create a group and its pods."""
    await world.client.create(
        volcano.POD_GROUP, {"metadata": {"name": name, "namespace": NS}, "spec": {"minMember": size}}
    )
    for number in range(size):
        await add_member(world, name, number, **spec)


async def add_member(world: World, group: str, number: int, *, task: str = "", **spec: Any) -> None:
    """Create a pod of a group, and of a task."""
    pod = await world.add_pod(f"{group}-{number}", schedulingGates=[{"name": "not-yet"}], **spec)
    annotations = {VOLCANO_GROUP: group, **({TASK_ANNOTATION: task} if task else {})}
    patch = {"metadata": {"annotations": annotations}, "spec": {"schedulingGates": None}}
    await world.client.patch(POD, pod.metadata.name, patch, NS)


async def status_of(world: World, name: str) -> volcano.PodGroupStatus:
    group = await world.client.get(volcano.POD_GROUP, name, NS, type=volcano.PodGroup)
    return group.status


async def set_phase(world: World, phase: str) -> None:
    """Have both pods report a phase."""
    for number in range(2):
        await world.client.patch(POD, f"g-{number}", {"status": {"phase": phase}}, NS, subresource="status")


def said(status: volcano.PodGroupStatus) -> dict[str, tuple[str | None, str]]:
    """Return the conditions: status and reason by type."""
    return {each.type: (each.status, each.reason) for each in status.conditions}


@given_a_world
async def test_a_group_says_why_it_waits_that_it_runs_and_that_it_is_done(world: World) -> None:
    """Phase, conditions and counts follow the group from the queue to its end, in Volcano's words."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        await add_group(world, "g", 2)
        await world.settle(3)
        waiting = await status_of(world, "g")
        assert (waiting.phase, said(waiting)) == ("Inqueue", {"Unschedulable": ("True", "Unschedulable")})
        assert "unschedulable on cluster" in waiting.conditions[0].message
        assert waiting.conditions[0].transition_id
        await world.add_node("n2", gpus=1)
        await world.settle(3)
        placed = await status_of(world, "g")
        assert (placed.phase, placed.running) == ("Running", 0)
        assert said(placed) == {"Unschedulable": ("False", "Scheduled"), "Scheduled": ("True", "Scheduled")}
        await set_phase(world, "Running")
        await world.settle(3)
        running = await status_of(world, "g")
        assert (running.phase, running.running, running.conditions) == ("Running", 2, placed.conditions)
        await set_phase(world, "Succeeded")
        await world.settle(3)
        done = await status_of(world, "g")
        assert (done.phase, done.running, done.succeeded) == ("Completed", 0, 2)


@given_a_world
async def test_groups_of_another_scheduler_are_left_alone(world: World) -> None:
    """Nothing is written on a group whose pods ask for another scheduler."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        await add_group(world, "g", 2, schedulerName="volcano-elsewhere")
        await world.settle(3)
        assert await status_of(world, "g") == volcano.PodGroupStatus()


@pytest.mark.parametrize(
    ("spec", "placed"),
    [
        ({"minMember": 3}, True),
        ({"minMember": 4}, False),
        ({"minMember": 3, "minTaskMember": {"worker": 4}}, True),
        ({"minMember": 1, "minTaskMember": {"ps": 1}}, True),
        ({"minMember": 4, "minTaskMember": {"worker": 4}}, False),
    ],
)
@given_a_world
async def test_pods_that_name_tasks_start_once_the_minimum_of_their_group_fits(
    world: World, spec: dict[str, Any], placed: bool
) -> None:
    """Of four workers and a parameter server three fit; tasks that the group does not list, or not alone, count too."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=3)
    async with world.scheduler():
        for number, task in enumerate(["worker", "worker", "worker", "worker", "ps"]):
            await add_member(world, "g", number, task=task)
        await world.client.create(volcano.POD_GROUP, {"metadata": {"name": "g", "namespace": NS}, "spec": spec})
        await world.settle(3)
        assert sum(node != "" for node in (await world.places()).values()) == (3 if placed else 0)
        assert (await status_of(world, "g")).phase == ("Running" if placed else "Inqueue")
