"""Time alone: a cycle runs at the moment when a grace period or delay ends, and none before that."""

from spinney.api import kai
from spinney.api.core import POD
from spinney.api.labels import KAI_POD_GROUP
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.kube.crds import install_crds
from spinney.scheduler.config import PluginOption, SchedulerConfig
from tests.scheduler.process.world import NS, World, given_a_world


@given_a_world
async def test_a_cluster_at_rest_runs_no_cycles(world: World) -> None:
    """Nothing happens for a day, and nothing is done, though a gang waits for room."""
    await world.add_node("n1", gpus=2)
    async with world.scheduler() as process:
        await world.add_gang("fits", 2)
        await world.add_gang("waits", 2)
        await world.settle(60)
        cycles, writes = process.cycles, len(world.transport.writes)
        await world.settle(24 * 3600)
        assert process.cycles == cycles
        assert len(world.transport.writes) == writes


@given_a_world
async def test_a_stale_gang_goes_when_its_grace_is_over(world: World) -> None:
    """The gang loses a pod for good; when the grace has passed, and not before, the rest is evicted."""
    await world.add_node("n1", gpus=4)
    async with world.scheduler(default_staleness_grace_seconds=600) as process:
        await world.add_gang("a", 4)
        await world.settle(5)
        await world.client.delete(POD, "a-3", NS)
        await world.settle(595)
        assert len(await world.places()) == 3
        cycles = process.cycles
        await world.settle(10)
        assert await world.places() == {}
        assert process.cycles - cycles <= 3


async def a_job(world: World, name: str, priority: str, **spec: object) -> None:
    """Create a KAI PodGroup with one pod."""
    group = {"minMember": 1, "queue": "default-queue", "priorityClassName": priority, **spec}
    await world.client.create(kai.POD_GROUP, {"metadata": {"name": name, "namespace": NS}, "spec": group})
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {
        "metadata": {"name": name, "namespace": NS, "annotations": {KAI_POD_GROUP: name}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "pause", "resources": resources}],
        },
    }
    await world.client.create(POD, pod)


async def a_contest(world: World) -> None:
    """Create a node for one pod, and priorities for two."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=1)
    for name, value in (("high", 90), ("low", 10)):
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})


@given_a_world
async def test_a_preemption_delay_ends_by_itself(world: World) -> None:
    """A job with a delay waits that long before it disturbs others, and not longer."""
    await a_contest(world)
    async with world.scheduler() as process:
        await a_job(world, "low", "low")
        await world.settle(5)
        await a_job(world, "high", "high", preemptionDelay="10m")
        await world.settle(590)
        assert await world.places() == {"low": "n1", "high": ""}
        assert process.cycles < 8
        await world.settle(20)
        assert await world.places() == {"high": "n1"}


@given_a_world
async def test_a_min_runtime_ends_by_itself(world: World) -> None:
    """A job that has just started is left alone for as long as is configured, and then preempted."""
    await a_contest(world)
    plugins = tuple(
        PluginOption(each.name, {"defaultPreemptMinRuntime": "15m"}) if each.name == "minruntime" else each
        for each in SchedulerConfig().plugins
    )
    async with world.scheduler(plugins=plugins) as process:
        await a_job(world, "low", "low")
        await world.settle(5)
        await a_job(world, "high", "high")
        await world.settle(880)
        assert await world.places() == {"low": "n1", "high": ""}
        assert process.cycles < 8
        await world.settle(30)
        assert await world.places() == {"high": "n1"}
