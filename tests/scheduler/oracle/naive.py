"""The framework as the documentation describes it, with nothing clever in it.

No answer is kept, no two pods or jobs are taken for alike, no column is asked for more than one node, no order outlives
the moment it is asked for. Each task is asked about on its own: pre-predicates, then predicates node by node, then
scores, then capacity; the best node takes it, ties going to the first name. Only the books (ledger, statements, the
tree of a gang) and the arithmetic by which victims are proposed are those of the product.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cmp_to_key
from itertools import count
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np

from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.evaluation import turns
from spinney.scheduler.evaluation.job_order import Orders
from spinney.scheduler.evaluation.node_answers import accepts
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.extension_points import DoesNotFit, Hook, NodeRule, QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement import placing
from spinney.scheduler.placement.devices import choose_devices
from spinney.scheduler.placement.plain_jobs import PlainJobs
from spinney.scheduler.victims import searching, simulating
from spinney.scheduler.victims.order import Step
from spinney.scheduler.victims.pool import VictimJob, VictimPool

Rule = NodeRule[Any]


class NaiveJudge:
    """Judges one node after the other, and remembers nothing."""

    failures: Mapping[str, str] = {}

    def __init__(self, session: Session) -> None:
        self._session = session

    def candidates(self, task: PodInfo, nodes: NodeSet) -> list[tuple[float, NodeInfo, bool]]:
        """Return the nodes that may take a task, each with its score and whether it fits now, best first."""
        hooks = self._session.hooks
        left = [(node, now) for node in nodes for later, now in [_fits(self._session, task, node)] if later]
        for rule in _in_order(hooks.predicates):
            if rule.applies(task):
                left = [(node, now) for node, now in left if self._accepts(rule, task, node)]
        found = [(0.0, node, now) for node, now in left]
        for rule in _in_order(hooks.scores):
            if rule.applies(task):
                scored = [(score, self._score(rule, task, node), node, now) for score, node, now in found]
                found = [(score + more, node, now) for score, more, node, now in scored if more is not None]
        return sorted(found, key=lambda each: (-each[0], each[1].name))

    def rules(self, task: PodInfo) -> object:
        """Return that the task is like no other."""
        return task

    def suits(self, task: PodInfo) -> Any:
        """Return the nodes that rules which never change their mind let a task go to."""
        session = self._session
        mask = np.zeros(session.nodes.table.capacity, dtype=np.bool_)
        fixed = [rule for rule in session.hooks.predicates if not rule.per_job and not rule.reads_usage]
        for node in session.nodes.all:
            mask[node.row] = all(self._accepts(rule, task, node) for rule in fixed if rule.applies(task))
        return mask

    def _accepts(self, rule: Rule, task: PodInfo, node: NodeInfo) -> bool:
        try:
            if rule.columns:
                one = _only(self._session, node)
                return bool(validation.mask_of(rule.fn(task, task.job, one), one)[0])
            return accepts(rule.fn(task, task.job, node))
        except DoesNotFit:
            return False
        except Exception:  # noqa: BLE001 - a predicate that fails refuses
            return False

    def _score(self, rule: Rule, task: PodInfo, node: NodeInfo) -> float | None:
        try:
            if rule.columns:
                one = _only(self._session, node)
                return validation.finite(float(validation.scores_of(rule.fn(task, task.job, one), one)[0]))
            return validation.finite(rule.fn(task, node))
        except Exception:  # noqa: BLE001 - a node without a score is dropped
            return None


class NaivePrePredicates:
    """Asks every pre-predicate about every task."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def refusal(self, task: PodInfo) -> str | None:
        """Return why a task is refused, or ``None``."""
        hooks = self._session.hooks.pre_predicates
        for hook in [*(each for each in hooks if _promises(each)), *(each for each in hooks if not _promises(each))]:
            try:
                if not accepts(hook.fn(task, task.job)):
                    return "refused"
            except Exception:  # noqa: BLE001 - a pre-predicate that fails refuses
                return "refused"
        return None

    def said(self, task: PodInfo) -> str | None:
        """Nobody is asked why."""
        del task
        return "refused"


def naive_place_run(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet, *, pipeline_only: bool = False
) -> int:
    """Place one task after the other, each on the best node that takes it."""
    for done, task in enumerate(tasks):
        if session.ask.pre_predicates.refusal(task) is not None:
            return done
        session.ask.prepare_scoring(task, nodes)
        judge: Any = session.ask.node_rules
        if not _place(session, statement, task, judge.candidates(task, nodes), pipeline_only=pipeline_only):
            return done
    return len(tasks)


def _place(
    session: Session,
    statement: Statement,
    task: PodInfo,
    ranked: Sequence[tuple[float, NodeInfo, bool]],
    *,
    pipeline_only: bool,
) -> bool:
    for _, node, has_room in ranked:
        if not session.ask.is_task_allocation_on_node_over_capacity(task, node).ok:
            continue
        groups: tuple[str, ...] = ()
        now = has_room
        if task.request.share is not None:
            choice = choose_devices(session, task, node)
            if choice is None:
                continue
            groups, now = choice.groups, now and choice.now
        if now and not pipeline_only:
            statement.allocate(task, node, groups)
        else:
            statement.pipeline(task, node, groups)
        return True
    return False


class NaiveJobOrder:
    """Jobs of which the next is looked for among all of them each time."""

    def __init__(self, orders: Orders, jobs: Iterable[PodGroupInfo] = ()) -> None:
        self._orders = orders
        self._jobs = list(jobs)

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def push(self, job: PodGroupInfo) -> None:
        """Put a job back."""
        self._jobs.append(job)

    def pop(self) -> PodGroupInfo:
        """Take the job whose turn it is: of the queue that goes first, level by level, the job that goes first."""
        tree = self._orders.queues

        def first(queues: Sequence[QueueInfo]) -> PodGroupInfo:
            turns = [QueueTurn(queue, best(queue)) for queue in queues if holds(queue)]
            chosen = _least(turns, self._orders.compare_queues)
            assert chosen.next_job is not None
            return chosen.next_job

        def below(queue: QueueInfo | None) -> list[QueueInfo]:
            name = queue.name if queue is not None else None
            return [each for each in tree.queues if (each.parent or None) == name]

        def holds(queue: QueueInfo) -> bool:
            return any(job.queue == queue.name for job in self._jobs) or any(map(holds, below(queue)))

        def best(queue: QueueInfo) -> PodGroupInfo:
            own = [job for job in self._jobs if job.queue == queue.name]
            return min(own, key=self._orders.job_key) if own else first(below(queue))

        job = first(below(None))
        self._jobs.remove(job)
        return job


class NaiveVictimOrder:
    """Victims of which the next is looked for among all of them each time."""

    def __init__(
        self, session: Session, pool: VictimPool, queues: Iterable[str], admits: Callable[[PodGroupInfo], bool]
    ) -> None:
        self._session = session
        self._left = {name: [victim for victim in pool.of_queue(name) if admits(victim.job)] for name in queues}
        self._taken: dict[str, list[VictimJob]] = {}

    def pop(self) -> Step | None:
        tree = self._session.queues
        while any(self._left.values()):
            path: list[QueueInfo] = []
            while not path or not self._left.get(path[-1].name):
                above = path[-1].name if path else None
                siblings = [each for each in tree.queues if (each.parent or None) == above and self._holds(each)]
                path.append(_least([self._turn(each) for each in siblings], self._deserve_less).queue)
            victim = self._next(path[-1])
            self._left[path[-1].name].remove(victim)
            tasks, more = victim.view.tasks_to_evict()
            if more and tasks:
                rest = victim.view.without(tasks)
                again = VictimJob(self._session, victim.job, rest, self._session.ask.victim_key(rest))
                self._left[path[-1].name].append(again)
            for queue in path:
                self._taken.setdefault(queue.name, []).append(victim)
            if tasks:
                return Step(victim.job, tuple(tasks))
        return None

    def _deserve_less(self, left: QueueTurn, right: QueueTurn) -> int:
        return -self._session.ask.compare_queues(left, right)

    def _holds(self, queue: QueueInfo) -> bool:
        children = [each for each in self._session.queues.queues if each.parent == queue.name]
        return bool(self._left.get(queue.name)) or any(map(self._holds, children))

    def _next(self, queue: QueueInfo) -> VictimJob:
        own = self._left.get(queue.name)
        if own:
            return min(own)
        children = [each for each in self._session.queues.queues if each.parent == queue.name and self._holds(each)]
        return self._next(_least([self._turn(each) for each in children], self._deserve_less).queue)

    def _turn(self, queue: QueueInfo) -> QueueTurn:
        victims = [*self._taken.get(queue.name, ()), self._next(queue)]
        total = victims[0].held
        for each in victims[1:]:
            total = total + each.held
        return QueueTurn(queue, None, [each.view for each in victims], total)


class NaivePool(VictimPool):
    """Possible victims that are looked for anew each time."""

    def of_queue(self, queue: str) -> list[VictimJob]:
        """Return the possible victims of a queue, the least important first."""
        self._leaves[queue].forget_victims()
        return super().of_queue(queue)

    def look_again(self, jobs: Iterable[PodGroupInfo]) -> None:
        """Nothing is kept."""


class AllBystanders:
    """All pending jobs."""

    def __init__(self, session: Session, pending: Iterable[PodGroupInfo]) -> None:
        del session
        self._pending = list(pending)

    def besides(self, jobs: Mapping[PodGroupInfo, object]) -> Iterator[PodGroupInfo]:
        """Return those that are not among ``jobs``."""
        return (job for job in self._pending if job not in jobs and job.pending)


def naive_result(scheduler: Scheduler, session: Session) -> None:
    """Run the actions of a scheduler on a session of it, asking everything."""
    numbers = count()
    session.ask.__dict__["node_rules"] = NaiveJudge(session)
    session.ask.__dict__["pre_predicates"] = NaivePrePredicates(session)
    session.config = msgspec.structs.replace(session.config, use_scheduling_signatures=False)
    with _without_memory():
        session.ask.job_order_version = lambda: next(numbers)  # type: ignore[method-assign]
        session.ask.task_order_version = lambda: next(numbers)  # type: ignore[method-assign]
        session.ask.job_key = lambda job: _job_key(session, job)  # type: ignore[method-assign]
        session.ask.job_keys = lambda jobs: [_job_key(session, job) for job in jobs]  # type: ignore[method-assign]
        session.ask.sort_tasks = lambda tasks: _sort_tasks(session, tasks)  # type: ignore[method-assign]
        scheduler.run_actions(session)


@contextmanager
def _without_memory() -> Iterator[None]:
    with ExitStack() as stack:
        for module in (turns, simulating):
            stack.enter_context(patch.object(module, "JobOrder", NaiveJobOrder))
        stack.enter_context(patch.object(PlainJobs, "place", lambda self, job: ()))
        stack.enter_context(patch.object(placing, "place_run", naive_place_run))
        stack.enter_context(patch.object(searching, "VictimOrder", NaiveVictimOrder))
        stack.enter_context(patch.object(searching, "VictimPool", NaivePool))
        stack.enter_context(patch.object(searching, "Bystanders", AllBystanders))
        stack.enter_context(patch.object(searching, "one_of_each", lambda tasks: tasks))
        stack.enter_context(patch.object(simulating, "_kind", lambda job: None))
        yield


def _in_order(rules: Sequence[Rule]) -> list[Rule]:
    """Return rules in the order in which they are asked: first those that promise something, then the others."""

    def is_asked_in_turn(rule: Rule) -> bool:
        return rule.stateful or (rule.per_pod and rule.per_job and not rule.alike)

    return sorted(rules, key=is_asked_in_turn)


def _promises(hook: Hook[Any]) -> bool:
    return hook.alike and not hook.stateful


def _fits(session: Session, task: PodInfo, node: NodeInfo) -> tuple[bool, bool]:
    """Return whether a node has the resources once what is terminating is gone, and now."""
    if task.request.share is not None:
        fits = session.nodes.resource_fit(task.request, np.array([node.row]))
        return bool(fits[0][0]), bool(fits[1][0])
    idle, releasing = node.idle, node.releasing
    asked = session.nodes.table.axis.amounts(task.request.requests)
    now = all(idle.get(name, 0) >= amount for name, amount in asked.items())
    later = all(idle.get(name, 0) + releasing.get(name, 0) >= amount for name, amount in asked.items())
    return later, now and later


def _only(session: Session, node: NodeInfo) -> NodeSet:
    return NodeSet(session.nodes, np.array([node.row], dtype=np.intp))


def _least(turns: Sequence[QueueTurn], compare: Callable[[QueueTurn, QueueTurn], int]) -> QueueTurn:
    return min(turns, key=cmp_to_key(compare))


def _job_key(session: Session, job: PodGroupInfo) -> Any:
    def last(each: PodGroupInfo) -> Any:
        return (each.created is not None, each.created, each.uid)

    return _compared(session.hooks.job_order, last)(job)


def _sort_tasks(session: Session, tasks: list[PodInfo]) -> None:
    tasks.sort(key=_compared(session.hooks.task_order, lambda task: (task.created is not None, task.created, task.uid)))


def _compared(orders: Sequence[Any], last: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def compare(left: Any, right: Any) -> int:
        for order in orders:
            try:
                found: int = (
                    order.compare(left, right)
                    if order.compare is not None
                    else (order.key(left) > order.key(right)) - (order.key(left) < order.key(right))
                )
            except Exception:  # noqa: BLE001 - an order that fails says equal
                found = 0
            if found:
                return found
        return int(last(left) > last(right)) - int(last(left) < last(right))

    return cmp_to_key(compare)
