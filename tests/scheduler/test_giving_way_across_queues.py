"""Jobs of one queue that give way to a job of another one, which their queue can spare."""

import dataclasses
from datetime import timedelta

import msgspec
import pytest

from spinney.api.labels import EXPECTED_DURATION
from spinney.extensions.arguments import InvalidArguments, read_arguments
from spinney.scheduler import Plugin, Session
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.fairshare.amounts import NO_BOUND
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins.backfill.plugin import Terms
from tests.scheduler.building import NOW, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang
from tests.scheduler.test_backfill import JUST_NOW, a_job, backfilling

ACROSS = {"giveWay": "4", "giveWayAcrossQueues": "true"}


def a_queue(name: str, gpus: int | None, parent: str | None = None) -> QueueInfo:
    """Return a queue that is guaranteed so many GPUs; ``None`` is without bound."""
    quota = Amounts(NO_BOUND.cpu, NO_BOUND.memory, NO_BOUND.gpu if gpus is None else gpus * GPU)
    return QueueInfo(name=name, quota=quota, parent=parent)


def long_jobs_of_another_queue(
    *queues: QueueInfo, nodes: int = 1, lasts: str = "10h", priority: int = 50, waiting: int = 1
) -> Inventory:
    """Full nodes with jobs of the queue ``long`` that have run ten minutes of ten hours, and a gang of ``short``."""
    inventory = an_inventory(*(a_node(f"n{number}") for number in range(nodes)))
    for queue in queues:
        inventory.put_queue(queue)
    annotations = {EXPECTED_DURATION: lasts} if lasts else {}
    for number in range(nodes):
        name = f"long-{number}"
        pod = a_pod(f"{name}-0", gang=name, gpus=8, node=f"n{number}", annotations=annotations)
        gang = a_gang(name, queue="long", priority=priority)
        put_gang(inventory, dataclasses.replace(gang, last_start=NOW - timedelta(minutes=10)), [pod])
    a_job(inventory, "short", waiting, 8, JUST_NOW, lasts="1m", queue="short")
    return inventory


def preempting(**arguments: str) -> SchedulerConfig:
    """Return a configuration that reclaims nothing; with arguments it has ``backfill``."""
    config = backfilling(**arguments) if arguments else SchedulerConfig()
    return msgspec.structs.replace(config, actions=("allocate", "preempt"))


def evicted(inventory: Inventory, *plugins: type[Plugin], **arguments: str) -> list[tuple[str, str]]:
    result = a_scheduler(inventory, *plugins, config=preempting(**arguments)).run_cycle()
    return [(each.pod.name, each.message) for each in result.evictions]


def test_a_job_beyond_the_quota_of_its_queue_gives_way_and_is_told_to_whom() -> None:
    """The short job then has the node; without the option only jobs of its own queue give way."""
    inventory = long_jobs_of_another_queue(a_queue("long", 0), a_queue("short", 8))
    assert not evicted(inventory, giveWay="4")
    scheduler = a_scheduler(inventory, config=preempting(**ACROSS))
    (gone,) = scheduler.run_cycle().evictions
    assert (gone.pod.name, gone.message) == ("long-0-0", "gives way to job team/short of queue short")
    inventory.cluster.delete_pod(gone.pod)
    assert placements(scheduler) == {"short-0": "n0"}


@pytest.mark.parametrize(
    ("queues", "nodes", "gone"),
    [
        pytest.param([a_queue("long", 8), a_queue("short", 8)], 1, 0, id="all of it is guaranteed"),
        pytest.param([a_queue("long", 8), a_queue("short", 8)], 2, 1, id="half of it is"),
        pytest.param([a_queue("long", 9), a_queue("short", 8)], 2, 0, id="part of each is"),
        pytest.param([a_queue("long", None), a_queue("short", 8)], 2, 0, id="without bound"),
        pytest.param(
            [QueueInfo(name="long", quota=Amounts(0, 0, NO_BOUND.gpu)), a_queue("short", 8)],
            2,
            0,
            id="GPUs without bound",
        ),
        pytest.param(
            [a_queue("team", 16), a_queue("long", 0, "team"), a_queue("short", 0)], 2, 0, id="guaranteed to the team"
        ),
        pytest.param(
            [a_queue("team", 16), a_queue("long", 0, "team"), a_queue("short", 0, "team")], 2, 1, id="of one team"
        ),
    ],
)
def test_a_queue_keeps_what_it_is_guaranteed(queues: list[QueueInfo], nodes: int, gone: int) -> None:
    """Only jobs that hold more than the quota of their queue, and of those above it, give way to strangers."""
    inventory = long_jobs_of_another_queue(*queues, nodes=nodes)
    assert len(evicted(inventory, **ACROSS)) == gone


@pytest.mark.parametrize(("quota", "gone"), [(0, 2), (8, 0)])
def test_what_several_jobs_hold_together_is_kept_too(quota: int, gone: int) -> None:
    """A gang that needs two nodes gets none if only one of the two jobs could be spared."""
    inventory = long_jobs_of_another_queue(a_queue("long", quota), a_queue("short", 16), nodes=2, waiting=2)
    assert len(evicted(inventory, **ACROSS)) == gone


@pytest.mark.parametrize(("runtime", "gone"), [("preempt_min_runtime", 1), ("reclaim_min_runtime", 0)])
def test_what_a_job_runs_before_other_queues_may_take_its_place_holds(runtime: str, gone: int) -> None:
    """It has run for ten minutes; how long jobs of its own queue must let it run does not matter."""
    long = msgspec.structs.replace(a_queue("long", 0), **{runtime: timedelta(hours=1)})
    assert len(evicted(long_jobs_of_another_queue(long, a_queue("short", 8)), **ACROSS)) == gone


@pytest.mark.parametrize(("priority", "gone"), [(10, 1), (60, 0)])
def test_nobody_gives_way_to_less_important_jobs(priority: int, gone: int) -> None:
    """A job of another queue gives way if its priority is lower, too; never if it is higher."""
    inventory = long_jobs_of_another_queue(a_queue("long", 0), a_queue("short", 8), priority=priority)
    assert len(evicted(inventory, **ACROSS)) == gone


def test_who_states_no_run_time_gives_way_to_nobody() -> None:
    """A job of another queue is no victim for its lower priority alone."""
    inventory = long_jobs_of_another_queue(a_queue("long", 0), a_queue("short", 0), lasts="", priority=10)
    assert not evicted(inventory, **ACROSS)


class Polite(Plugin):
    """Has every job give way, also to jobs of other queues."""

    name = "polite"

    def on_session_open(self, session: Session) -> None:
        session.add_gives_way_fn(lambda _job, _victim: True, across_queues=True)


@pytest.mark.parametrize(
    ("taking", "giving", "gone"),
    [
        pytest.param(8, 0, 1, id="the taking queue comes first"),
        pytest.param(0, 8, 0, id="the giving queue comes first"),
    ],
)
def test_the_queue_that_comes_first_is_given_the_room(taking: int, giving: int, gone: int) -> None:
    """Plugins may have jobs of other queues give way; who would be placed again first keeps its place."""
    inventory = long_jobs_of_another_queue(a_queue("long", giving), a_queue("short", taking))
    assert len(evicted(inventory, Polite)) == gone


def test_giving_way_across_queues_needs_giving_way() -> None:
    """The option alone does nothing, so it is refused and the argument that it needs is named."""
    with pytest.raises(InvalidArguments, match="giveWayAcrossQueues: nobody gives way without giveWay above 0"):
        read_arguments(Terms, {"giveWayAcrossQueues": "true"})
