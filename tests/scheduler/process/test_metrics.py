"""What the session scheduler exports: how queues stand, how long gangs wait, who is evicted, why others wait."""

import pytest

from spinney.api import kai
from spinney.api.core import POD
from tests.scheduler.process.test_evictions import a_full_node
from tests.scheduler.process.test_queue_status import a_pod_of_team, two_queues
from tests.scheduler.process.world import NS, World, given_a_world

TEAM = {"queue": "team", "parent": "org", "resource": "gpu"}
ORG = {"queue": "org", "parent": "", "resource": "gpu"}


@given_a_world
async def test_queues_show_use_pending_quota_and_share(world: World) -> None:
    """Two of three pods fit: the queue and its parent hold two GPUs, wait for one, and may count on two."""
    await two_queues(world)
    async with world.scheduler():
        for number in range(3):
            await a_pod_of_team(world, f"p{number}")
        await world.settle(10)
        for labels in (TEAM, ORG):
            assert world.exported("spinney_queue_use", **labels) == 2
            assert world.exported("spinney_queue_pending", **labels) == 1
            assert world.exported("spinney_queue_quota", **labels) == 2
            assert world.exported("spinney_queue_fair_share", **labels) == 2
            assert world.exported("spinney_queue_limit", **labels) is None
        assert world.exported("spinney_queue_pending_gangs", queue="team") == 1
        assert world.exported("spinney_scheduling_unschedulable_gangs", reason="NodeResourcesFit") == 1


@given_a_world
async def test_the_series_of_a_deleted_queue_end(world: World) -> None:
    """A queue that is gone is gone from gauges, counters and histograms; the others stay."""
    await two_queues(world)
    async with world.scheduler():
        await a_pod_of_team(world, "p")
        await world.settle(10)
        assert world.exported("spinney_gang_wait_seconds_count", queue="team", size="1") == 1
        await world.client.delete(POD, "p", NS)
        await world.client.delete(kai.QUEUE, "team")
        await world.settle(10)
        assert world.exported("spinney_queue_use", **TEAM) is None
        assert world.exported("spinney_queue_use", **ORG) == 0
        assert world.exported("spinney_gang_wait_seconds_count", queue="team", size="1") is None


@given_a_world
async def test_what_fails_about_queues_hides_no_other_metric(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the figures of queues cannot be computed, cycles and waits are still exported."""
    await two_queues(world)
    async with world.scheduler():
        await a_pod_of_team(world, "p")
        await world.settle(10)
        assert world.exported("spinney_queue_use", **TEAM) == 1
        monkeypatch.setattr("spinney.scheduler.process.queue_metrics.live_books", lambda *_, **__: 1 // 0)
        assert world.exported("spinney_queue_use", **TEAM) is None
        assert world.exported("spinney_gang_wait_seconds_count", queue="team", size="1") == 1


@given_a_world
async def test_only_the_replica_that_schedules_shows_queues(world: World) -> None:
    """A scheduler that has stopped says nothing about queues, which another one shows now."""
    await two_queues(world)
    async with world.scheduler():
        await world.settle(10)
        assert world.exported("spinney_queues") == 2
    assert world.exported("spinney_queues") is None


@given_a_world
async def test_waits_are_counted_by_queue_and_size(world: World) -> None:
    """A gang of three that had to wait a minute for its node is one gang of 2 to 8 pods that waited so long."""
    async with world.scheduler():
        await world.add_gang("g", 3)
        await world.settle(60)
        await world.add_node("n1")
        await world.settle(5)
        labels = {"queue": "default-queue", "size": "2-8"}
        assert world.exported("spinney_gang_wait_seconds_count", **labels) == 1
        waited = world.exported("spinney_gang_wait_seconds_sum", **labels)
        assert waited is not None
        assert 59 <= waited <= 66
        assert world.exported("spinney_bind_seconds_count", outcome="bound") == 1


@given_a_world
async def test_a_gang_that_grows_did_not_wait_again(world: World) -> None:
    """A pod that joins a gang which has its nodes is bound, and no further wait is counted."""
    await world.add_node("n1")
    async with world.scheduler():
        await world.add_gang("g", 2)
        await world.settle(5)
        await world.add_pod("g-more", gang="g")
        await world.settle(5)
        assert (await world.places())["g-more"] == "n1"
        labels = {"queue": "default-queue", "size": "2-8"}
        assert world.exported("spinney_gang_wait_seconds_count", **labels) == 1


@given_a_world
async def test_victims_are_counted_by_queue_and_action(world: World) -> None:
    """A pod that goes for one of higher priority is a victim of its queue, by the action that chose it."""
    await a_full_node(world, victims=1)
    async with world.scheduler():
        await world.settle(2)
        await world.add_pod("urgent", priorityClassName="urgent")
        await world.settle(5)
        assert world.exported("spinney_victims_total", queue="default-queue", reason="preempt") == 1
