"""Clusters with running and pending jobs, for tests of searches for victims."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.runtime import InlineExecutor, Runtime
from spinney.runtime.clock import Clock
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo, Weights
from spinney.scheduler.framework.session import Session
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import a_gang, a_node, a_pod, a_runtime, an_inventory, put_gang

MIN_RUNTIME = timedelta(hours=1)


@dataclass(frozen=True)
class Job:
    """A job of a world: one pod per entry of ``places``, ``""`` for a pending one."""

    name: str
    queue: str = "a"
    gpus: int = 1
    places: tuple[str, ...] = ("",)
    minimum: int | None = None
    priority: int = 50
    preemptible: bool = True
    fresh: bool = False
    """It started a moment ago, within the min-runtime of its queue."""
    pool: str = ""
    """The pool of nodes that its pods are bound to: ``even`` or ``odd``, by the number of the node; empty: any."""


@dataclass(frozen=True)
class World:
    """Nodes by GPUs, quotas of queues in GPUs, and jobs."""

    nodes: tuple[int, ...]
    quotas: tuple[tuple[str, int], ...]
    jobs: tuple[Job, ...]
    min_runtime: bool = False
    departments: bool = False
    """The first queue is in a department of its own, and all others in another."""


def build(world: World) -> Inventory:
    """Return the inventory of a world."""
    inventory = an_inventory(
        *(
            a_node(f"n{number}", gpus=gpus, labels={"pool": ("even", "odd")[number % 2]})
            for number, gpus in enumerate(world.nodes)
        )
    )
    runtime = MIN_RUNTIME if world.min_runtime else None
    for name in ("first", "others") if world.departments else ():
        inventory.put_queue(QueueInfo(name=name, quota=Amounts(-1, -1, 0), weight=Weights(1, 1, 1)))
    for age, (name, quota) in enumerate(world.quotas):
        inventory.put_queue(
            QueueInfo(
                name=name,
                parent=("others" if age else "first") if world.departments else None,
                quota=Amounts(-1, -1, quota * GPU),
                weight=Weights(1, 1, 1),
                created=float(age),
                preempt_min_runtime=runtime,
                reclaim_min_runtime=runtime,
            )
        )
    now = a_runtime().clock.now()
    for age, job in enumerate(world.jobs):
        put(inventory, job, created=now - timedelta(hours=24) + timedelta(minutes=age), now=now)
    return inventory


def put(inventory: Inventory, job: Job, *, created: datetime, now: datetime) -> None:
    minimum = len(job.places) if job.minimum is None else job.minimum
    gang = a_gang(
        job.name,
        minimum=minimum,
        priority=job.priority,
        preemptible=job.preemptible,
        queue=job.queue,
        created=created,
    )
    if any(job.places):
        gang = replace(gang, last_start=now if job.fresh else now - timedelta(hours=12))
    bound = {"pool": job.pool} if job.pool else {}
    pods = (
        a_pod(f"{job.name}-{number}", gang=job.name, gpus=job.gpus, node=node, node_selector=bound)
        for number, node in enumerate(job.places)
    )
    put_gang(inventory, gang, pods)


def run(world: World, *actions: str, **changes: Any) -> Session:
    """Run actions on a world; return the session as they left it."""
    return run_on(build(world), *actions, **changes)


def run_on(inventory: Inventory, *actions: str, clock: Clock | None = None, **changes: Any) -> Session:
    config = SchedulerConfig(actions=actions, explain=False, **changes)
    base = a_runtime()
    runtime = base if clock is None else Runtime(clock=clock, random=base.random, executor=InlineExecutor())
    scheduler = Scheduler(config, inventory, runtime=runtime)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    return session


def evicted(session: Session) -> dict[str, str]:
    """Return the evicted pods, and where each was promised a new place."""
    return {eviction.pod.name: eviction.moves_to for eviction in session.evictions}


def promised(session: Session) -> dict[str, str]:
    """Return the pods that were promised a node."""
    return {promise.pod.name: promise.node for promise in session.pipelines}


def state(session: Session) -> tuple[object, ...]:
    """Return every ledger of a session and where each task stands, for comparison."""
    table = session.nodes.table
    tasks = [
        (task.key, task.status, task.row, task.node_name, task.gpu_groups, task.virtual, job.active(task.pod_set))
        for job in session.jobs
        for task in job.tasks
    ]
    shared = {row: dict(session.ledger.shared.of_row(row)) for row in session.ledger.shared.rows()}
    pods = {row: sorted(session.nodes.pods.of_row(row)) for row in session.nodes.all.rows.tolist()}
    queues = [(name, session.ask.queue_allocated(name)) for name in session.queues.index]
    matrices = [matrix.tobytes() for matrix in (table.used, table.idle, table.releasing)]
    return (matrices, shared, pods, queues, tasks)


def load(session: Session) -> Counter[str]:
    """Return the GPUs that pods hold or were promised on each node, counted from the tasks."""
    return Counter(
        {
            node: sum(
                task.request.gpus
                for job in session.jobs
                for task in job.tasks
                if task.node_name == node and task.status in ACTIVE_ALLOCATED
            )
            for node in session.nodes.all.names
        }
    )


@st.composite
def worlds(draw: st.DrawFn, *, most_running: int = 6, min_runtime: bool = False) -> World:
    """Return small clusters: running gangs that fit, elastic or not, of several queues and priorities; some pending."""
    nodes = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    free = dict(enumerate(nodes))
    queues = ("a", "b", "c")[: draw(st.integers(1, 3))]
    quotas = tuple((queue, draw(st.integers(0, 4))) for queue in queues)
    jobs: list[Job] = []
    for number in range(draw(st.integers(min(2, most_running), most_running))):
        gpus = draw(st.integers(1, 2))
        places = _places(draw, free, gpus, draw(st.integers(1, 3)))
        if places:
            jobs.append(_job(draw, f"run{number}", queues, gpus, places, highest=60))
    for number in range(draw(st.integers(1, 3))):
        pods = draw(st.integers(1, 2))
        jobs.append(_job(draw, f"wait{number}", queues, draw(st.integers(1, 3)), ("",) * pods, highest=70))
    return World(nodes, quotas, tuple(jobs), min_runtime)


def _places(draw: st.DrawFn, free: dict[int, int], gpus: int, wanted: int) -> tuple[str, ...]:
    places: list[str] = []
    for _ in range(wanted):
        roomy = [node for node, left in free.items() if left >= gpus]
        if not roomy:
            break
        node = draw(st.sampled_from(roomy))
        free[node] -= gpus
        places.append(f"n{node}")
    return tuple(places)


def _job(draw: st.DrawFn, name: str, queues: Sequence[str], gpus: int, places: Iterable[str], *, highest: int) -> Job:
    pods = tuple(places)
    return Job(
        name,
        queue=draw(st.sampled_from(queues)),
        gpus=gpus,
        places=pods,
        minimum=draw(st.integers(1, len(pods))),
        priority=draw(st.sampled_from((50, 60, highest))),
        preemptible=draw(st.sampled_from((True, True, True, False))),
        fresh=draw(st.booleans()),
        pool=draw(st.sampled_from(("", "", "even"))),
    )
