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
from spinney.cluster.fitting import first_of, pods_per_node
from spinney.cluster.journal import Rows, distinct
from spinney.cluster.resources import Vector
from spinney.scheduler.evaluation.kept_ranking import AHEAD
from spinney.scheduler.evaluation.node_rules import Candidates
from spinney.scheduler.evaluation.rule_sets import TaskRules
from spinney.scheduler.framework.nodes import FirstChoice, NodeInfo, NodeSet, Scores
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.apart import is_only_apart
from spinney.scheduler.placement.devices import choose_devices
from spinney.scheduler.placement.levels import best_of_each, fill_ranked

_NOMINATED: Final = attrgetter("record.nominated_node")
_VIRTUAL: Final = attrgetter("virtual")


def place_run(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet, *, pipeline_only: bool
) -> int:
    """Place ``tasks``, all of one pod set and request class, in order; return how many found a node."""
    together = not pipeline_only and _may_go_together(session, tasks)
    done = 0
    while done < len(tasks) and session.ask.pre_predicates.refusal(tasks[done]) is None:
        if together:
            placed, refused = _place_alike(session, statement, tasks, done, nodes)
        else:
            _prepare(session, tasks[done], nodes)
            candidates = session.ask.node_rules.candidates(tasks[done], nodes)
            placed = _place_best(session, statement, tasks[done], candidates, pipeline_only=pipeline_only)
            refused = not placed
        done += placed
        if refused:
            break
    return done


def _place_alike(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], start: int, nodes: NodeSet
) -> tuple[int, bool]:
    """Place as many tasks from ``start`` on as get the same answers, the first of which may be placed.

    Return how many found a node, and whether the next one was refused.
    """
    first = tasks[start]
    rules = session.ask.node_rules.rules(first)
    if not start and _follows_others(session, tasks, nodes, rules):
        if _place_next(session, statement, tasks, nodes, rules):
            return len(tasks), False
    elif not start and len(tasks) > 1 and _are_only_apart(session, tasks, rules):
        placed = _place_apart(session, statement, tasks, nodes)
        return placed, not placed
    alone = len(tasks) - start == 1 or first.request.constraints.looks_at_pods
    planned = rules if alone else rules.planned
    if planned is not rules and not planned.local:
        planned = rules  # what cannot be planned by is asked once: it may answer otherwise the next time
    candidates = session.ask.node_rules.candidates(first, nodes, planned)
    if alone or not planned.local or _may_pipeline(session, first, candidates.rows):
        if planned is not rules:
            candidates = session.ask.node_rules.candidates(first, nodes, rules)
        placed = _place_best(session, statement, first, candidates, pipeline_only=False)
        return placed, not placed
    if not _is_within_capacity(session, first, candidates):
        return 0, True
    row = int(candidates.rows[0])
    count = _alike(session, tasks, start, row, rules)
    alike = tasks if count == len(tasks) else tasks[start : start + count]
    known = rules.extent_of_knowledge
    rows, in_order = _plan(session, alike, candidates, planned)
    if rules.extent_of_knowledge != known:
        # What nodes say with more on them depends on more about the first task.
        rows = rows[: session.ask.node_rules.alike(alike, 0, row, rules)]
    if planned is not rules or _goes_in_steps(session, rules):
        plan = [(task, session.nodes.info(row)) for task, row in zip(alike, rows, strict=False)]
        return _place_in_steps(session, statement, plan, nodes, rules)
    return _place_together(statement, alike, rows, in_order=in_order), False


def _goes_in_steps(session: Session, rules: TaskRules) -> bool:
    """Tell whether a placement may change what is answered about the next task, or must be heard of before it."""
    hooks = session.hooks
    if hooks.hears_of_each or hooks.bind_mutations or any(each.listens for each in rules.learned):
        return True
    return session.ask.pre_predicates.tell_apart and not session.ask.pre_predicates.are_steady


def _alike(session: Session, tasks: Sequence[PodInfo], start: int, row: int, rules: TaskRules) -> int:
    """Return how many tasks from ``start`` on get the same answers, from steady pre-predicates too."""
    count = session.ask.node_rules.alike(tasks, start, row, rules)
    asked = session.ask.pre_predicates
    if asked.tell_apart and not _goes_in_steps(session, rules):
        for position in range(1, count):
            if asked.refusal(tasks[start + position]) is not None or not asked.are_steady:
                return position
    return count


def _place_in_steps(
    session: Session, statement: Statement, plan: Sequence[tuple[PodInfo, NodeInfo]], nodes: NodeSet, rules: TaskRules
) -> tuple[int, bool]:
    """Place tasks one after the other where they were planned to go, until a plugin answers otherwise by then.

    The plan has the best node for each, so a predicate that is asked on the spot need not be asked about others.

    Return how many were placed, and whether the next one was refused.
    """
    with session.ask.announcing_later(plan[0][0].request):
        placed, refused = _follow(session, statement, plan, rules)
    if refused or placed == len(plan):
        return placed, refused
    task = plan[placed][0]
    candidates = session.ask.node_rules.candidates(task, nodes)
    found = _place_best(session, statement, task, candidates, pipeline_only=False)
    return placed + found, not found


def _follow(
    session: Session, statement: Statement, plan: Sequence[tuple[PodInfo, NodeInfo]], rules: TaskRules
) -> tuple[int, bool]:
    """Place tasks as planned while nobody objects; return how many were, and whether the next can go nowhere."""
    asked, judge = session.ask.pre_predicates, session.ask.node_rules
    on_the_spot, learned = rules.on_the_spot, tuple(rules.learned)
    for position, (task, node) in enumerate(plan):
        if position and asked.tell_apart and asked.refusal(task) is not None:
            return position, True
        as_planned = not position or judge.still_alike(task, plan[0][0], node.row, rules, learned)
        if not as_planned or not judge.takes_now(task, node, on_the_spot):
            return position, False
        statement.allocate(task, node)
    return len(plan), False


def _place_together(statement: Statement, tasks: Sequence[PodInfo], rows: Sequence[int], *, in_order: bool) -> int:
    """Place tasks where they were planned to go, in one operation; ``in_order`` says that equal rows are neighbours."""
    count = len(rows)
    if in_order:
        places = np.asarray(rows, dtype=np.intp)
        begins = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
        counts = np.diff(np.append(begins, count)).astype(np.int64)
        statement.allocate_many(tasks[:count], places[begins], counts)
        return count
    order = sorted(range(count), key=rows.__getitem__)
    used, counts = np.unique(np.array(rows, dtype=np.intp), return_counts=True)
    statement.allocate_many([tasks[each] for each in order], used, counts.astype(np.int64))
    return count


def _place_apart(session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet) -> int:
    """Put one task on each of the best nodes."""
    candidates = session.ask.node_rules.candidates(tasks[0], nodes)
    hosts = session.nodes.table.labels.column(HOSTNAME)[candidates.rows]
    unlike = len(distinct(hosts)) == len(hosts) and bool((hosts >= 0).all())
    if not unlike or _may_pipeline(session, tasks[0], candidates.rows):
        return int(_place_best(session, statement, tasks[0], candidates, pipeline_only=False))
    if not _is_within_capacity(session, tasks[0], candidates):
        return 0
    best = candidates.rows[np.argsort(-candidates.score, kind="stable")[: len(tasks)]]
    statement.allocate_many(tasks[: len(best)], best, np.ones(len(best), dtype=np.int64))
    return len(best)


def _place_next(
    session: Session, statement: Statement, tasks: Sequence[PodInfo], nodes: NodeSet, rules: TaskRules
) -> bool:
    """Put tasks where the last ones like them left off; return whether all found room there."""
    first = tasks[0]
    places = next_places(session, first, len(tasks), nodes, rules)
    if places is None:
        return False
    node = session.nodes.info(places[0][0])
    if not session.ask.is_task_allocation_on_node_over_capacity(first, node).ok:
        return False
    if len(tasks) == 1:
        statement.allocate(first, node)
    else:
        rows, counts = zip(*places, strict=True)
        statement.allocate_many(tasks, np.array(rows, dtype=np.intp), np.array(counts, dtype=np.int64))
    session.ask.kept_ranking.took(places)
    return True


def next_places(
    session: Session, task: PodInfo, count: int, nodes: NodeSet, rules: TaskRules
) -> list[tuple[int, int]] | None:
    """Return where ``count`` tasks like ``task`` go on from the last like them: rows, and how many go there.

    For tasks that follow others (:func:`may_follow`); ``None`` if not all are certain to find room there.
    """
    kept = session.ask.kept_ranking
    kind = (task.request.number, rules.signature, None if nodes is session.nodes.all else nodes)
    places = kept.next_rows(kind, count)
    if places is None:
        ranked = _ranked(session, task, max(AHEAD, count), nodes, rules)
        if ranked is None:
            return None
        kept.begin(kind, *ranked)
        places = kept.next_rows(kind, count)
    return places


def best_places(
    session: Session, task: PodInfo, count: int, nodes: NodeSet, rules: TaskRules
) -> list[tuple[int, int]] | None:
    """Return the same for tasks that fill the best nodes one after the other (:func:`may_fill`), but follow nobody."""
    ranked = _ranked(session, task, count, nodes, rules)
    if ranked is None:
        return None
    rows, room = ranked
    taken = first_of(room, count)
    if taken.sum() < count:
        return None
    (used,) = taken.nonzero()
    return list(zip(rows[used].tolist(), taken[used].tolist(), strict=True))


def _ranked(
    session: Session, task: PodInfo, wanted: int, nodes: NodeSet, rules: TaskRules
) -> tuple[Rows, Vector] | None:
    """Return the best ``wanted`` nodes for ``task``, and the room on each; ``None`` if something is being released."""
    candidates = session.ask.node_rules.candidates(task, nodes, rules)
    if _may_pipeline(session, task, candidates.rows):
        return None
    best = candidates.rows[_best(candidates, wanted)]
    return best, _room_for(session, task, best)


def _place_best(
    session: Session, statement: Statement, task: PodInfo, candidates: Candidates, *, pipeline_only: bool
) -> bool:
    """Put ``task`` on the best candidate that really takes it."""
    rows, now, score = candidates
    for position in _best_first(score):
        node = session.nodes.info(int(rows[position]))
        if not session.ask.is_task_allocation_on_node_over_capacity(task, node).ok:
            continue
        groups: tuple[str, ...] = ()
        fits_now = bool(now[position])
        if task.request.share is not None:
            choice = choose_devices(session, task, node)
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


def _plan(
    session: Session, tasks: Sequence[PodInfo], candidates: Candidates, rules: TaskRules
) -> tuple[list[int], bool]:
    """Return the row of each task, as far as there is room, and whether equal rows are neighbours."""
    if rules.monotone:
        return _fill(session, tasks, candidates, rules), True
    # By name again, as ties go to the first.
    best = np.sort(_best(candidates, len(tasks)))
    rows, score = candidates.rows[best], candidates.score[best]
    return [int(rows[place]) for place in best_of_each(session, tasks, rules, rows, score)], False


def _fill(session: Session, tasks: Sequence[PodInfo], candidates: Candidates, rules: TaskRules) -> list[int]:
    """Return the rows of tasks that fill the best nodes one after the other."""
    rows = candidates.rows[_best(candidates, len(tasks))]
    room = _room_for(session, tasks[0], rows)
    if not rules.only_room_limits:
        room = fill_ranked(session, tasks, rules, rows, room)
    found: list[int] = np.repeat(rows, first_of(room, len(tasks))).tolist()
    return found


def _best(candidates: Candidates, wanted: int) -> Rows:
    """Return the places of the best candidates, best first, ties by name; each takes a task, so no other is needed."""
    score = candidates.score
    if len(score) <= 4 * wanted:
        return np.argsort(-score, kind="stable")[:wanted]
    enough = np.flatnonzero(score >= np.partition(score, len(score) - wanted)[len(score) - wanted])
    return enough[np.argsort(-score[enough], kind="stable")[:wanted]]


def _room_for(session: Session, task: PodInfo, rows: Rows) -> Vector:
    """Return how many more tasks like ``task`` fit now on each row."""
    return pods_per_node(session.nodes.table.idle_at(task.request.columns, rows), task.request.amounts)


def _may_go_together(session: Session, tasks: Sequence[PodInfo]) -> bool:
    """Tell whether several of the tasks may be placed in one go, as far as can be told before rules are asked."""
    request, hooks = tasks[0].request, session.hooks
    if request.share is not None or request.constraints.claims or hooks.node_pre_order:
        return False
    if hooks.task_on_node_over_capacity and not hooks.task_on_node_over_capacity[0].alike:
        return False
    return not any(map(_NOMINATED, tasks)) and not any(map(_VIRTUAL, tasks))


def _are_only_apart(session: Session, tasks: Sequence[PodInfo], rules: TaskRules) -> bool:
    """Tell whether the tasks may not share a node, and nothing else is between them."""
    if not is_only_apart(tasks[0].request) or session.hooks.hears_of_each or session.ask.pre_predicates.tell_apart:
        return False
    predicates, scores = rules.asked
    if not all(each.rule.only_pod_rules for each in predicates):
        return False
    return all(each.rule.monotone or each.rule.only_pod_rules for each in scores)


def _follows_others(session: Session, tasks: Sequence[PodInfo], nodes: NodeSet, rules: TaskRules) -> bool:
    """Tell whether tasks go where any other of their class would, and leave everything as it is for the next."""
    if not may_follow(session, nodes, rules):
        return False
    if len(tasks) == 1:
        return True
    together = not _goes_in_steps(session, rules) and not session.ask.pre_predicates.tell_apart
    return together and session.ask.node_rules.alike(tasks, 0, 0, rules) == len(tasks)


def may_follow(session: Session, nodes: NodeSet, rules: TaskRules) -> bool:
    """Tell whether tasks that ``rules`` apply to fill ``nodes`` one after the other, gang after gang."""
    if nodes is not session.nodes.all and not isinstance(nodes, FirstChoice):
        return False
    return rules.by_class and may_fill(rules)


def may_fill(rules: TaskRules) -> bool:
    """Tell whether alike tasks that ``rules`` apply to fill nodes one after the other, by what is promised."""
    return rules.only_room_limits and rules.monotone and not any(True for _ in rules.learned)


def _may_pipeline(session: Session, task: PodInfo, rows: Rows) -> bool:
    """Tell whether something that the task asks for is being released on one of the rows."""
    if not session.nodes.table.may_release:
        return False
    releasing = session.nodes.table.releasing
    return any(bool(releasing[rows, column].any()) for column in task.request.columns.tolist())


def _is_within_capacity(session: Session, task: PodInfo, candidates: Candidates) -> bool:
    """Judge the queue's capacity once: only requests in GPU memory weigh differently on different nodes."""
    if len(candidates.rows) == 0:
        return False
    return session.ask.is_task_allocation_on_node_over_capacity(task, session.nodes.info(int(candidates.rows[0]))).ok


def _prepare(session: Session, task: PodInfo, nodes: NodeSet) -> None:
    if session.hooks.node_pre_order:
        session.ask.prepare_scoring(task, nodes)
