"""Groups that change while their members wait: what was held for nothing is given back at once, and it is said why."""

from typing import Any

import pytest
from msgspec.structs import replace

from spinney.api.core import NAMESPACE, POD
from spinney.api.coscheduling import POD_GROUP
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from tests.conftest import Cluster

from . import bench as benches
from .bench import Bench, a_group, a_node, a_pod
from .world import World, a_world, configured
from .world import a_node as a_real_node
from .world import a_pod as a_real_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


@pytest.fixture
async def patient(cluster_name: str) -> Bench:
    """A scheduler that never gives a group up because it is far from its quorum."""
    return Bench(podGroupRejectPercentage=100)


async def two_of_three_wait(bench: Bench, **spec: Any) -> None:
    """Have a group of three of which two have room."""
    bench.put(a_node("n1", cpu=2), a_group("trio", 3, **spec))
    bench.put(*(a_pod(f"trio-{number}", group="trio") for number in range(3)))
    await bench.run()
    assert bench.waiting() == ["trio-0", "trio-1"]


async def test_a_group_that_is_deleted_holds_nothing(patient: Bench) -> None:
    """When the PodGroup goes, its waiting members give back their nodes; when it comes back, they are tried at once."""
    await two_of_three_wait(patient)
    patient.intake.take_in(Change(Key(benches.NAMESPACE, "trio"), a_group("trio", 3), None, "2"))
    assert patient.waiting() == []
    assert patient.rejected[-1] == ("trio", "pod group ns/trio not found")
    patient.put(a_pod("other", cpu="2"))
    await patient.run()
    assert patient.binds == {"other": "n1"}

    patient.put(a_node("n2", cpu=4), a_group("trio", 3, created=9))
    await patient.run(seconds=1)
    assert len(patient.binds) == 4


async def test_a_minimum_beyond_the_members_gives_back(patient: Bench) -> None:
    """When more members are asked for than exist, those that wait give back their nodes and say so."""
    await two_of_three_wait(patient)
    patient.put(a_group("trio", 5))
    assert patient.waiting() == []
    assert patient.rejected[-1][1].endswith("current pods number: 3, minMember of group: 5")


async def test_a_minimum_within_the_members_is_waited_for(patient: Bench) -> None:
    """When more members are asked for and they exist, those that wait go on waiting, and are released with the rest."""
    await two_of_three_wait(patient)
    patient.put(a_pod("trio-3", group="trio"), a_group("trio", 4))
    await patient.run()
    assert len(patient.waiting()) == 2
    patient.put(a_node("n2", cpu=2))
    await patient.run(seconds=15)
    assert len(patient.binds) == 4


async def test_a_minimum_that_is_reached_releases(patient: Bench) -> None:
    """When the minimum is lowered to those that wait, they are bound at once."""
    await two_of_three_wait(patient)
    patient.put(a_group("trio", 2))
    await patient.run()
    assert sorted(patient.binds) == ["trio-0", "trio-1"]


async def test_a_member_that_joins_another_group_leaves_its_node(patient: Bench) -> None:
    """A waiting pod whose label changes loses its node, and its old group gives back what it held."""
    await two_of_three_wait(patient)
    pod = patient.record("trio-0").pod
    labels = {**pod.metadata.labels, COSCHEDULING_GROUP: "solo"}
    patient.put(a_group("solo", 1), replace(pod, metadata=replace(pod.metadata, labels=labels)))
    assert patient.waiting() == []
    await patient.run(seconds=2)
    assert sorted(patient.binds) == ["trio-0"]
    assert patient.group("trio").assigned == 0


async def test_a_member_that_somebody_else_binds_releases_the_rest(patient: Bench) -> None:
    """A member of another scheduler counts when that has bound it: the ones that wait are let go at once."""
    patient.put(a_node("n1"), a_group("pair", 2))
    stranger = a_pod("pair-1", group="pair")
    stranger = replace(stranger, spec=replace(stranger.spec, scheduler_name="somebody"))
    patient.put(a_pod("pair-0", group="pair"), stranger)
    await patient.run()
    assert patient.waiting() == ["pair-0"]
    patient.put(replace(stranger, spec=replace(stranger.spec, node_name="n1")))
    await patient.run()
    assert sorted(patient.binds) == ["pair-0"]


async def test_a_member_of_another_scheduler_that_never_comes_is_waited_for_a_while(patient: Bench) -> None:
    """If nobody binds that member, the time-out gives the room back, and nothing more is tried."""
    patient.put(a_node("n1"), a_group("pair", 2, schedule_timeout_seconds=7))
    stranger = a_pod("pair-1", group="pair")
    patient.put(
        a_pod("pair-0", group="pair"), replace(stranger, spec=replace(stranger.spec, scheduler_name="somebody"))
    )
    await patient.run(seconds=6)
    assert patient.waiting() == ["pair-0"]
    await patient.run(seconds=2)
    assert patient.waiting() == []
    assert patient.refused["pair-0"].status.message == "waited 7s for permission to bind and did not get it"
    tried = patient.attempts
    await patient.run(seconds=600)
    assert patient.attempts == tried


async def test_a_time_out_of_zero_is_none(patient: Bench) -> None:
    """``scheduleTimeoutSeconds: 0`` says nothing, as in scheduler-plugins: the plugin's own time counts."""
    await two_of_three_wait(patient, schedule_timeout_seconds=0)
    await patient.run(seconds=59)
    assert len(patient.waiting()) == 2
    await patient.run(seconds=2)
    assert patient.waiting() == []


async def test_a_group_that_asks_for_more_than_there_is(patient: Bench) -> None:
    """``minResources`` beyond the cluster is refused with the gap before anything is held, and again only with news."""
    patient.put(a_node("n1", cpu=2), a_group("pair", 2, min_resources={"cpu": "12"}))
    patient.put(*(a_pod(f"pair-{number}", group="pair") for number in range(2)))
    await patient.run(seconds=600)
    assert patient.rejected == [("pair", "resource gap of pod group ns/pair: 10 CPU cores")]
    patient.put(a_node("n2", cpu=10))
    await patient.run(seconds=15)
    assert sorted(patient.binds) == ["pair-0", "pair-1"]


async def test_the_pods_say_that_their_group_is_gone(cluster: Cluster) -> None:
    """Pods that wait for room say so; when their PodGroup is deleted they say that, and run when it is back."""
    async with a_world(cluster, configured()) as world, world.scheduling():
        await world.nodes(a_real_node("n1", cpu="2"))
        await world.gang("trio", 3)
        await world.until(lambda: "Insufficient cpu" in world.message("trio-0"))
        await world.client.delete(POD_GROUP, "trio", world.namespace)
        await world.until(lambda: "pod group test/trio not found" in world.message("trio-0"))
        await world.nodes(a_real_node("n2", cpu="2"))
        await world.settle(20)
        assert world.bound() == []
        await world.group("trio", 3)
        await world.until(lambda: len(world.bound("trio")) == 3)


async def test_groups_of_two_namespaces_are_two(world: World) -> None:
    """A pod of another namespace is no member, whatever its label says: it waits for a group of its own namespace."""
    await world.nodes(a_real_node("n1"))
    await world.client.create(NAMESPACE, {"metadata": {"name": "elsewhere"}})
    await world.group("pair", 2)
    await world.create(a_real_pod("pair-0", group="pair"))
    await world.client.create(POD, a_real_pod("pair-1", group="pair"), "elsewhere")
    await world.until(lambda: "cannot find enough sibling pods, current pods number: 1" in world.message("pair-0"))
    other = await world.client.get(POD, "pair-1", "elsewhere")
    assert "pod group elsewhere/pair not found" in str(other["status"]["conditions"])
    await world.create(a_real_pod("pair-2", group="pair"))
    await world.until(lambda: len(world.bound("pair")) == 2)
