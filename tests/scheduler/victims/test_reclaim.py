"""Reclaim: a queue takes back from others what it is entitled to."""

import pytest

from spinney.gangs.tree import GangKey, TopologyConstraintInfo
from spinney.runtime.clock import SystemClock
from spinney.scheduler.config import VictimSearchLimits
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.victims.searching import TAKEN_BACK
from tests.scheduler.building import NAMESPACE, RACK, ZONE, a_gang, a_node, a_pod, an_inventory, put_gang
from tests.scheduler.victims.worlds import Job, World, build, evicted, promised, run, run_on

HALVES = (("a", 2), ("b", 2))


def full(count: int, *, queue: str = "a", node: str = "n0") -> tuple[Job, ...]:
    """Return running one-GPU jobs."""
    return tuple(Job(f"run{number}", queue=queue, places=(node,)) for number in range(count))


def test_a_queue_gets_its_quota_back() -> None:
    """Jobs beyond a queue's share make room for a queue below its own."""
    world = World((4,), HALVES, (*full(4), Job("waiting", queue="b", places=("", ""))))
    session = run(world, "reclaim")
    assert evicted(session) == {"run3-0": "", "run2-0": ""}
    assert promised(session) == {"waiting-0": "n0", "waiting-1": "n0"}


def test_nothing_is_taken_beyond_the_share() -> None:
    """A job that would take its queue beyond its fair share waits, and nobody is evicted for it."""
    world = World((4,), HALVES, (*full(4), Job("waiting", queue="b", places=("", "", ""))))
    assert not run(world, "reclaim").evictions


def test_the_message_tells_how_the_queues_stand() -> None:
    """A victim is told which job takes, and what both queues use and may claim."""
    world = World((4,), HALVES, (*full(4), Job("waiting", queue="b")))
    (eviction,) = run(world, "reclaim").evictions
    assert eviction.message.startswith("reclaimed for job team/waiting of queue b: queue a (uses ")
    assert "4 nvidia.com/gpu" in eviction.message
    assert "fair share" in eviction.message


def test_a_verdict_by_sums_alone_says_so() -> None:
    """Where queues may not give enough, no scenario is tried and the report says why."""
    world = World((4,), (("a", 3), ("b", 2)), (*full(4), Job("waiting", queue="b", gpus=2)))
    session = run(world, "reclaim")
    ((report,),) = session.victim_reports.values()
    assert [each.reason for each in report.rejected] == ["evicting all that may be evicted makes too little room"]


def test_nothing_is_simulated_that_would_all_come_back() -> None:
    """A job behind one that takes its queue beyond its share gets nothing: any victim would be placed before it."""
    running = [Job(f"{queue}{number}", queue=queue, places=(f"n{number % 10}",)) for queue, number in _held()]
    waiting = (Job("large", queue="a", gpus=4, places=("", ""), priority=60), Job("small", queue="a", gpus=2))
    session = run(World((4,) * 10, (("a", 0), ("b", 0)), (*running, *waiting)), "reclaim")
    assert not session.evictions
    (report,) = session.victim_reports[GangKey("kai", NAMESPACE, "small")]
    assert report.candidates == 22
    assert [each.reason for each in report.rejected] == [TAKEN_BACK]


def _held() -> list[tuple[str, int]]:
    """Return the queue and the number of each GPU of forty: two queues of equal shares, and one has two too many."""
    return [("a", number) for number in range(18)] + [("b", number) for number in range(18, 40)]


@pytest.mark.parametrize("topology", ["dc", ""])
def test_victims_lie_in_one_domain_for_a_job_that_must(topology: str) -> None:
    """A gang that must lie in one rack takes all its victims there, and none elsewhere."""
    nodes = [
        a_node(f"r{rack}n{node}", gpus=2, labels={ZONE: "z", RACK: f"r{rack}"})
        for rack in range(3)
        for node in range(2)
    ]
    inventory = build(World((), (("a", 8), ("b", 4)), ()))
    for node in nodes:
        inventory.apply(node)
    inventory.put_topology(TopologyLevels("dc", (ZONE, RACK)))
    for number, node in enumerate(nodes):
        name = f"run{number}"
        rigid = number in {0, 5}  # racks 0 and 2 hold a job that cannot be taken
        put_gang(
            inventory,
            a_gang(name, minimum=2, queue="a", preemptible=not rigid),
            [a_pod(f"{name}-{each}", gang=name, gpus=1, node=node.metadata.name) for each in range(2)],
        )
    constraint = TopologyConstraintInfo(topology, required=RACK)
    put_gang(
        inventory,
        a_gang("gang", minimum=2, queue="b", topology=constraint),
        [a_pod(f"gang-{each}", gang="gang", gpus=2) for each in range(2)],
    )

    session = run_on(inventory, "reclaim")

    assert {eviction.node for eviction in session.evictions} == {"r1n0", "r1n1"}
    assert set(promised(session).values()) == {"r1n0", "r1n1"}


class Running(SystemClock):
    """A clock that runs ahead by a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def monotonic(self) -> float:
        self._seconds += 1.0
        return self._seconds


@pytest.mark.parametrize(("limit", "helped"), [(1e9, True), (0.0, False)])
def test_an_action_stops_when_its_time_is_over(limit: float, helped: bool) -> None:
    """Once the action's time is over no further job is searched for."""
    world = World((4,), HALVES, (*full(4), Job("waiting", queue="b")))
    settings = VictimSearchLimits(action_seconds=limit, job_seconds=limit)
    session = run_on(build(world), "reclaim", clock=Running(), victim_search=settings)
    assert bool(session.evictions) is helped


def test_jobs_are_found_in_mixed_gangs() -> None:
    """A gang whose pods ask for different things is placed at the cost of just enough victims."""
    inventory = build(World((4, 4), (("a", 4), ("b", 4)), ()))
    for number in range(8):
        name = f"run{number}"
        put_gang(inventory, a_gang(name, queue="a"), [a_pod(f"{name}-0", gang=name, gpus=1, node=f"n{number % 2}")])
    pods = [a_pod("mixed-0", gang="mixed", gpus=3), a_pod("mixed-1", gang="mixed", gpus=1)]
    put_gang(inventory, a_gang("mixed", minimum=2, queue="b"), pods)

    session = run_on(inventory, "reclaim")

    assert len(session.evictions) == 4
    assert set(promised(session)) == {"mixed-0", "mixed-1"}


def test_queues_are_compared_where_their_paths_part() -> None:
    """A team takes from another department what its department is entitled to, though the other team has no quota."""
    inventory = an_inventory(a_node("n0", gpus=4))
    for name, parent, quota in (("d1", None, 2), ("d2", None, 2), ("t1", "d1", 0), ("t2", "d2", 2)):
        inventory.put_queue(QueueInfo(name=name, parent=parent, quota=Amounts(-1, -1, quota * GPU)))
    for number in range(4):
        name = f"run{number}"
        put_gang(inventory, a_gang(name, queue="t1"), [a_pod(f"{name}-0", gang=name, gpus=1, node="n0")])
    put_gang(inventory, a_gang("waiting", queue="t2"), [a_pod("waiting-0", gang="waiting", gpus=2)])

    session = run_on(inventory, "reclaim")

    assert len(session.evictions) == 2
    assert "queue d1 (uses" in session.evictions[0].message
