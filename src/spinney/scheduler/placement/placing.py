"""Placing a job: its tree from the root down, node set by node set, task by task.

A group set is tried on each of its node sets in turn; inside one, all members with tasks are placed in order. A pod set
is tried on each of its node sets in turn; inside one, all its tasks are placed in order. Whatever fails is rolled back
to where that attempt began.

That is greedy: a choice is not revisited because something later fails. Where it fails for a gang that may fit all the
same, a second attempt places what is largest first and does revisit choices of node sets, a bounded number of times.
The two differ only for gangs of unlike pods, or of several constrained parts; what greed finds is never changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np

from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.explain.amounts import listed
from spinney.gangs.tree import DEFAULT_POD_SET, GroupSet, Member, PodSet
from spinney.scheduler.evaluation.questions import SubsettingFailed
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.results import (
    NO_NODES_LEFT,
    NOTHING_TO_ALLOCATE,
    PLUGIN_ERROR,
    POD_SCHEDULING_ERRORS,
    FitError,
)
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.tasks import NUMBER, PodInfo, by_request
from spinney.scheduler.placement.filling import place_run

_NO_MORE: Final = object()
_TO_PLACE: Final = ACTIVE_ALLOCATED | {PodStatus.PENDING}
REVISIONS: Final = 128
"""How many choices of a node set a search may revisit."""


@dataclass(slots=True)
class Attempt:
    """One attempt to place a job.

    ``simulated`` gives promises instead of nodes, ``revisions`` is how many choices may still be revisited,
    ``largest_first`` leaves the order of tasks to their size.
    """

    session: Session
    statement: Statement
    job: PodGroupInfo
    simulated: bool = False
    revisions: int = 0
    largest_first: bool = False

    @property
    def recorded(self) -> bool:
        """Tell whether reasons are kept: those of the first attempt in earnest."""
        return not (self.simulated or self.largest_first)

    def refuse(self, reason: str, message: str, details: object = None) -> bool:
        """Record why the job does not fit; return ``False``."""
        if self.recorded:
            self.session.record_fit_error(self.job, FitError(reason, message, details))
        return False


def place_job(session: Session, statement: Statement, job: PodGroupInfo) -> bool:
    """Place the next tasks of ``job``; on failure the caller discards the statement."""
    attempt = Attempt(session, statement, job)
    session.fit_errors.pop(job.key, None)
    if _attempt(attempt):
        return True
    if job.key not in session.fit_errors:  # it was tried on no node set, and nobody said why
        dividers = [*session.ask.dividers.get(job.key, ())]
        leave = "plugin {} leaves" if len(dividers) == 1 else "plugins {} leave"
        attempt.refuse(NO_NODES_LEFT, f"{leave.format(listed(dividers))} no nodes for it")
    return False


def promise_job(
    session: Session, statement: Statement, job: PodGroupInfo, tasks: Sequence[PodInfo] | None = None
) -> bool:
    """Promise the next tasks of ``job``, or those given, nodes to see whether they fit, which keeps no reasons."""
    attempt = Attempt(session, statement, job, simulated=True)
    with session.keeping_no_reasons():
        return _attempt(attempt, tasks)


def _attempt(attempt: Attempt, tasks: Sequence[PodInfo] | None = None) -> bool:
    """Try greed first, then a search where one is worth it; return whether the tasks were placed."""
    session, statement, job = attempt.session, attempt.statement, attempt.job
    session.ask.pre_job_allocation(job)
    tasks = job.tasks_to_allocate() if tasks is None else tasks
    if not tasks:
        return attempt.refuse(NOTHING_TO_ALLOCATE, "no pod of the job can be placed now")
    verdict = session.ask.is_job_over_capacity(job, tasks)
    if not verdict.ok:
        return attempt.refuse(verdict.reason, verdict.message, verdict.details)
    checkpoint = statement.checkpoint()
    try:
        if _succeeds(attempt, tasks):
            return True
        if not session.config.backtracking or not _is_worth_a_search(session, job, tasks):
            return False
        statement.rollback(checkpoint)
        return _succeeds(replace(attempt, revisions=REVISIONS, largest_first=True), tasks)
    except SubsettingFailed as error:
        return attempt.refuse(PLUGIN_ERROR, str(error))


def _succeeds(attempt: Attempt, tasks: Sequence[PodInfo]) -> bool:
    ways = _placements(attempt, attempt.job.root, _by_pod_set(attempt.job, tasks), attempt.session.nodes.all)
    return next(ways, _NO_MORE) is not _NO_MORE


def _placements(attempt: Attempt, member: Member, by_set: dict[str, list[PodInfo]], nodes: NodeSet) -> Iterator[None]:
    """Place a part of the job in one way after the other, each undone before the next."""
    tasks = _tasks_of(member, by_set)
    if not tasks:
        yield
        return
    statement = attempt.statement
    nearest: tuple[int, FitError] | None = None
    for node_set in attempt.session.ask.subset_nodes(attempt.job, member, tasks, nodes):
        checkpoint = statement.checkpoint()
        if isinstance(member, GroupSet):
            yield from _together(attempt, _in_order(attempt, member, by_set), by_set, node_set)
        else:
            placed, failed = _place_tasks(attempt, tasks, node_set)
            if failed is None:
                yield
            elif attempt.recorded and (nearest is None or placed > nearest[0]):
                nearest = (placed, _refusal(attempt.session, member, failed, placed))
        statement.rollback(checkpoint)
    if nearest is not None:
        attempt.session.record_fit_error(attempt.job, nearest[1])


def _refusal(session: Session, pod_set: PodSet, task: PodInfo, found: int) -> FitError:
    """Return that ``task``, after ``found`` others of its pod set found room, found none.

    What nodes lack is explained once, when the attempt is over (:mod:`spinney.scheduler.cycle.explaining`).
    """
    place = _alike(task.job, pod_set, task.request.number).index(task)
    ruled_out = session.ask.pre_predicates.said(task) is not None
    below = pod_set.min_member > 1 and task.job.active(pod_set) < pod_set.min_member

    def about(job: PodGroupInfo) -> str:
        other = _alike(job, pod_set, task.request.number)[place]
        why = (
            session.ask.pre_predicates.said(other) if ruled_out else None
        ) or "no nodes with enough resources were found"
        if below:
            where = "" if pod_set.name == DEFAULT_POD_SET else f" of sub-group {pod_set.name}"
            why = f"Resources were found for {found} pods{where} while {pod_set.min_member} are required. {why}"
        return f"{other.namespace}/{other.name}: {why}"

    return FitError(POD_SCHEDULING_ERRORS, about(task.job), rewrite=about)


def _alike(job: PodGroupInfo, pod_set: PodSet, request: int) -> list[PodInfo]:
    """Return the tasks of a pod set that make one request and are to be placed, or have just been."""
    return [
        task for task in job.by_pod_set[pod_set.name] if task.request.number == request and task.status in _TO_PLACE
    ]


def _together(
    attempt: Attempt, members: Sequence[Member], by_set: dict[str, list[PodInfo]], nodes: NodeSet
) -> Iterator[None]:
    """Place all members in one way after the other; a greedy attempt takes the first way of each.

    Not by calling itself: a group may have more members than calls can be nested.
    """
    if not members:
        yield
        return
    ways = [_placements(attempt, members[0], by_set, nodes)]
    while ways:
        if next(ways[-1], _NO_MORE) is _NO_MORE:
            ways.pop()
        elif len(ways) < len(members):
            ways.append(_placements(attempt, members[len(ways)], by_set, nodes))
            continue
        else:
            yield
        # Another way of the member before, or of the last, revises a choice.
        attempt.revisions -= 1
        if attempt.revisions < 0:
            return


def _place_tasks(attempt: Attempt, tasks: list[PodInfo], nodes: NodeSet) -> tuple[int, PodInfo | None]:
    """Place tasks in order, identical ones together; return how many found a node, and the first that found none."""
    if attempt.largest_first:
        tasks = sorted(tasks, key=_size, reverse=True)
    placed = 0
    for alike in _runs(tasks):
        done = place_run(attempt.session, attempt.statement, alike, nodes, pipeline_only=attempt.simulated)
        placed += done
        if done < len(alike):
            return placed, alike[done]
    return placed, None


def _runs(tasks: list[PodInfo]) -> Iterator[list[PodInfo]]:
    """Yield stretches of tasks that ask for the same; mostly there is one."""
    if len(set(map(NUMBER, tasks))) == 1:
        yield tasks
        return
    for _, run in groupby(tasks, key=NUMBER):
        yield list(run)


def _in_order(attempt: Attempt, group: GroupSet, by_set: dict[str, list[PodInfo]]) -> Sequence[Member]:
    members = attempt.job.ordered(group)
    if not attempt.largest_first:
        return members

    def largest(member: Member) -> tuple[int, int]:
        tasks = _tasks_of(member, by_set)
        return max((_size(task) for task in tasks), default=(0, 0))

    return sorted(members, key=largest, reverse=True)


def _size(task: PodInfo) -> tuple[int, int]:
    """Return what makes a task hard to place: its GPUs, then everything else it asks for, roughly."""
    request = task.request
    return request.gpus, int(request.requests.sum())


def _is_worth_a_search(session: Session, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> bool:
    """Tell whether another order could help at all: pods are unlike, or several parts compete, and the sum fits."""
    requests = by_request(tasks)
    parts = {task.pod_set.name for task in tasks}
    if len(requests) == 1 and not (len(parts) > 1 and job.root.divided):
        return False
    table = session.nodes.table
    wanted = np.zeros(table.idle.shape[1], dtype=np.int64)
    for request, alike in requests.items():
        wanted += len(alike) * request.vector(len(wanted))
    rows = session.nodes.all.rows
    free = table.idle[rows].sum(axis=0) + table.releasing[rows].sum(axis=0)
    return bool((wanted <= free).all())


def _tasks_of(member: Member, by_set: dict[str, list[PodInfo]]) -> list[PodInfo]:
    """Return the tasks of a part of the job: the very list where one pod set has them all."""
    found = [by_set[pod_set.name] for pod_set in member.pod_sets() if pod_set.name in by_set]
    return found[0] if len(found) == 1 else [task for tasks in found for task in tasks]


def _by_pod_set(job: PodGroupInfo, tasks: Sequence[PodInfo]) -> dict[str, list[PodInfo]]:
    if len(job.gang.pod_sets) == 1:
        return {tasks[0].pod_set.name: tasks if isinstance(tasks, list) else list(tasks)}
    found: dict[str, list[PodInfo]] = {}
    for task in tasks:
        found.setdefault(task.pod_set.name, []).append(task)
    return found
