"""Statements: what is undone leaves no trace, and what is committed is the result."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spinney.cluster.statuses import PodStatus
from spinney.scheduler.framework.events import Event, EventHandler
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo
from tests.scheduler.building import a_gang, a_node, a_pod, a_session, an_inventory, put_gang

State = tuple[object, ...]


def a_busy_session() -> Session:
    """Return a session with three nodes, running, sharing and pending pods."""
    inventory = an_inventory(*(a_node(f"n{number}", gpus=4) for number in range(3)))
    fraction = {"gpu-fraction": "0.5"}
    pods = [
        *(a_pod(f"run-{number}", gang="job", gpus=1, node=f"n{number % 3}") for number in range(4)),
        *(a_pod(f"wait-{number}", gang="job", gpus=1) for number in range(4)),
        *(a_pod(f"part-{number}", gang="job", annotations=fraction) for number in range(3)),
        a_pod("shared", gang="job", annotations=fraction, labels={"runai-gpu-group": "g"}, node="n0"),
    ]
    put_gang(inventory, a_gang("job"), pods)
    return a_session(inventory, Tally)


class Tally(Plugin):
    """Counts allocations and deallocations of every task."""

    name = "tally"
    balance: dict[str, int]

    def on_session_open(self, session: Session) -> None:
        """Count from now on."""
        Tally.balance = {}
        session.add_event_handler(
            EventHandler(allocate=lambda event: self._add(event, 1), deallocate=lambda event: self._add(event, -1))
        )

    def _add(self, event: Event, step: int) -> None:
        Tally.balance[event.task.name] = Tally.balance.get(event.task.name, 0) + step


def everything(session: Session) -> State:
    """Return all that a statement may change."""
    table = session.nodes.table
    return (
        table.used.tobytes(),
        table.idle.tobytes(),
        table.releasing.tobytes(),
        {row: dict(session.ledger.shared.of_row(row)) for row in session.ledger.shared.rows()},
        {row: set(session.nodes.pods.of_row(row)) for row in session.nodes.all.rows.tolist()},
        [
            (task.name, task.status, task.row, task.node_name, task.gpu_groups, task.virtual)
            for job in session.jobs
            for task in job.tasks
        ],
        [job.active(pod_set) for job in session.jobs for pod_set in job.gang.pod_sets.values()],
        {name: count for name, count in Tally.balance.items() if count},
    )


steps = st.lists(
    st.tuples(st.sampled_from(["evict", "allocate", "pipeline", "convert"]), st.integers(0, 11), st.integers(0, 2)),
    max_size=15,
)


def do(session: Session, statement: Statement, step: tuple[str, int, int]) -> None:
    """Carry out a step if it makes sense for the task as it is."""
    kind, number, node_number = step
    (job,) = session.jobs
    task = job.tasks[number]
    node = session.node(f"n{node_number}")
    groups = ("g",) if task.request.share is not None else ()
    if kind == "convert":
        statement.convert_all_allocated_to_pipelined(job)
    elif kind == "evict":
        if task.status in {PodStatus.RUNNING, PodStatus.ALLOCATED, PodStatus.PIPELINED}:
            statement.evict(task)
    elif task.status is PodStatus.PENDING and kind == "allocate":
        statement.allocate(task, node, groups)
    elif task.should_allocate:
        statement.pipeline(task, node, groups)


@settings(max_examples=80, deadline=None)
@example(
    # A task that moves away and back while its first place is still releasing.
    before=[("allocate", 0, 1), ("evict", 0, 0), ("allocate", 0, 0)],
    after=[("evict", 0, 0), ("allocate", 0, 1)],
)
@given(before=steps, after=steps)
def test_rollback_restores_every_ledger_bit_for_bit(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]]
) -> None:
    """Whatever a statement did since a checkpoint, rolling back restores exactly what was there."""
    session = a_busy_session()
    pristine = everything(session)
    statement = session.statement()
    for step in before:
        do(session, statement, step)
    checkpoint, middle = statement.checkpoint(), everything(session)
    for step in after:
        do(session, statement, step)

    statement.rollback(checkpoint)
    assert everything(session) == middle
    statement.discard()
    assert everything(session) == pristine


def test_many_placements_in_one_operation_are_undone_too() -> None:
    """Placing identical tasks in one go is the same as one by one, and is undone as well."""
    session = a_busy_session()
    (job,) = session.jobs
    tasks = [task for task in job.tasks if task.name.startswith("wait")]
    pristine = everything(session)
    statement = session.statement()
    rows = np.array([session.node("n1").row, session.node("n2").row])
    statement.allocate_many(tasks, rows, np.array([1, 3]))
    together = everything(session)
    statement.discard()
    assert everything(session) == pristine

    for task, node in zip(tasks, ("n1", "n2", "n2", "n2"), strict=True):
        statement.allocate(task, session.node(node))
    assert everything(session) == together


def named(session: Session, name: str) -> PodInfo:
    return next(task for job in session.jobs for task in job.tasks if task.name == name)


def test_commit_hands_out_binds_promises_and_evictions() -> None:
    """What was committed is the session's result, and statuses say so."""
    session = a_busy_session()
    statement = session.statement()
    statement.evict(named(session, "run-0"), "to make room")
    statement.allocate(named(session, "wait-0"), session.node("n1"))
    statement.pipeline(named(session, "wait-1"), session.node("n0"))
    statement.commit()

    assert [(each.pod.name, each.message) for each in session.evictions] == [("run-0", "to make room")]
    assert [(bind.pod.name, bind.node) for bind in session.binds] == [("wait-0", "n1")]
    assert [(each.pod.name, each.node) for each in session.pipelines] == [("wait-1", "n0")]
    assert named(session, "wait-0").status is PodStatus.BINDING
    assert not named(session, "wait-0").virtual


def test_a_victim_that_gets_its_old_place_back_was_never_evicted() -> None:
    """Pipelining an evicted task to its own node cancels the eviction."""
    session = a_busy_session()
    pristine = everything(session)
    victim = named(session, "run-0")
    statement = session.statement()
    statement.evict(victim)
    statement.pipeline(victim, session.node("n0"))
    assert victim.status is PodStatus.RUNNING
    statement.commit()

    assert session.evictions == []
    assert session.pipelines == []
    assert everything(session) == pristine


def test_a_victim_that_moves_holds_its_old_place_until_it_is_gone() -> None:
    """A relocated victim is releasing on its old node and promised the new one; both count."""
    session = a_busy_session()
    victim = named(session, "run-0")
    statement = session.statement()
    statement.evict(victim)
    statement.pipeline(victim, session.node("n2"))

    assert session.node("n0").releasing_gpus == 1
    assert (victim.status, victim.node_name) == (PodStatus.PIPELINED, "n2")
    statement.commit()
    assert (len(session.evictions), len(session.pipelines)) == (1, 1)


def test_a_converted_placement_is_a_promise() -> None:
    """Converted tasks are pipelined where they were, take nothing from idle, and are not bound."""
    session = a_busy_session()
    (job,) = session.jobs
    idle = session.node("n1").idle_gpus
    statement = session.statement()
    statement.allocate(named(session, "wait-0"), session.node("n1"))
    statement.convert_all_allocated_to_pipelined(job)
    statement.commit()

    assert session.node("n1").idle_gpus == idle
    assert session.binds == []
    assert [each.node for each in session.pipelines] == ["n1"]


def test_a_pending_task_is_nowhere() -> None:
    """A task without a node says so."""
    assert named(a_busy_session(), "wait-0").row == NOWHERE
