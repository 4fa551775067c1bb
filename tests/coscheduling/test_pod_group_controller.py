"""What the status of a PodGroup says, for every state its pods can be in."""

import asyncio
from typing import Any

import pytest

from spinney.api.core import CONFIG_MAP, EVENT, POD, Pod, PodSpec, PodStatus
from spinney.api.coscheduling import POD_GROUP, PodGroup, PodGroupSpec, PodGroupStatus
from spinney.api.meta import Metadata, ObjectMeta
from spinney.coscheduling.process.pod_group_controller import PodGroupController, next_status
from spinney.kube.manager import Manager
from tests.conftest import Cluster

from .world import World, a_node, a_pod, a_world


def a_group(minimum: int = 2, phase: str = "", **status: Any) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(name="g", namespace="ns"),
        spec=PodGroupSpec(min_member=minimum),
        status=PodGroupStatus(phase=phase or None, **status),
    )


def pods(**phases: int) -> list[Pod]:
    """Return so many pods of each phase."""
    return [
        Pod(
            metadata=Metadata(name=f"{phase}-{number}", namespace="ns"),
            spec=PodSpec(node_name="" if phase == "Pending" else "n1"),
            status=PodStatus(phase=phase),
        )
        for phase, count in phases.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("phase", "members", "expected"),
    [
        ("", {}, "Pending"),
        ("", {"Pending": 1}, "Pending"),
        ("Pending", {"Pending": 2}, "Scheduling"),
        ("Pending", {"Running": 2}, "Running"),
        ("Pending", {"Succeeded": 2}, "Finished"),
        ("Scheduling", {"Running": 1, "Pending": 1}, "Scheduling"),
        ("Scheduling", {"Running": 2}, "Running"),
        ("Scheduling", {"Succeeded": 2}, "Finished"),
        ("Running", {"Running": 3}, "Running"),
        ("Running", {"Running": 1, "Succeeded": 1}, "Running"),
        ("Running", {"Running": 1}, "Pending"),
        ("Running", {"Running": 1, "Pending": 1}, "Scheduling"),
        ("Running", {"Running": 2, "Failed": 1}, "Failed"),
        ("Scheduling", {"Pending": 1, "Failed": 1}, "Failed"),
        ("Failed", {"Running": 2}, "Running"),
        ("Failed", {"Pending": 1}, "Pending"),
        ("Failed", {}, "Failed"),
        ("Running", {"Succeeded": 2, "Failed": 1}, "Finished"),
        ("Finished", {}, "Finished"),
        ("Finished", {"Succeeded": 1}, "Finished"),
        ("Finished", {"Pending": 2}, "Scheduling"),
    ],
)
def test_phases(phase: str, members: dict[str, int], expected: str) -> None:
    """Controller 2 and 3: one failure is Failed at once; the phase follows from the pods, whatever interrupted them."""
    assert next_status(a_group(phase=phase), pods(**members)).phase == expected


def test_counts() -> None:
    """Scheduled counts members that have a node and have not ended; the others count their phases."""
    status = next_status(a_group(), pods(Pending=1, Running=2, Succeeded=1, Failed=1))
    assert (status.scheduled, status.running, status.succeeded, status.failed) == (2, 2, 1, 1)


def test_a_finished_group_keeps_its_counts() -> None:
    """When the pods of a finished group are cleaned up, its status stays as it was."""
    group = a_group(phase="Finished", succeeded=2)
    assert next_status(group, []) == group.status


def test_a_status_that_is_right_is_not_changed() -> None:
    """The status of a group is a fixed point: nothing is written twice."""
    group = a_group()
    status = next_status(group, pods(Running=2))
    again = PodGroup(metadata=group.metadata, spec=group.spec, status=status)
    assert next_status(again, pods(Running=2)) == status


async def test_the_life_of_a_group(world: World) -> None:
    """Controller 1 and 2: Pending, Scheduling, Running, Failed and back, Finished, as the pods go through it."""
    await world.group("life", 2)
    await world.until(lambda: world.status("life").phase == "Pending")
    await world.create(a_pod("life-0", group="life"), a_pod("life-1", group="life"), a_pod("other"))
    await world.until(lambda: world.status("life").phase == "Scheduling")
    await world.nodes(a_node("n1"))
    await world.until(lambda: world.status("life").scheduled == 2)
    for name in ("life-0", "life-1"):
        await world.phase(name, "Running")
    await world.until(lambda: world.status("life").phase == "Running")
    await world.phase("life-1", "Failed")
    await world.until(lambda: world.status("life").phase == "Failed")
    await world.delete("life-1")
    await world.create(a_pod("life-2", group="life"))
    await world.until(lambda: bool(world.node_of("life-2")))
    await world.phase("life-2", "Running")
    await world.until(lambda: world.status("life").phase == "Running")
    for name in ("life-0", "life-2"):
        await world.phase(name, "Succeeded")
    await world.until(lambda: world.status("life").phase == "Finished")
    assert world.status("life").succeeded == 2


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_the_controller_alone(cluster: Cluster) -> None:
    """Run alone it counts only its own namespace, names the owner, and reports a second one."""
    async with a_world(cluster) as world:
        manager = Manager(cluster.connect("podgroup-controller"), cluster.runtime)
        controller = PodGroupController(manager)
        controller.follow(manager.cache(POD_GROUP, PodGroup))
        running = asyncio.create_task(manager.run())
        await manager.wait_until_ready()
        await world.group("owned", 2)
        uids = {}
        for number, name in enumerate(("first", "first", "second")):
            if name not in uids:
                owner = await cluster.client.create(CONFIG_MAP, {"metadata": {"name": name}}, "test")
                uids[name] = owner["metadata"]["uid"]
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True, "name": name, "uid": uids[name]}
            pod = a_pod(f"owned-{number}", group="owned")
            pod["metadata"]["ownerReferences"] = [reference]
            await cluster.client.create(POD, pod, "test")
            await world.settle(1)
        await cluster.client.create(POD, a_pod("owned-9", group="owned"), "default")
        await world.settle(1)
        assert world.status("owned").phase == "Scheduling"
        assert world.status("owned").occupied_by == uids["first"]
        listing = await cluster.client.list(EVENT, "test")
        assert ["ConfigMap second" in event["message"] for event in listing.items] == [True]
        assert controller.controller.repairs == 0
        manager.stop()
        await running
        written = await cluster.client.get(POD_GROUP, "owned", "test", type=PodGroup)
        assert written.status.scheduled == 0
