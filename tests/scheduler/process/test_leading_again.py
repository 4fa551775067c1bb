"""A scheduler that gave its lease away and gets it back goes on as one that has just started."""

from collections.abc import Awaitable, Callable

import pytest

from spinney.api.core import EVENT, PERSISTENT_VOLUME_CLAIM
from spinney.api.storage import STORAGE_CLASS
from spinney.kube.client import Client
from spinney.kube.lease import LeaderElection, LeaseGivenAway, LeaseTimes
from spinney.kube.manager import Manager
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.process.process import SchedulerProcess
from tests.scheduler.process.world import NS, World, given_a_world, running

TIMES = LeaseTimes(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)


def once(work: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Return a round that gives the lease away the first time, and works from then on."""
    gave = False

    async def attempt() -> None:
        nonlocal gave
        if not gave:
            gave = True
            raise LeaseGivenAway("a plugin hangs")
        await work()

    return attempt


@given_a_world
async def test_what_came_before_is_placed_without_news_and_volumes_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that waited when the lease was given away is bound; one whose volume takes its time is not refused."""
    client = Client(world.transport, world.runtime, field_manager="spinney-scheduler")
    election = LeaderElection(client, "scheduler", NS, identity="one", runtime=world.runtime, times=TIMES)
    process = SchedulerProcess(client, SchedulerConfig(), manager=Manager(client, client.runtime, election=election))
    monkeypatch.setattr(process, "_cycle", once(process._cycle))
    await world.add_node("n1")
    await world.add_pod("early")
    async with running(process):
        await world.settle(60)
        assert (await world.places())["early"] == "n1"

        late = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
        await world.client.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "late", **wanted}}
        await world.client.create(PERSISTENT_VOLUME_CLAIM, claim, NS)
        await world.add_pod("late", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        await world.settle(60)
        events = (await world.client.list(EVENT, NS)).items
        assert [event["message"] for event in events if event["reason"] == "FailedBinding"] == []
