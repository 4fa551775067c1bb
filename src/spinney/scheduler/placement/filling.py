"""Placing tasks that ask for the same thing, one after the other, or many in one pass over the ranking.

The rule is simple: each task takes the best node that may take it, ties going to the node whose name comes first, and
changes what that node has left. For identical tasks four ways lead to the same result:

* task by task, judging again each time: always right;
* one on each of the best nodes, where all they mind is sharing a node (:mod:`~spinney.scheduler.placement.apart`);
* filling node after node down the ranking, where placing on one node changes nothing about others, and a node never
  becomes less attractive by being used; the same then holds from one gang of a single pod to the next;
* from a heap of nodes by what they would say with so many tasks on them, where only the former holds
  (:mod:`~spinney.scheduler.placement.levels`).
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

import numpy as np

from spinney.api.labels import HOSTNAME
from spinney.cluster.journal import Rows
from spinney.cluster.resources import Vector
from spinney.scheduler.nodes import NodeSet, Scores
from spinney.scheduler.placement.apart import only_apart
from spinney.scheduler.placement.devices import choose_devices
from spinney.scheduler.placement.judging import Candidates, RuleSet
from spinney.scheduler.placement.levels import best_of_each, fill_ranked
from spinney.scheduler.placement.succession import AHEAD
from spinney.scheduler.session import Session
from spinney.scheduler.statement import Statement
from spinney.scheduler.tasks import PodInfo

_NOMINATED: Final = attrgetter("record.pod.status.nominated_node_name")
_VIRTUAL: Final = attrgetter("virtual")


def place_run(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet, *, pipeline_only: bool = False
) -> int:
    """Place ``tasks``, all of one pod set and request class, in order; return how many found a node."""
    if session.pre_predicate(tasks[0]) is not None:
        return 0
    rules = session.judge.rules(tasks[0])
    if len(tasks) == 1 and not pipeline_only and _follows_others(session, tasks, nodes, rules):
        return _place_next(session, statement, tasks[0], nodes, rules)
    if len(tasks) > 1 and not pipeline_only and _are_only_apart(session, tasks, rules):
        return _place_apart(session, statement, tasks, nodes)
    if len(tasks) == 1 or pipeline_only or not _is_uniform(session, tasks, rules):
        return _place_one_by_one(session, statement, tasks, nodes, pipeline_only=pipeline_only)
    _prepare(session, tasks[0], nodes)
    candidates = session.judge.candidates(tasks[0], nodes)
    if not _is_within_capacity(session, tasks[0], candidates):
        return 0
    if _may_pipeline(session, tasks[0], candidates.rows):
        return _place_one_by_one(session, statement, tasks, nodes, pipeline_only=False)
    if rules.monotone:
        return _fill(session, statement, tasks, candidates, only_room_limits=rules.only_room_limits)
    return _place_in_turn(session, statement, tasks, candidates)


def _place_one_by_one(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet, *, pipeline_only: bool
) -> int:
    for done, task in enumerate(tasks):
        if done and session.pre_predicate(task) is not None:
            return done
        _prepare(session, task, nodes)
        if not _place_best(
            session, statement, task, session.judge.candidates(task, nodes), pipeline_only=pipeline_only
        ):
            return done
    return len(tasks)


def _place_apart(session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet) -> int:
    """Put one task on each of the best nodes."""
    candidates = session.judge.candidates(tasks[0], nodes)
    hosts = session.nodes.table.labels.column(HOSTNAME)[candidates.rows]
    unlike = len(np.unique(hosts)) == len(hosts) and bool((hosts >= 0).all())
    if not unlike or _may_pipeline(session, tasks[0], candidates.rows):
        return _place_one_by_one(session, statement, tasks, nodes, pipeline_only=False)
    if not _is_within_capacity(session, tasks[0], candidates):
        return 0
    best = candidates.rows[np.argsort(-candidates.score, kind="stable")[: len(tasks)]]
    statement.allocate_many(tasks[: len(best)], best, np.ones(len(best), dtype=np.int64))
    return len(best)


def _place_next(session: Session, statement: Statement, task: PodInfo, nodes: NodeSet, rules: RuleSet) -> int:
    """Put a single task where the last one like it left off."""
    kind = (task.request.number, rules.signature)
    row = session.succession.next_row(kind)
    if row is None:
        candidates = session.judge.candidates(task, nodes)
        if _may_pipeline(session, task, candidates.rows):
            return int(_place_best(session, statement, task, candidates, pipeline_only=False))
        best = candidates.rows[np.argsort(-candidates.score, kind="stable")[:AHEAD]]
        session.succession.begin(kind, best, room_for(session, task, best))
        row = session.succession.next_row(kind)
    if row is None:
        return 0
    node = session.nodes.info(row)
    if not session.is_task_allocation_on_node_over_capacity(task, node).ok:
        return _place_one_by_one(session, statement, (task,), nodes, pipeline_only=False)
    statement.allocate(task, node)
    session.succession.took()
    return 1


def _place_best(
    session: Session, statement: Statement, task: PodInfo, candidates: Candidates, *, pipeline_only: bool
) -> bool:
    """Put ``task`` on the best candidate that really takes it."""
    rows, now, score = candidates
    for position in _best_first(score):
        node = session.nodes.info(int(rows[position]))
        if not session.is_task_allocation_on_node_over_capacity(task, node).ok:
            continue
        groups: tuple[str, ...] = ()
        fits_now = bool(now[position])
        if task.request.share is not None:
            choice = choose_devices(
                session.nodes,
                task,
                node,
                session.hooks.gpu_order,
                timings=session.timings,
                failures=session.failures,
                new_group=session.new_gpu_group,
            )
            if choice is None:
                continue
            groups, devices_now = choice
            fits_now = fits_now and devices_now
        if fits_now and not pipeline_only:
            statement.allocate(task, node, groups)
        else:
            statement.pipeline(task, node, groups)
        return True
    return False


def _best_first(score: Scores) -> Iterator[int]:
    """Yield the places of all scores, best first, ties in order; the first, mostly the only one wanted, at once."""
    if len(score):
        best = int(score.argmax())
        yield best
        yield from (place for place in np.argsort(-score, kind="stable").tolist() if place != best)


def _fill(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], candidates: Candidates, *, only_room_limits: bool
) -> int:
    """Fill the best nodes one after the other."""
    rows = candidates.rows[_best(candidates, len(tasks))]
    room = room_for(session, tasks[0], rows)
    if not only_room_limits:
        room = fill_ranked(session, tasks, rows, room)
    reached = np.cumsum(room)
    last = min(int(np.searchsorted(reached, len(tasks))), len(rows) - 1)
    counts = room[: last + 1].copy()
    counts[last] -= max(int(reached[last]) - len(tasks), 0)
    total = int(counts.sum())
    statement.allocate_many(tasks[:total], rows[: last + 1], counts)
    return total


def _place_in_turn(session: Session, statement: Statement, tasks: Sequence[PodInfo], candidates: Candidates) -> int:
    """Give each task the node that is best by then, whatever use does to scores."""
    best = np.sort(_best(candidates, len(tasks)))  # by name again, as ties go to the first
    rows, score = candidates.rows[best], candidates.score[best]
    places = best_of_each(session, tasks, rows, score)
    order = sorted(range(len(places)), key=places.__getitem__)
    used, counts = np.unique(np.array(places, dtype=np.intp), return_counts=True)
    statement.allocate_many([tasks[each] for each in order], rows[used], counts.astype(np.int64))
    return len(places)


def _best(candidates: Candidates, wanted: int) -> Rows:
    """Return the places of the best candidates, best first, ties by name; each takes a task, so no other is needed."""
    score = candidates.score
    if len(score) <= 4 * wanted:
        return np.argsort(-score, kind="stable")[:wanted]
    enough = np.flatnonzero(score >= np.partition(score, len(score) - wanted)[len(score) - wanted])
    return enough[np.argsort(-score[enough], kind="stable")[:wanted]]


def room_for(session: Session, task: PodInfo, rows: Rows) -> Vector:
    """Return how many more tasks like ``task`` fit now on each row."""
    request = task.request
    idle = session.nodes.table.idle_at(request.columns, rows)
    room: Vector = (idle // request.amounts[:, None]).min(axis=0)
    return room


def _is_uniform(session: Session, tasks: Sequence[PodInfo], rules: RuleSet) -> bool:
    """Tell whether placing the tasks on a node changes nothing about other nodes, and none of them is special."""
    request = tasks[0].request
    special = request.share is not None or request.constraints.looks_at_pods or request.constraints.claims
    if special or not rules.local or session.hooks.stateful_pre_predicates:
        return False
    return not _is_any_special(tasks)


def _are_only_apart(session: Session, tasks: Sequence[PodInfo], rules: RuleSet) -> bool:
    """Tell whether the tasks may not share a node, and nothing else is between them."""
    if not only_apart(tasks[0].request) or session.hooks.stateful_pre_predicates or session.hooks.node_pre_order:
        return False
    predicates, scores = rules.stateful
    if not all(rule.only_pod_rules for rule in predicates):
        return False
    if not all(rule.monotone or rule.only_pod_rules for rule in scores):
        return False
    return not _is_any_special(tasks)


def _is_any_special(tasks: Sequence[PodInfo]) -> bool:
    """Tell whether a node was nominated for one of the tasks, or a statement has evicted it."""
    return any(map(_NOMINATED, tasks)) or any(map(_VIRTUAL, tasks))


def _follows_others(session: Session, tasks: Sequence[PodInfo], nodes: NodeSet, rules: RuleSet) -> bool:
    """Tell whether a task goes where any other of its class would, and leaves everything as it is for the next."""
    if nodes is not session.nodes.all or not rules.by_class or session.hooks.node_pre_order:
        return False
    return rules.only_room_limits and rules.monotone and _is_uniform(session, tasks, rules)


def _may_pipeline(session: Session, task: PodInfo, rows: Rows) -> bool:
    """Tell whether something that the task asks for is being released on one of the rows."""
    releasing = session.nodes.table.releasing
    return any(bool(releasing[rows, column].any()) for column in task.request.columns.tolist())


def _is_within_capacity(session: Session, task: PodInfo, candidates: Candidates) -> bool:
    """Judge the queue's capacity once: only requests in GPU memory weigh differently on different nodes."""
    if len(candidates.rows) == 0:
        return False
    return session.is_task_allocation_on_node_over_capacity(task, session.nodes.info(int(candidates.rows[0]))).ok


def _prepare(session: Session, task: PodInfo, nodes: NodeSet) -> None:
    if session.hooks.node_pre_order:
        session.prepare_scoring(task, nodes)
