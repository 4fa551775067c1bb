"""Consolidation: room is made by moving, and nobody loses anything."""

from datetime import timedelta
from typing import Any

import pytest

from spinney.api.core import PersistentVolumeClaimVolume, PodResourceClaim, Volume
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang, put_job
from tests.scheduler.victims.worlds import Job, World, build, evicted, promised, run, run_on

ONE_QUEUE = (("a", 100),)
FRAGMENTED = (Job("left", gpus=2, places=("n0",)), Job("right", gpus=2, places=("n1",)))


def test_a_job_is_moved_so_that_another_fits() -> None:
    """Two half-empty nodes become one full and one empty."""
    session = run(World((4, 4), ONE_QUEUE, (*FRAGMENTED, Job("large", gpus=4))), "consolidation")
    ((moved, target),) = evicted(session).items()
    assert moved in {"left-0", "right-0"}
    assert promised(session) == {"large-0": {"n0": "n1", "n1": "n0"}[target], moved: target}


def test_a_job_that_fits_without_anybody_moving_is_looked_at_again() -> None:
    """What nobody leaves for is only promised, so another session must follow without an event."""
    jobs = (Job("stays", places=("n0",)), Job("new"))
    session = run(World((4, 4), ONE_QUEUE, jobs), "consolidation")
    assert not session.evictions
    assert promised(session).keys() == {"new-0"}
    assert session.next_moment == session.now + timedelta(seconds=1)


def test_nobody_is_moved_where_sums_do_not_suffice() -> None:
    """What is free in sum must be enough; that needs no scenario."""
    session = run(
        World((4, 4), ONE_QUEUE, (*FRAGMENTED, Job("filler", places=("n1",)), Job("large", gpus=4))), "consolidation"
    )
    assert not session.evictions
    ((report,),) = session.victim_reports.values()
    assert [each.reason for each in report.rejected] == ["evicting all that may be evicted makes too little room"]


NOT_THERE = {
    "resource claim": (
        {"resource_claims": (PodResourceClaim(name="c", resource_claim_name="gone"),)},
        None,
        "resource claim gone does not exist",
    ),
    "volume claim": (
        {"volumes": (Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="gone")),)},
        None,
        'persistentvolumeclaim "gone" not found',
    ),
    "topology": (
        {},
        TopologyConstraintInfo("gone", required=RACK),
        "topology gone that the job requires does not exist",
    ),
}


@pytest.mark.parametrize(("spec", "topology", "reason"), NOT_THERE.values(), ids=NOT_THERE)
def test_nobody_is_looked_for_where_something_does_not_exist(
    spec: dict[str, Any], topology: TopologyConstraintInfo | None, reason: str
) -> None:
    """Whoever leaves does not make it: no scenario is tried, in any cycle."""
    inventory = build(World((4, 4), ONE_QUEUE, FRAGMENTED))
    pods = [a_pod("large-0", gang="large", gpus=4, **spec)]
    put_gang(inventory, a_gang("large", queue="a", topology=topology), pods)

    session = run_on(inventory, "consolidation")

    ((report,),) = session.victim_reports.values()
    assert report.candidates == 0
    assert [(each.reason, each.scenarios) for each in report.rejected] == [(reason, 1)]


def test_what_is_free_counts_only_where_a_job_may_go() -> None:
    """A pool that is short of room is not searched if nobody in it may leave it, however much is free elsewhere."""
    jobs = (Job("own", gpus=2, places=("n0",), pool="even"), Job("large", gpus=4, pool="even"))
    session = run(World((4, 4), ONE_QUEUE, jobs), "consolidation")
    assert not session.evictions
    ((report,),) = session.victim_reports.values()
    assert [each.reason for each in report.rejected] == ["evicting all that may be evicted makes too little room"]


def test_a_guest_is_moved_out_of_a_pool() -> None:
    """Who may go anywhere makes room for one who may not."""
    jobs = (Job("guest", gpus=2, places=("n0",)), Job("stays", places=("n1",)), Job("large", gpus=4, pool="even"))
    session = run(World((4, 4), ONE_QUEUE, jobs), "consolidation")
    assert evicted(session) == {"guest-0": "n1"}
    assert promised(session) == {"large-0": "n0", "guest-0": "n1"}


def test_a_job_that_cannot_be_preempted_moves_nobody() -> None:
    """Only preemptible jobs have others moved for them."""
    session = run(World((4, 4), ONE_QUEUE, (*FRAGMENTED, Job("large", gpus=4, preemptible=False))), "consolidation")
    assert not session.evictions


@pytest.mark.parametrize(("limit", "moved"), [(0, 0), (1, 0), (2, 2), (-1, 2)])
def test_at_most_so_many_jobs_are_moved(limit: int, moved: int) -> None:
    """The configured number of jobs bounds what one job may cause; 0 switches the action off."""
    jobs = (
        Job("one", places=("n0",)),
        Job("two", places=("n0",)),
        Job("three", gpus=2, places=("n1",), preemptible=False),
        Job("large", gpus=4),
    )
    session = run(World((4, 4), ONE_QUEUE, jobs), "consolidation", max_consolidation_preemptees=limit)
    assert len(session.evictions) == moved


def test_the_message_names_the_beneficiary() -> None:
    """A moved job is told for whom."""
    (eviction,) = run(World((4, 4), ONE_QUEUE, (*FRAGMENTED, Job("large", gpus=4))), "consolidation").evictions
    assert eviction.message == "moved to another place to make room for job team/large of queue a"


def test_a_gang_that_runs_is_not_called_unschedulable_because_it_could_not_be_moved() -> None:
    """Only who waits is told of no room; that no rack would take the gang, had it left its own, is nobody's news."""
    inventory = an_inventory(*(a_node(f"r{rack}-n{n}", labels={RACK: f"r{rack}"}) for rack in (0, 1) for n in (0, 1)))
    inventory.put_topology(TopologyLevels("dc", (RACK,)))
    runs = a_gang("runs", minimum=2, topology=TopologyConstraintInfo("dc", required=RACK))
    put_gang(inventory, runs, [a_pod(f"runs-{n}", gang="runs", gpus=5, node=f"r0-n{n}") for n in (0, 1)])
    for n in (0, 1):
        small = a_gang(f"small-{n}", preemptible=False)
        put_gang(inventory, small, [a_pod(f"small-{n}", gang=f"small-{n}", gpus=1 + 3 * n, node=f"r1-n{n}")])
    put_job(inventory, "large", 1, gpus=8)

    refused = a_scheduler(inventory).run_cycle().unschedulable

    assert [each.gang.name for each in refused] == ["large"]


def test_a_queue_at_its_limit_keeps_no_other_from_being_helped() -> None:
    """What a job was refused for its queue says nothing about the same job in another queue."""
    jobs = (
        Job("left", gpus=2, places=("n0",)),
        Job("right", queue="b", gpus=2, places=("n1",)),
        Job("hopeless", gpus=4),
        Job("large", queue="b", gpus=4),
    )
    inventory = build(World((4, 4), (("a", 100), ("b", 100)), jobs))
    quota, limit = Amounts(-1, -1, 100 * GPU), Amounts(-1, -1, 2 * GPU)
    inventory.put_queue(QueueInfo(name="a", priority=1000, quota=quota, limit=limit))

    session = run_on(inventory, "consolidation")

    assert len(evicted(session)) == 1
    assert "large-0" in promised(session)
