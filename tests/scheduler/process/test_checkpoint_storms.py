"""Random histories of jobs that preempt, gangs that checkpoint, nodes that come and a scheduler that is restarted.

A witness looks at every deletion of a victim: its gang must have had what it was promised. More seeds are tried with
``SPINNEY_CHECKPOINT_STORMS``.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from datetime import datetime
from random import Random

import pytest

from spinney.api.core import POD, Pod
from spinney.api.labels import CHECKPOINT_BY, CHECKPOINT_READY, EVICTION_REQUEST
from spinney.api.time import parse_timestamp
from spinney.kube.cache import Change, WatchCache
from spinney.kube.keys import Key
from tests.scheduler.process.test_checkpoints import a_training_job, a_training_node
from tests.scheduler.process.world import NS, World, given_a_world

SEEDS = int(os.environ.get("SPINNEY_CHECKPOINT_STORMS", "2"))
GPUS = {"n1": 2, "n2": 4, "n3": 4}


def gpus_of(pod: Pod) -> int:
    """Return how many GPUs a pod asks for."""
    return int(str(pod.spec.containers[0].resources.requests["nvidia.com/gpu"]))


class Witness:
    """Follows the pods of a world and judges every one of a declared gang that goes. Mutable."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pods = WatchCache(world.client, POD, Pod, runtime=world.runtime)
        self.pods.subscribe(self._changed)
        self.declared: dict[str, str] = {}
        """The grace of each gang that declares one."""
        self.asked_to_go: set[Key] = set()
        """Pods that the story itself deletes."""
        self._answers: dict[str, set[str]] = {}
        self.judged = 0
        self.ready = 0
        self.faults: list[str] = []

    def _changed(self, change: Change[Pod]) -> None:
        self._nobody_is_given_more_than_there_is()
        pod, gang = change.old, change.key.name.rpartition("-")[0]
        if change.new is not None:
            self._answers.setdefault(gang, set()).add(change.new.metadata.annotations.get(CHECKPOINT_READY, ""))
        elif pod is not None and gang in self.declared and change.key not in self.asked_to_go:
            self._judge(pod, gang)

    def _judge(self, pod: Pod, gang: str) -> None:
        self.judged += 1
        by = pod.metadata.annotations.get(CHECKPOINT_BY)
        if not by:
            self.faults.append(f"{pod.metadata.name} went without being asked")
            return
        now: datetime = self._world.runtime.clock.now()
        if by in self._answers.get(gang, ()):
            self.ready += 1
        elif now < parse_timestamp(by):
            self.faults.append(f"{pod.metadata.name} went at {now}, and had time until {by}")

    def _nobody_is_given_more_than_there_is(self) -> None:
        used: dict[str, int] = {}
        for pod in self.pods.values():
            if pod.spec.node_name:
                used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + gpus_of(pod)
        if any(amount > GPUS[node] for node, amount in used.items()):
            self.faults.append(f"a node is given more than it has: {used}")


async def a_storm(world: World, seed: int) -> Witness:
    """Live through one history."""
    chance = Random(seed)
    await a_training_node(world)
    witness = Witness(world)
    witness.declared["train0"] = "5m"
    following = asyncio.create_task(witness.pods.run())
    for node in ("n2", "n3"):
        await world.add_node(node, gpus=GPUS[node])
    for number in range(1, 5):
        grace = chance.choice(["", "40s", "3m"])
        await a_training_job(world, f"train{number}", grace=grace)
        if grace:
            witness.declared[f"train{number}"] = grace
    urgent = 0
    waiting: list[str] = []
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        await running.enter_async_context(world.scheduler(move_again_seconds=0))
        await world.settle(5)
        for _ in range(25):
            match chance.choice(["arrive", "arrive", "leave", "answer", "answer", "restart", "pass", "pass"]):
                case "arrive" if urgent < 4:
                    name = f"urgent{urgent}"
                    urgent += 1
                    waiting.append(name)
                    await world.add_pod(name, gpus=chance.choice([1, 2, 4]), priorityClassName="urgent")
                case "leave" if waiting:
                    name = waiting.pop(chance.randrange(len(waiting)))
                    witness.asked_to_go.add(Key(NS, name))
                    await world.client.delete(POD, name, NS)
                case "answer":
                    asked = [pod for pod in witness.pods.values() if CHECKPOINT_BY in pod.metadata.annotations]
                    if asked:
                        pod = chance.choice(sorted(asked, key=lambda each: each.metadata.name))
                        said = {CHECKPOINT_READY: pod.metadata.annotations[CHECKPOINT_BY]}
                        await world.client.patch(POD, pod.metadata.name, {"metadata": {"annotations": said}}, NS)
                case "restart":
                    await running.aclose()
                    await world.settle(chance.choice([0.1, 20]))
                    running = await stack.enter_async_context(AsyncExitStack())
                    await running.enter_async_context(world.scheduler(move_again_seconds=0))
            await world.settle(chance.choice([0.01, 0.5, 10, 60]))
        await world.settle(1800)
    following.cancel()
    return witness


@pytest.mark.parametrize("seed", range(SEEDS))
@given_a_world
async def test_nobody_goes_before_it_is_ready_or_its_time_is_over(world: World, seed: int) -> None:
    """Through restarts in any moment: who goes was asked and had its time; nothing stays asked that nobody needs."""
    witness = await a_storm(world, seed)
    assert witness.faults == []
    pods = {pod.metadata.name: pod for pod in witness.pods.values()}
    left = dict(GPUS)
    urgent = [pod for name, pod in pods.items() if name.startswith("urgent")]
    for pod in urgent:
        if pod.spec.node_name:
            left[pod.spec.node_name] -= gpus_of(pod)
    waiting = [pod.metadata.name for pod in urgent if not pod.spec.node_name and gpus_of(pod) <= max(left.values())]
    assert not waiting, "a job that less important ones could have made room for was never placed"
    assert not [name for name, pod in pods.items() if EVICTION_REQUEST in pod.metadata.annotations]
    assert seed != 1 or 0 < witness.ready <= witness.judged, "this history is there to have something to judge"
