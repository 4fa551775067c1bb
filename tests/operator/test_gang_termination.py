"""Gangs that lose their minimum are recycled after the delay, as little of them as will do."""

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, is_true
from spinney.api.core import EVENT, POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.podgang import INITIALIZED, PodGang
from spinney.backends import additions
from spinney.operator.status.podcliquescalinggroup import GANG_TERMINATION_IN_PROGRESS
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world


def workload(minimums: tuple[int, int, int, int]) -> PodCliqueSet:
    """Return a standalone clique of 2 and a group of 1 + 3 in two replicas, with these minimums."""
    a, b, c, sg = minimums
    cliques = [a_clique("a", 2, a), a_clique("b", 1, b), a_clique("c", 3, c)]
    group = a_scaling_group("sg", ["b", "c"], 2, sg)
    return a_pod_clique_set("model", cliques, [group], termination_delay="10s")


ALL = (2, 1, 3, 2)
FEW = (1, 1, 1, 1)


async def uids(world: World, clique: str = "") -> set[str | None]:
    """Return the uids of the pods, of one PodClique or of all."""
    pods = await world.pods()
    return {pod.metadata.uid for pod in pods if clique in ("", pod.metadata.labels[marks.POD_CLIQUE])}


async def kill(world: World, clique: str, count: int = 1) -> None:
    """Delete pods of a PodClique for which there is no place any more."""
    world.place = lambda pod: False
    victims = [pod for pod in await world.pods() if pod.metadata.labels[marks.POD_CLIQUE] == clique]
    for victim in [pod for pod in victims if pod.spec.node_name][:count]:
        await world.client.delete(POD, victim.metadata.name, "test")
    await world.settle(2)


async def running(world: World) -> list[Pod]:
    """Return the ready pods."""
    return [pod for pod in await world.pods() if pod.is_true("Ready")]


@given_a_world
async def test_a_replica_that_lost_its_minimum_is_recycled_whole(world: World) -> None:
    """After the delay no pod of the replica survives; with room again the gang comes back complete."""
    await world.bring_up(workload(ALL))
    before = await uids(world)
    assert len(before) == 10
    await kill(world, "model-0-a")
    assert len(await uids(world) & before) == 9
    await world.settle(30)
    assert not await uids(world) & before
    await world.now_place()
    await world.settle()
    assert len(await running(world)) == 10


@given_a_world
async def test_a_clique_that_lost_all_that_was_scheduled_says_so(world: World) -> None:
    """A PodClique says it once, when it had pods on nodes and has none; one that comes up has lost nothing."""

    async def said() -> list[tuple[str, str]]:
        events = (await world.client.list(EVENT, "test")).items
        lost = [each for each in events if each["reason"] == "AllScheduledReplicasLost"]
        return [(each["involvedObject"]["name"], each["message"]) for each in lost]

    await world.bring_up(workload(FEW))
    assert await said() == []
    await kill(world, "model-0-a", 1)
    assert await said() == []
    await kill(world, "model-0-a", 1)
    assert await said() == [("model-0-a", "none of 1 scheduled pods is left")]


@given_a_world
async def test_a_recycled_gang_starts_over(world: World) -> None:
    """The gang of a recycled replica gets a new incarnation and loses Initialized before its new pods exist."""
    await world.bring_up(workload(ALL))
    assert additions.INCARNATION not in (await world.gang("model-0")).metadata.annotations
    await kill(world, "model-0-a")
    await world.settle(30)
    told = _initialized(world.witness.gang_history["model-0"])
    # That the killed pods are missing is said before the replica is recycled, and is no new life.
    history = [each["status"] for each in told if each["reason"] != "PodsMissing"]
    changes = [status for n, status in enumerate(history) if n == 0 or history[n - 1] != status]
    assert changes == ["False", "True", "False", "True"]
    gang: PodGang = await world.gang("model-0")
    assert additions.INCARNATION in gang.metadata.annotations
    assert is_true(gang.status.conditions, INITIALIZED)


@given_a_world
async def test_a_gang_whose_cliques_a_user_deleted_starts_over(world: World) -> None:
    """Nobody asked for a recycling, and yet none of its PodCliques is left: it is whole again before a pod starts."""
    await world.bring_up(workload(ALL))
    for clique in (await world.client.list(POD_CLIQUE, "test")).items:
        await world.client.delete(POD_CLIQUE, clique["metadata"]["name"], "test")
    await world.settle(30)
    gang = await world.gang("model-0")
    assert additions.INCARNATION in gang.metadata.annotations
    assert is_true(gang.status.conditions, INITIALIZED)
    assert len(await running(world)) == 10
    history = [each["status"] for each in _initialized(world.witness.gang_history["model-0"])]
    changes = [status for n, status in enumerate(history) if n == 0 or history[n - 1] != status]
    assert changes == ["False", "True", "False", "True"]


@given_a_world
async def test_a_gang_of_which_a_user_deleted_one_clique_lives_on(world: World) -> None:
    """The other PodCliques run: its pods come back into the same life, as those of one replaced replica do."""
    await world.bring_up(workload(ALL))
    before = await uids(world, "model-0-sg-0-b") | await uids(world, "model-0-sg-0-c")
    await world.client.delete(POD_CLIQUE, "model-0-a", "test")
    await world.settle(30)
    assert additions.INCARNATION not in (await world.gang("model-0")).metadata.annotations
    assert await uids(world, "model-0-sg-0-b") | await uids(world, "model-0-sg-0-c") == before
    assert len(await running(world)) == 10


@given_a_world
async def test_losing_pods_above_the_minimum_recycles_nothing(world: World) -> None:
    """A clique that keeps its minimum is only refilled; when that goes too, the replica is recycled."""
    await world.bring_up(workload(FEW))
    before = await uids(world)
    await kill(world, "model-0-a")
    await world.settle(60)
    assert len(await uids(world) & before) == 9
    await kill(world, "model-0-a")
    await world.settle(30)
    assert not await uids(world) & before


@given_a_world
async def test_a_scaling_group_heals_itself_while_its_minimum_survives(world: World) -> None:
    """A broken replica of a scaling group is recycled alone; when too few remain, everything goes."""
    await world.bring_up(workload(FEW))
    before = await uids(world)
    await kill(world, "model-0-sg-1-c")
    await world.settle(60)
    assert len(await uids(world) & before) == 9
    await kill(world, "model-0-sg-1-c", 2)
    await world.settle(30)
    left = await uids(world) & before
    assert left == (await uids(world, "model-0-a")) | await uids(world, "model-0-sg-0-b") | await uids(
        world, "model-0-sg-0-c"
    )
    await kill(world, "model-0-sg-0-c", 3)
    await world.settle(30)
    assert not await uids(world) & before


@given_a_world
async def test_what_never_ran_is_not_recycled(world: World) -> None:
    """A workload that waits for room keeps its pods however long that takes."""
    world.place = lambda pod: False
    await world.bring_up(workload(ALL))
    before = await uids(world)
    await world.settle(3600)
    assert await uids(world) == before


@given_a_world
async def test_a_recycled_replica_is_not_recycled_again_while_it_waits(world: World) -> None:
    """Recycling happens once for a breach; the replica then waits for room like any other."""
    await world.bring_up(workload(ALL))
    await kill(world, "model-0-sg-0-c")
    await world.settle(30)
    recycled = await uids(world)
    group = await world.client.get(POD_CLIQUE_SCALING_GROUP, "model-0-sg", "test", type=PodCliqueScalingGroup)
    assert find_condition(group.status.conditions, GANG_TERMINATION_IN_PROGRESS) is not None
    await world.settle(3600)
    assert await uids(world) == recycled
    await world.now_place()
    await world.settle()
    group = await world.client.get(POD_CLIQUE_SCALING_GROUP, "model-0-sg", "test", type=PodCliqueScalingGroup)
    assert find_condition(group.status.conditions, GANG_TERMINATION_IN_PROGRESS) is None


def _initialized(history: list[dict[str, object]]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for version in history:
        status = version.get("status", {})
        assert isinstance(status, dict)
        found += [each for each in status.get("conditions", []) if each["type"] == INITIALIZED]
    return found
