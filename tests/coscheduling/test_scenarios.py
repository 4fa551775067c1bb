"""The scenarios that scheduler-plugins tests coscheduling with, on whole clusters: embedded, and real ones."""

import asyncio

import pytest

from spinney.api.core import POD
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.client import Client
from spinney.kube.lease import LeaderElection, LeaseGivenAway
from spinney.kube.manager import Manager
from tests.conftest import Cluster

from .world import World, a_node, a_pod, a_world, configured

INTERLEAVED = (False, True)


async def created(world: World, names: list[str], *, interleaved: bool, size: int = 4) -> None:
    """Create the pods of several groups: group by group, or one of each in turn."""
    order = [(name, number) for name in names for number in range(size)]
    if interleaved:
        order.sort(key=lambda each: each[1])
    for name, number in order:
        await world.create(a_pod(f"{name}-{number}", group=name))


@pytest.mark.parametrize("interleaved", INTERLEAVED)
async def test_equal_priority_and_only_the_first_fits(cluster: Cluster, interleaved: bool) -> None:
    """Of two groups of equal priority of which only one fits, the older one runs."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="5"))
        await world.group("pg1", 4)
        await world.settle(2)
        await world.group("pg2", 4)
        await created(world, ["pg1", "pg2"], interleaved=interleaved)
        async with world.scheduling():
            await world.until(lambda: len(world.bound("pg1")) == 4)
            await world.settle(30)
            assert world.bound("pg2") == []


async def test_a_group_short_of_members_leaves_room_to_others(world: World) -> None:
    """Pods of an incomplete group do not run; pods without a group do."""
    await world.nodes(a_node("n1", cpu="4"))
    await world.group("short", 4)
    await created(world, ["short"], interleaved=False, size=3)
    await world.create(*(a_pod(f"single-{number}") for number in range(3)))
    await world.until(lambda: len(world.bound("single")) == 3)
    await world.settle(10)
    assert world.bound("short") == []


@pytest.mark.parametrize("interleaved", INTERLEAVED)
async def test_higher_priority_wins(cluster: Cluster, interleaved: bool) -> None:
    """Of two groups that fit alone, the one of higher priority runs, although it is younger."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="5"))
        await world.priority("high", 1000)
        await world.group("low", 4)
        await world.settle(2)
        await world.group("high", 4)
        names = ["low", "high"]
        order = [(name, number) for name in names for number in range(4)]
        order.sort(key=lambda each: each[1] if interleaved else 0)
        for name, number in order:
            priority_class = "high" if name == "high" else ""
            await world.create(a_pod(f"{name}-{number}", group=name, priority_class=priority_class))
        async with world.scheduling():
            await world.until(lambda: len(world.bound("high")) == 4)
            await world.settle(10)
            assert world.bound("low") == []


async def test_single_pods_of_higher_priority_beat_a_gang(cluster: Cluster) -> None:
    """Pods of higher priority without a group take the room first, and the gang holds none of the rest."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="4"))
        await world.priority("high", 1000)
        await world.gang("gang", 3)
        await world.create(*(a_pod(f"single-{number}", priority_class="high") for number in range(2)))
        async with world.scheduling():
            await world.until(lambda: len(world.bound("single")) == 2)
            await world.settle(20)
            assert world.bound("gang") == []


@pytest.mark.parametrize("resources", [{}, {"minResources": {"cpu": "4"}}], ids=["", "min-resources"])
async def test_three_interleaved_groups_of_which_one_fits(world: World, resources: dict[str, object]) -> None:
    """Of three groups whose pods arrive in turn, exactly one runs, with and without minimum resources."""
    await world.nodes(a_node("n1", cpu="5"))
    names = ["pg1", "pg2", "pg3"]
    for name in names:
        await world.group(name, 4, **resources)
    await created(world, names, interleaved=True)
    await world.until(lambda: len(world.bound()) == 4)
    await world.settle(60)
    assert [len(world.bound(name)) for name in names].count(4) == 1
    assert len(world.bound()) == 4


async def test_two_groups_with_minimum_resources_of_which_one_fits(world: World) -> None:
    """Of two groups that name what they need in total, the one that does not fit beside the other does not start."""
    await world.nodes(a_node("n1", cpu="5"))
    await world.group("first", 3, minResources={"cpu": "3"})
    await created(world, ["first"], interleaved=False, size=3)
    await world.until(lambda: len(world.bound("first")) == 3)
    await world.group("second", 3, minResources={"cpu": "3"})
    await created(world, ["second"], interleaved=False, size=3)
    await world.until(lambda: "resource gap of pod group" in world.message("second-0"))
    assert world.bound("second") == []


async def test_completed_pods_do_not_count(world: World) -> None:
    """A member that has ended is not part of the quorum: the rest waits for a replacement."""
    await world.nodes(a_node("n1", cpu="4"))
    await world.group("pair", 2)
    ended = a_pod("pair-0", group="pair")
    ended["spec"]["nodeName"] = "n1"
    await world.create(ended)
    await world.phase("pair-0", "Succeeded")
    await world.create(a_pod("pair-1", group="pair"))
    await world.settle(10)
    assert not world.node_of("pair-1")
    await world.create(a_pod("pair-2", group="pair"))
    await world.until(lambda: bool(world.node_of("pair-1")) and bool(world.node_of("pair-2")))


async def test_back_off_lets_a_smaller_group_run(cluster: Cluster) -> None:
    """A group that cannot be placed rests, and a younger one that can be placed runs meanwhile."""
    async with a_world(cluster, configured(podGroupBackoffSeconds=20)) as world, world.scheduling():
        await world.nodes(a_node("n1", cpu="6"), *(a_node(f"n{number}", cpu="2") for number in (2, 3, 4)))
        await world.gang("large", 4, cpu="4")
        await world.settle(1)
        await world.gang("small", 4, cpu="1")
        await world.until(lambda: len(world.bound("small")) == 4, seconds=10)
        await world.settle(60)
        assert world.bound("large") == []


async def test_gated_members_count_when_their_gates_are_gone(world: World) -> None:
    """A group whose members are gated is not tried until enough of them are free."""
    await world.nodes(a_node("n1", cpu="4"))
    await world.group("gated", 3)
    await world.create(*(a_pod(f"gated-{number}", group="gated") for number in range(2)))
    await world.create(a_pod("gated-2", group="gated", schedulingGates=[{"name": "later"}]))
    await world.until(lambda: "1 of them gated" in world.message("gated-0"))
    assert world.bound() == []
    await world.client.patch(POD, "gated-2", {"spec": {"schedulingGates": None}}, world.namespace)
    await world.until(lambda: len(world.bound("gated")) == 3)


async def test_a_restart_in_the_middle_completes_the_group(cluster: Cluster) -> None:
    """A scheduler that comes back finds some members bound and binds the rest, however few they are."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="4"))
        await world.group("torn", 4)
        for number in range(4):
            pod = a_pod(f"torn-{number}", group="torn")
            if number < 2:
                pod["spec"]["nodeName"] = "n1"
            await world.create(pod)
        async with world.scheduling():
            await world.until(lambda: len(world.bound("torn")) == 4)
            await world.until(lambda: world.status("torn").phase == "Scheduling")


async def test_victims_are_told_and_deleted(world: World) -> None:
    """A pod that is preempted gets the DisruptionTarget condition and an event; the preemptor gets its node."""
    await world.nodes(a_node("n1", cpu="1"))
    await world.priority("high", 1000)
    victim = a_pod("victim")
    victim["spec"]["terminationGracePeriodSeconds"] = 5
    await world.create(victim)
    await world.until(lambda: bool(world.node_of("victim")))
    await world.create(a_pod("important", priority_class="high"))
    await world.until(lambda: world.pods["victim"].is_true("DisruptionTarget"))
    await world.until(lambda: world.nominated("important") == "n1")
    await world.until(lambda: world.pods["victim"].metadata.deleting)
    await world.delete("victim")
    await world.until(lambda: world.node_of("important") == "n1")
    assert len(await world.events("Preempted", least=1)) == 1
    why = "0/1 nodes are available: 1 Insufficient cpu."
    failed = await world.events("FailedScheduling", least=1, saying=why)
    assert any(text.startswith(why) for text in failed)


async def test_a_scheduler_that_stops_leaves_nothing_behind(cluster: Cluster) -> None:
    """Members that waited when the scheduler stopped are free for its successor, and nothing is written after."""
    async with a_world(cluster, configured(podGroupRejectPercentage=100)) as world:
        await world.nodes(a_node("n1", cpu="2"))
        await world.gang("late", 3)
        async with world.scheduling():
            await world.settle(3)
        before = await versions(world)
        await world.settle(120)
        assert await versions(world) == before
        await world.nodes(a_node("n2", cpu="2"))
        async with world.scheduling():
            await world.until(lambda: len(world.bound("late")) == 3, seconds=5)


async def test_a_scheduler_that_leads_again_lets_go_of_those_that_waited(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that waited when the lease was given away give up their nodes, and are placed with the others."""
    if not cluster.embedded:
        pytest.skip("waits for leases, which only virtual time makes short")
    async with a_world(cluster, configured(podGroupRejectPercentage=100)) as world:
        await world.nodes(a_node("n1", cpu="2"))
        await world.gang("late", 3)
        client = Client(world.client.transport, world.runtime, field_manager="spinney-coscheduler")
        election = LeaderElection(client, "coscheduler", world.namespace, identity="one", runtime=world.runtime)
        manager = Manager(client, world.runtime, election=election)
        process = CoschedulerProcess(client, world.configuration, manager=manager)
        running = asyncio.create_task(process.run())
        try:
            await world.settle(3)
            assert len(process.services.waiting) == 2

            async def give_away() -> None:
                monkeypatch.undo()
                raise LeaseGivenAway("failed ten times in a row")

            monkeypatch.setattr(process, "_burst_after_burst", give_away)
            await world.nodes(a_node("n2", cpu="2"))
            await world.until(lambda: len(world.bound("late")) == 3, seconds=120)
        finally:
            process.stop()
            await running


async def versions(world: World) -> dict[str, str]:
    """Return the version of each pod as the API server has it: what was seen of them may be older."""
    pods = (await world.client.list(POD, world.namespace)).items
    return {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in pods}
