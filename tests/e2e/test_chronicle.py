"""The witness knows rest from unrest, waits for nothing without an end, and says what it waited for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from spinney.api.core import EVENT, POD
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.kube.crds import install_crds
from spinney.runtime.tasks import in_background
from tests.conftest import Cluster
from tests.e2e.chronicle import Chronicle

POD_X: JSON = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}


@asynccontextmanager
async def followed(cluster: Cluster, saying: Callable[[int], tuple[Any, JSON]]) -> AsyncIterator[Chronicle]:
    """Follow a cluster with one pod, about which a scheduler says something every tenth of a second, for ever."""
    await install_crds(cluster.client, manifests())
    await cluster.client.create(POD, POD_X, cluster.namespace)
    chronicle = Chronicle(cluster.client, cluster.namespace)

    async def scheduler() -> None:
        for number in count():
            resource, manifest = saying(number)
            subresource = "status" if resource is POD else ""
            await cluster.client.apply(resource, manifest, cluster.namespace, subresource=subresource)
            await cluster.runtime.clock.sleep(0.1)

    async with asyncio.TaskGroup() as tasks:
        followers = await chronicle.begin(tasks)
        async with in_background(scheduler()):
            yield chronicle
        for follower in followers:
            follower.cancel()


def an_answer(number: int) -> tuple[Any, JSON]:
    """Say of the pod, in turn, that it fits and that it does not, each time in other words."""
    reason = ("Unschedulable", "Schedulable")[number % 2]
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": f"in session {number}"}
    return POD, {"metadata": {"name": "x"}, "status": {"conditions": [condition]}}


def an_event(number: int) -> tuple[Any, JSON]:
    return EVENT, {
        "metadata": {"name": f"x.{number}"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "test"},
        "reason": "FailedScheduling",
    }


def a_move(number: int) -> tuple[Any, JSON]:
    phase = ("Pending", "Running")[number % 2]
    return POD, {"metadata": {"name": "x"}, "status": {"phase": phase}}


@pytest.mark.parametrize("saying", [an_answer, an_event])
async def test_other_words_are_no_unrest(cluster: Cluster, saying: Callable[[int], tuple[Any, JSON]]) -> None:
    """A scheduler that says in every cycle why a gang waits, each time otherwise, leaves the scenario at rest."""
    async with followed(cluster, saying) as chronicle:
        await chronicle.rest(1.0, within=10.0)


async def test_what_does_not_come_to_rest_is_named(cluster: Cluster) -> None:
    """Waiting for rest has an end, and says what was still moving."""
    async with followed(cluster, a_move) as chronicle:
        with pytest.raises(TimeoutError, match=r"still moving after 10.0 s: Pod x at revision \d+"):
            await chronicle.rest(1.0, within=10.0)


async def test_a_scheduler_that_goes_on_writing_keeps_no_scenario_from_ending(cluster: Cluster) -> None:
    """The end of a scenario waits for what there was when it began to wait, not for a server that is silent."""
    async with followed(cluster, an_answer) as chronicle:
        await chronicle.complete(within=10.0)
