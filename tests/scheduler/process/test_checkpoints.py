"""Victims that checkpoint: they are asked, and go when they are ready or their time is over."""

import json
from typing import Any

from spinney.api.core import NODE, POD, Pod
from spinney.api.labels import (
    CHECKPOINT_BY,
    CHECKPOINT_GRACE,
    CHECKPOINT_READY,
    EVICTION_REQUEST,
    LAST_CHECKPOINT,
)
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.time import timestamp
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.transport import Response
from tests.scheduler.process.test_evictions import events
from tests.scheduler.process.world import NS, World, given_a_world, status


async def a_training_node(world: World, *, grace: str = "5m", gangs: int = 1) -> None:
    """Fill one node with gangs of two pods that declare on their group that they checkpoint."""
    await world.add_node("n1", gpus=2 * gangs)
    for name, value in (("urgent", 90), ("idle", 10)):
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
    for number in range(gangs):
        await a_training_job(world, f"train{number}", grace=grace)


async def a_training_job(world: World, name: str, *, grace: str = "5m") -> None:
    """Create a gang of two that may be preempted and, unless ``grace`` is empty, checkpoints."""
    metadata = {"name": name, "namespace": NS, "annotations": {CHECKPOINT_GRACE: grace} if grace else {}}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "idle"}
    await world.client.create(POD_GROUP, {"metadata": metadata, "spec": spec})
    for number in range(2):
        await world.add_pod(f"{name}-{number}", gang=name, priorityClassName="idle")


async def an_urgent_gang(world: World, *gpus: int) -> None:
    """Create a gang that may preempt, with one pod for each number of GPUs."""
    spec = {"schedulingPolicy": {"gang": {"minCount": len(gpus)}}, "priorityClassName": "urgent"}
    await world.client.create(POD_GROUP, {"metadata": {"name": "urgent", "namespace": NS}, "spec": spec})
    for number, each in enumerate(gpus):
        await world.add_pod(f"urgent-{number}", gang="urgent", gpus=each, priorityClassName="urgent")


async def annotations(world: World, pod: str) -> dict[str, str]:
    found = await world.client.get(POD, pod, NS, type=Pod)
    return dict(found.metadata.annotations)


async def say(world: World, pod: str, **said: str) -> None:
    """Have the workload in a pod say something."""
    words = {CHECKPOINT_READY: said.get("ready"), LAST_CHECKPOINT: said.get("checkpoint")}
    patch: Any = {"metadata": {"annotations": {key: text for key, text in words.items() if text is not None}}}
    await world.client.patch(POD, pod, patch, NS)


async def preempt(world: World, seconds: float) -> None:
    """Have a pod come that may preempt what was placed, and let so many seconds pass."""
    await world.settle(2)
    await world.add_pod("urgent", gpus=2, priorityClassName="urgent")
    await world.settle(seconds)


async def placed(world: World) -> set[str]:
    """Return the pods that have a node."""
    return {pod for pod, node in (await world.places()).items() if node}


@given_a_world
async def test_a_victim_is_asked_and_goes_when_it_is_ready(world: World) -> None:
    """Nobody is evicted while the gang checkpoints; one pod that answers lets all of them go at once."""
    await a_training_node(world)
    async with world.scheduler():
        await preempt(world, 60)
        assert await placed(world) == {"train0-0", "train0-1"}
        asked = [await annotations(world, pod) for pod in ("train0-0", "train0-1")]
        assert asked[0][CHECKPOINT_BY] == asked[1][CHECKPOINT_BY]
        pods = [event["involvedObject"]["name"] for event in await events(world, "CheckpointRequested")]
        assert sorted(pods) == ["train0-0", "train0-1"]

        await say(world, "train0-1", ready=asked[1][CHECKPOINT_BY])
        await world.settle(5)
        assert await placed(world) == {"urgent"}
        assert world.exported("spinney_checkpoint_requests_total", outcome="asked") == 1
        assert world.exported("spinney_checkpoint_requests_total", outcome="ready") == 1
        assert world.exported("spinney_checkpoint_requests_total", outcome="timed_out") == 0
        assert 0 < (world.exported("spinney_lost_gpu_seconds_total", reason="preempt") or 0) < 2 * 67


@given_a_world
async def test_a_request_that_cannot_be_written_is_decided_anew(world: World) -> None:
    """A pod that the API server did not let us annotate has not been asked, so it is, and given its whole time."""
    await a_training_node(world)
    refused: list[str] = []

    def busy(method: str, path: str) -> Response | None:
        if method != "PATCH" or not path.endswith(("/pods/train0-0", "/pods/train0-1")) or len(refused) == 2:
            return None
        refused.append(path)
        return status(403, "Forbidden")

    async with world.scheduler():
        await world.settle(2)
        world.transport.fault = busy
        await preempt(world, 20)
        assert len(refused) == 2
        assert CHECKPOINT_BY not in await annotations(world, "train0-0")
        await world.settle(40)
        for pod in ("train0-0", "train0-1"):
            assert CHECKPOINT_BY in await annotations(world, pod)
        await say(world, "train0-0", ready=(await annotations(world, "train0-0"))[CHECKPOINT_BY])
        await world.settle(5)
        assert await placed(world) == {"urgent"}


@given_a_world
async def test_a_checkpoint_since_it_was_asked_is_an_answer(world: World) -> None:
    """A gang that reports its checkpoints need not know the word for being ready."""
    await a_training_node(world)
    async with world.scheduler():
        await world.settle(2)
        await say(world, "train0-0", checkpoint=timestamp(world.runtime.clock.now()))
        await preempt(world, 60)
        assert "urgent" not in await placed(world)

        await say(world, "train0-0", checkpoint=timestamp(world.runtime.clock.now()))
        await world.settle(5)
        assert await placed(world) == {"urgent"}


@given_a_world
async def test_a_victim_that_does_not_answer_goes_when_its_time_is_over(world: World) -> None:
    """The grace that was declared is waited for, and not longer."""
    await a_training_node(world, grace="90s")
    async with world.scheduler():
        await preempt(world, 85)
        assert "urgent" not in await placed(world)
        await world.settle(10)
        assert await placed(world) == {"urgent"}
        assert world.exported("spinney_checkpoint_requests_total", outcome="timed_out") == 1


@given_a_world
async def test_a_victim_that_checkpoints_on_sigterm_goes_at_once(world: World) -> None:
    """It is not asked, as its eviction is the signal, and no work is counted as lost."""
    await a_training_node(world, grace="SIGTERM")
    async with world.scheduler():
        await world.settle(60)
        await an_urgent_gang(world, 2)
        await world.settle(30)
        assert await placed(world) == {"urgent-0"}
        assert (world.exported("spinney_checkpoint_requests_total", outcome="asked") or 0) == 0
        assert (world.exported("spinney_lost_gpu_seconds_total", reason="preempt") or 0) == 0


@given_a_world
async def test_the_longest_grace_is_configured(world: World) -> None:
    """A gang that asks for a day gets what the cluster's administrator allows."""
    await a_training_node(world, grace="24h")
    async with world.scheduler(max_checkpoint_grace_seconds=30):
        await preempt(world, 35)
        assert await placed(world) == {"urgent"}


@given_a_world
async def test_the_place_is_kept_meanwhile(world: World) -> None:
    """Room that the waiting job counts on, free already or about to be, is given to nobody else."""
    await a_training_node(world)
    await world.add_node("n2", gpus=1)
    async with world.scheduler():
        await world.settle(2)
        await an_urgent_gang(world, 2, 1)
        await world.settle(5)
        await world.add_pod("thief", gpus=1, priorityClassName="urgent")
        await world.settle(60)
        assert await placed(world) == {"train0-0", "train0-1"}
        found = {pod.metadata.name: pod for pod in (await world.client.list(POD, NS, type=Pod)).items}
        assert found["urgent-0"].status.nominated_node_name == "n1"
        assert found["urgent-1"].status.nominated_node_name == "n2"
        await say(world, "train0-0", ready=(await annotations(world, "train0-0"))[CHECKPOINT_BY])
        await world.settle(5)
        assert await placed(world) == {"urgent-0", "urgent-1"}


@given_a_world
async def test_a_scheduler_that_starts_anew_goes_on(world: World) -> None:
    """What was asked, until when, and for whom is on the pods: the next process neither asks again nor forgets."""
    await a_training_node(world)
    async with world.scheduler():
        await preempt(world, 10)
    before = await annotations(world, "train0-0")
    async with world.scheduler():
        await world.settle(60)
        assert await placed(world) == {"train0-0", "train0-1"}
        assert await annotations(world, "train0-0") == before
        await say(world, "train0-0", ready=before[CHECKPOINT_BY])
        await world.settle(5)
        assert await placed(world) == {"urgent"}


@given_a_world
async def test_a_request_is_withdrawn_when_the_job_is_gone(world: World) -> None:
    """The victims are told, and run on for ever."""
    await a_training_node(world)
    async with world.scheduler():
        await preempt(world, 10)
        await world.client.delete(POD, "urgent", NS)
        await world.settle(900)
        assert await placed(world) == {"train0-0", "train0-1"}
        assert EVICTION_REQUEST not in await annotations(world, "train0-0")
        assert CHECKPOINT_BY not in await annotations(world, "train0-0")
        assert len(await events(world, "CheckpointRequestWithdrawn")) == 2
        assert world.exported("spinney_checkpoint_requests_total", outcome="withdrawn") == 1


@given_a_world
async def test_a_request_is_withdrawn_when_the_job_fits_elsewhere(world: World) -> None:
    """A node that comes up takes the waiting job, and nobody has to go."""
    await a_training_node(world)
    async with world.scheduler():
        await preempt(world, 10)
        await world.add_node("n2", gpus=2)
        await world.settle(900)
        assert (await world.places())["urgent"] == "n2"
        assert await placed(world) == {"train0-0", "train0-1", "urgent"}
        assert EVICTION_REQUEST not in await annotations(world, "train0-0")


@given_a_world
async def test_victims_of_one_job_go_together(world: World) -> None:
    """A gang that says nothing of checkpoints is not evicted before the one that is given time is ready."""
    await a_training_node(world, gangs=1)
    await world.add_node("n2", gpus=2)
    await a_training_job(world, "plain", grace="")
    async with world.scheduler():
        await world.settle(2)
        await an_urgent_gang(world, 2, 2)
        await world.settle(30)
        assert len(await placed(world)) == 4
        assert CHECKPOINT_BY not in await annotations(world, "plain-0")
        await say(world, "train0-0", ready=(await annotations(world, "train0-0"))[CHECKPOINT_BY])
        await world.settle(5)
        assert await placed(world) == {"urgent-0", "urgent-1"}


@given_a_world
async def test_pods_may_declare_it_too(world: World) -> None:
    """A pod template's annotation is enough where nobody writes on the group."""
    await a_training_node(world, grace="")
    patch = {"metadata": {"annotations": {CHECKPOINT_GRACE: "2m"}}}
    await world.client.patch(POD, "train0-0", patch, NS)
    async with world.scheduler():
        await preempt(world, 60)
        assert await placed(world) == {"train0-0", "train0-1"}
        await world.settle(70)
        assert await placed(world) == {"urgent"}


@given_a_world
async def test_a_pod_that_is_moved_is_asked_too_and_its_new_place_is_kept(world: World) -> None:
    """What was found for it to move to is nobody else's; if it is lost, nobody has to move."""
    for node in ("n1", "n2"):
        await world.add_node(node, gpus=2)
    for pod in ("a", "b", "filler"):
        await world.add_pod(pod, gpus=1)
        patch = {"metadata": {"annotations": {CHECKPOINT_GRACE: "5m"}}}
        await world.client.patch(POD, pod, patch, NS)
    async with world.scheduler():
        await world.settle(2)
        places = await world.places()
        alone = next(pod for pod in places if list(places.values()).count(places[pod]) == 1)
        beside = next(pod for pod in places if pod != alone)
        await world.client.delete(POD, beside, NS)
        await world.add_pod("wide", gpus=2)
        await world.settle(10)
        asked = [pod for pod in places if pod != beside and CHECKPOINT_BY in await annotations(world, pod)]
        assert len(asked) == 1
        target = next(node for pod, node in places.items() if pod not in (*asked, beside))

        await world.add_pod("thief", gpus=1)
        await world.settle(10)
        assert (await world.places())["thief"] == ""

        await world.client.patch(NODE, target, {"spec": {"unschedulable": True}})
        await world.settle(900)
        assert EVICTION_REQUEST not in await annotations(world, asked[0])
        assert (await world.places())[asked[0]] == places[asked[0]]


@given_a_world
async def test_a_request_that_somebody_else_wrote_ends_in_time(world: World) -> None:
    """A pod cannot be made to hold a place for years: the longest grace that is configured counts."""
    await a_training_node(world, grace="")
    async with world.scheduler(max_checkpoint_grace_seconds=120):
        await world.settle(2)
        now = timestamp(world.runtime.clock.now())
        request = {"beneficiary": ["pod", NS, "urgent"], "asked": now, "by": "2126-01-01T00:00:00Z"}
        for number in range(2):
            said = {EVICTION_REQUEST: json.dumps(request)}
            await world.client.patch(POD, f"train0-{number}", {"metadata": {"annotations": said}}, NS)
        await world.add_pod("urgent", gpus=2, priorityClassName="urgent")
        await world.settle(60)
        assert await placed(world) == {"train0-0", "train0-1"}
        await world.settle(70)
        assert await placed(world) == {"urgent"}
