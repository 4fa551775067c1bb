"""Victims of the coscheduler that checkpoint: they are asked, and go when they are ready or their time is over."""

from typing import Any

import msgspec
import pytest

from spinney.api.core import POD
from spinney.api.coscheduling import POD_GROUP
from spinney.api.documents import InvalidConfiguration
from spinney.api.labels import (
    CHECKPOINT_BY,
    CHECKPOINT_GRACE,
    CHECKPOINT_READY,
    EVICTION_REQUEST,
    LAST_CHECKPOINT,
    MIN_RUNTIME,
)
from spinney.api.time import timestamp
from spinney.coscheduling.process.configuration import (
    CoschedulerConfiguration,
    parse_configuration,
)
from tests.conftest import Cluster

from .world import World, a_group, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


async def a_training_gang(world: World, name: str = "train", **declared: str) -> None:
    """Create a group of two pods that run on a node of their own, and declare something on their group."""
    size = 2
    await world.priority("high", 1000)
    await world.nodes(a_node(f"{name}-node", cpu=str(size)))
    group = a_group(name, size)
    group["metadata"]["annotations"] = declared
    await world.client.create(POD_GROUP, group, world.namespace)
    await world.create(*(a_pod(f"{name}-{number}", group=name) for number in range(size)))
    await world.until(lambda: len(world.bound(name)) == size)


async def say(world: World, pod: str, **said: Any) -> None:
    """Have the workload in a pod write annotations."""
    await world.client.patch(POD, pod, {"metadata": {"annotations": said}}, world.namespace)


def asked(world: World, pod: str) -> str:
    """Return until when a pod was given time, or the empty string."""
    return world.pods[pod].metadata.annotations.get(CHECKPOINT_BY, "") if pod in world.pods else ""


async def test_a_victim_is_asked_and_goes_when_it_is_ready(world: World) -> None:
    """Nobody is deleted while the gang checkpoints; one pod that answers lets all of them go."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await world.create(a_pod("urgent", cpu="2", priority_class="high"))
    await world.until(lambda: bool(asked(world, "train-0") and asked(world, "train-1")))
    await world.settle(60)
    assert world.bound() == ["train-0", "train-1"]
    assert world.nominated("urgent") == "train-node"
    assert "asked to checkpoint and go, until" in world.message("urgent")
    assert len(await world.events("CheckpointRequested")) == 2

    await say(world, "train-1", **{CHECKPOINT_READY: asked(world, "train-1")})
    await world.until(lambda: world.bound() == ["urgent"])
    counted = world.process.manager.metrics.registry.get_sample_value if world.process else None
    assert counted is not None
    assert counted("spinney_checkpoint_requests_total", {"outcome": "asked"}) == 1
    assert counted("spinney_checkpoint_requests_total", {"outcome": "ready"}) == 1
    assert counted("spinney_victims_total", {"queue": "", "reason": "preempt"}) == 2


async def test_a_victim_that_does_not_answer_goes_when_its_time_is_over(cluster: Cluster) -> None:
    """A single pod that declares a grace has it, not less and not more than is configured."""
    configuration = CoschedulerConfiguration.in_place_of_kube_scheduler(max_checkpoint_grace_seconds=90)
    async with a_world(cluster) as world, world.scheduling(configuration):
        await world.priority("high", 1000)
        await world.nodes(a_node("n1", cpu="1"))
        low = a_pod("low")
        low["metadata"]["annotations"] = {CHECKPOINT_GRACE: "24h"}
        await world.create(low)
        await world.until(lambda: world.bound() == ["low"])
        await world.create(a_pod("high", priority_class="high"))
        await world.settle(85)
        assert world.bound() == ["low"]
        await world.settle(10)
        assert world.bound() == ["high"]


async def test_all_victims_of_a_group_go_together(world: World) -> None:
    """A victim that declares nothing stays until the gang that checkpoints is ready: alone its room helps nobody."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await a_training_gang(world, "other")
    await world.gang("urgent", 2, cpu="2", priority_class="high")
    await world.until(lambda: bool(asked(world, "train-0")))
    await world.settle(120)
    assert len(world.bound("train") + world.bound("other")) == 4
    assert asked(world, "other-0") == ""

    await say(world, "train-0", **{CHECKPOINT_READY: asked(world, "train-0")})
    await world.until(lambda: world.bound() == ["urgent-0", "urgent-1"])


async def test_members_that_have_a_node_wait_for_the_victims_of_others(world: World) -> None:
    """A group that needs victims for one pod keeps the node of the other for longer than Permit's own time."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await world.nodes(a_node("free", cpu="2"))
    await world.gang("urgent", 2, cpu="2", priority_class="high")
    await world.until(lambda: bool(asked(world, "train-0")))
    first = asked(world, "train-0")
    await world.settle(200)
    assert asked(world, "train-0") == first
    await world.settle(120)
    assert world.bound() == ["urgent-0", "urgent-1"]


async def test_a_request_is_taken_back_when_nobody_waits_any_more(world: World) -> None:
    """The pod that was waited for is deleted: its victims read that they may stay, and do."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await world.create(a_pod("urgent", cpu="2", priority_class="high"))
    await world.until(lambda: bool(asked(world, "train-0") and asked(world, "train-1")))
    await world.delete("urgent")
    await world.until(lambda: not asked(world, "train-0") and not asked(world, "train-1"))
    assert EVICTION_REQUEST not in world.pods["train-0"].metadata.annotations
    await world.settle(600)
    assert world.bound() == ["train-0", "train-1"]
    assert len(await world.events("CheckpointRequestWithdrawn")) == 2


async def test_a_request_is_taken_back_when_there_is_room_elsewhere(world: World) -> None:
    """A node that comes while victims checkpoint is used, and the victims stay."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await world.create(a_pod("urgent", cpu="2", priority_class="high"))
    await world.until(lambda: bool(asked(world, "train-0")))
    await world.nodes(a_node("n2", cpu="2"))
    await world.until(lambda: world.node_of("urgent") == "n2")
    await world.until(lambda: not asked(world, "train-0"))
    await world.settle(600)
    assert world.bound("train") == ["train-0", "train-1"]


async def test_a_restarted_scheduler_goes_on(cluster: Cluster) -> None:
    """What was asked is on the pods: the next scheduler neither asks again nor evicts before the time is over."""
    async with a_world(cluster) as world:
        async with world.scheduling():
            await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
            await world.create(a_pod("urgent", cpu="2", priority_class="high"))
            await world.until(lambda: bool(asked(world, "train-0") and world.nominated("urgent")))
            by = asked(world, "train-0")
            await world.settle(60)
        async with world.scheduling():
            await world.settle(200)
            assert asked(world, "train-0") == by
            assert world.bound() == ["train-0", "train-1"]
            await world.settle(60)
            assert world.bound() == ["urgent"]


async def test_a_pod_of_still_higher_priority_inherits_the_request(world: World) -> None:
    """Who comes later and counts for more has the place, and the victim is not given its time a second time."""
    await a_training_gang(world, **{CHECKPOINT_GRACE: "5m"})
    await world.priority("highest", 2000)
    await world.create(a_pod("urgent", cpu="2", priority_class="high"))
    await world.until(lambda: bool(asked(world, "train-0")))
    by = asked(world, "train-0")
    await world.settle(120)
    await world.create(a_pod("more", cpu="2", priority_class="highest"))
    await world.settle(120)
    assert asked(world, "train-0") == by
    await world.settle(90)
    assert world.bound() == ["more"]


async def test_a_gang_is_left_alone_for_the_runtime_it_asks_for(world: World) -> None:
    """Nobody is taken from a gang that has not run long enough; when it has, whoever waits has its turn."""
    await a_training_gang(world, **{MIN_RUNTIME: "20m"})
    await world.create(a_pod("urgent", priority_class="high"))
    await world.settle(1190)
    assert world.bound() == ["train-0", "train-1"]
    await world.settle(60)
    assert world.bound() == ["urgent"]


async def test_a_gang_gives_what_it_can_do_without_at_any_time(world: World) -> None:
    """Within its minimum runtime a gang loses pods beyond its minimum, and no others."""
    await world.priority("high", 1000)
    await world.nodes(a_node("n1", cpu="3"))
    group = a_group("train", 2)
    group["metadata"]["annotations"] = {MIN_RUNTIME: "20m"}
    await world.client.create(POD_GROUP, group, world.namespace)
    await world.create(*(a_pod(f"train-{number}", group="train") for number in range(3)))
    await world.until(lambda: len(world.bound("train")) == 3)
    await world.create(*(a_pod(f"urgent-{number}", priority_class="high") for number in range(2)))
    await world.until(lambda: len(world.bound("urgent")) == 1)
    await world.settle(300)
    assert len(world.bound("train")) == 2


@pytest.mark.parametrize("on_sigterm", [False, True])
async def test_of_equal_victims_those_go_that_lose_least(world: World, on_sigterm: bool) -> None:
    """The gang that started first goes, as it has checkpointed since, or does when it is told to end."""
    for name in ("first", "second"):
        await a_training_gang(world, name)
        await world.settle(3600)
        status = {"status": {"startTime": timestamp(world.client.runtime.clock.now())}}
        for number in range(2):
            await world.client.patch(POD, f"{name}-{number}", status, world.namespace, subresource="status")
    await world.settle(3600)
    saved = {LAST_CHECKPOINT: timestamp(world.client.runtime.clock.now())}
    await say(world, "first-1", **({CHECKPOINT_GRACE: "SIGTERM"} if on_sigterm else saved))
    await world.settle(60)
    await world.create(a_pod("urgent", cpu="2", priority_class="high"))
    await world.until(lambda: bool(world.bound("urgent")))
    assert world.bound() == ["second-0", "second-1", "urgent"]


async def test_the_work_that_victims_lose_is_counted(world: World) -> None:
    """Two GPUs that are taken from a pod ten minutes after its last checkpoint are twenty minutes of work."""
    await world.priority("high", 1000)
    node, gpus = a_node("n1"), {"limits": {"nvidia.com/gpu": "2"}}
    for field in ("allocatable", "capacity"):
        node["status"][field]["nvidia.com/gpu"] = "2"
    await world.nodes(node)
    low, high = a_pod("low"), a_pod("high", priority_class="high")
    for pod in (low, high):
        pod["spec"]["containers"][0]["resources"] = gpus
    await world.create(low)
    await world.until(lambda: world.bound() == ["low"])
    await world.settle(3600)
    await say(world, "low", **{LAST_CHECKPOINT: timestamp(world.client.runtime.clock.now())})
    await world.settle(600)
    await world.create(high)
    await world.until(lambda: world.bound() == ["high"])
    assert world.process is not None
    lost = world.process.manager.metrics.registry.get_sample_value(
        "spinney_lost_gpu_seconds_total", {"reason": "preempt"}
    )
    assert lost is not None
    assert 1200 <= lost < 1210


def test_negative_limits_are_refused(cluster_name: str) -> None:
    """A limit below zero is an error that names the field."""
    with pytest.raises(InvalidConfiguration, match="maxCheckpointGraceSeconds"):
        parse_configuration({"maxCheckpointGraceSeconds": -1})
    assert msgspec.to_builtins(parse_configuration({"maxCheckpointGraceSeconds": 0}))["maxCheckpointGraceSeconds"] == 0
