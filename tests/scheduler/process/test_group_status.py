"""What is written on groups: why KAI's PodGroups wait and when they started, how well PodGangs lie and who took."""

from datetime import UTC, datetime

import pytest

from spinney.api import kai
from spinney.api.conditions import find_condition
from spinney.api.core import POD, Pod
from spinney.api.labels import KAI_POD_GROUP
from spinney.api.meta import Condition, ObjectMeta
from spinney.api.podgang import DISRUPTION_TARGET, SCHEDULED, PodGang, PodGangStatus
from spinney.api.struct import convert
from spinney.gangs.tree import GroupSet, PodSet, TopologyConstraintInfo
from spinney.kube.transport import Response
from spinney.reporting.pod_gangs import gang_status
from spinney.reporting.verdicts import GangVerdict
from spinney.scheduler.framework.results import NOT_READY
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.topology.resolving import Topologies
from spinney.scheduler.topology.scoring import placement_score
from tests.scheduler.process.test_time import a_contest, a_job
from tests.scheduler.process.world import NS, World, given_a_world
from tests.scheduler.process.world import status as refusal

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def group(world: World, name: str) -> kai.PodGroup:
    return await world.client.get(kai.POD_GROUP, name, NS, type=kai.PodGroup)


async def a_gated_mate(world: World) -> None:
    """Create a pod of the group "pair" that a gate holds back."""
    mate = {
        "metadata": {"name": "mate", "namespace": NS, "annotations": {KAI_POD_GROUP: "pair"}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "schedulingGates": [{"name": "example.com/later"}],
            "containers": [{"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
    }
    await world.client.create(POD, mate)


@given_a_world
async def test_a_pod_group_says_why_it_waits_until_it_is_placed(world: World) -> None:
    """The condition of the node pool names the reason, is written once, and goes when the job has its place."""
    await a_contest(world)
    async with world.scheduler():
        await a_job(world, "first", "high")
        await world.settle(3)
        await a_job(world, "second", "low")
        await world.settle(60)
        (condition,) = (await group(world, "second")).status.scheduling_conditions
        assert (condition.type, condition.node_pool) == ("UnschedulableOnNodePool", "default")
        assert (condition.status, condition.transition_id) == ("True", "0")
        assert "unschedulable on cluster" in condition.message
        assert not (await group(world, "first")).status.scheduling_conditions

        await world.client.delete(POD, "first", NS)
        await world.settle(5)
        assert not (await group(world, "second")).status.scheduling_conditions
        assert "kai.scheduler/last-start-timestamp" in (await group(world, "second")).metadata.annotations


@given_a_world
async def test_no_reason_is_published_while_gates_are_still_opening(world: World) -> None:
    """Of a gang that only lacks pods which are still gated nothing is said; once all are there, it is."""
    await a_contest(world)
    async with world.scheduler():
        await a_gated_mate(world)
        await a_job(world, "pair", "low", minMember=2)
        first = await world.client.get(POD, "pair", NS, type=Pod)
        await world.settle(60)
        waiting = await world.client.get(POD, "pair", NS, type=Pod)
        assert waiting.condition("PodScheduled") == first.condition("PodScheduled")
        assert not (await group(world, "pair")).status.scheduling_conditions

        await world.client.patch(POD, "mate", {"spec": {"schedulingGates": None}}, NS)
        await world.settle(60)
        refused = (await world.client.get(POD, "pair", NS, type=Pod)).condition("PodScheduled")
        assert refused is not None
        assert refused.status == "False"


@given_a_world
async def test_no_reason_is_published_that_gates_opened_meanwhile_have_settled(world: World) -> None:
    """A cycle that began before the last gate was opened says nothing of the pods it missed: they are there now."""
    await a_contest(world)
    async with world.scheduler() as process:
        await a_gated_mate(world)
        await a_job(world, "pair", "low", minMember=2)
        await world.settle(5)
        before = process._scheduler.run_cycle()
        assert [each.errors[0].reason for each in before.unschedulable] == [NOT_READY]
        await world.client.patch(POD, "mate", {"spec": {"schedulingGates": None}}, NS)
        await world.settle(60)
        said = (await world.client.get(POD, "pair", NS, type=Pod)).condition("PodScheduled")
        process._effects.conclude(before)
        await world.settle(0.01)
        assert (await world.client.get(POD, "pair", NS, type=Pod)).condition("PodScheduled") == said


@given_a_world
async def test_a_pod_group_that_lost_pods_says_when(world: World) -> None:
    """The victim's group carries the moment of its eviction, which preemption delays count from."""
    await a_contest(world)
    async with world.scheduler():
        await a_job(world, "low", "low")
        await world.settle(3)
        await a_job(world, "high", "high")
        await world.settle(5)
        assert await world.places() == {"high": "n1"}
        assert "kai.scheduler/last-eviction-timestamp" in (await group(world, "low")).metadata.annotations


@given_a_world
async def test_what_a_conflict_refused_is_written_again(world: World) -> None:
    """A moment whose write met somebody else's is written for the version that is there then."""
    await a_contest(world)
    refused: list[str] = []

    def conflict_once(method: str, path: str) -> Response | None:
        if method != "PATCH" or "/podgroups/first" not in path or refused:
            return None
        refused.append(path)
        return refusal(409, "Conflict")

    world.transport.fault = conflict_once
    async with world.scheduler():
        await a_job(world, "first", "high")
        await world.settle(5)
    assert refused
    assert "kai.scheduler/last-start-timestamp" in (await group(world, "first")).metadata.annotations


def test_the_disruption_of_a_gang_is_said_until_it_recovered() -> None:
    """DisruptionTarget stands beside Scheduled while the gang lacks pods, and is taken away with the next verdict."""
    gang = PodGang(metadata=ObjectMeta(name="g", namespace=NS))
    lost = GangVerdict(scheduled=False, reason="Waiting", message="2 of 4 pods are placed", disruption="reclaimed")
    status = gang_status(gang, lost, now=NOW)
    assert status is not None
    assert [each["type"] for each in status["conditions"]] == [SCHEDULED, DISRUPTION_TARGET]

    conditions = tuple(convert(Condition, each) for each in status["conditions"])
    told = PodGang(metadata=gang.metadata, status=PodGangStatus(conditions=conditions))
    assert gang_status(told, lost, now=NOW) is None
    back = GangVerdict(scheduled=True, reason=SCHEDULED, message="4 of 4 pods are placed", placement_score=1.0)
    status = gang_status(told, back, now=NOW)
    assert status is not None
    assert find_condition(tuple(convert(Condition, each) for each in status["conditions"]), DISRUPTION_TARGET) is None


@pytest.mark.parametrize(
    ("racks", "score"),
    [(["b1.r1", "b1.r1"], 1.0), (["b1.r1", "b1.r2"], 0.5), (["b1.r1", "b2.r1"], 0.0)],
)
def test_the_placement_score_falls_with_every_level(racks: list[str], score: float) -> None:
    """Pods in the preferred rack score 1, in one block half of that, and across blocks nothing."""
    topology = TopologyLevels("t", ("block", "rack"))
    constraint = TopologyConstraintInfo("t", required="", preferred="rack")
    root = GroupSet("root", (PodSet("a", topology=constraint), PodSet("b")))
    nodes = [dict(zip(("block", "rack"), place.split("."), strict=True)) for place in racks]
    assert placement_score(root, {"a": nodes, "b": nodes}.__getitem__, Topologies([topology])) == score


def test_the_placement_score_weighs_constraints_by_pods() -> None:
    """Three pods at their level and one pair that is not: the pair counts for two of five."""
    topology = TopologyLevels("t", ("rack",))
    preferred = TopologyConstraintInfo("t", preferred="rack")
    root = GroupSet("root", (PodSet("a", topology=preferred), PodSet("b", topology=preferred)))
    nodes = {"a": [{"rack": "r1"}] * 3, "b": [{"rack": "r1"}, {"rack": "r2"}]}
    assert placement_score(root, nodes.__getitem__, Topologies([topology])) == 0.6
