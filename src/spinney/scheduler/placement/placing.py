"""Placing a job: its tree from the root down, node set by node set, task by task.

A group set is tried on each of its node sets in turn; inside one, all members with tasks are placed in order. A pod set
is tried on each of its node sets in turn; inside one, all its tasks are placed in order. Whatever fails is rolled back
to where that attempt began.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from spinney.gangs.tree import GroupSet, Member, PodSet
from spinney.scheduler.decisions import SubsettingFailed
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.nodes import NodeSet
from spinney.scheduler.placement.filling import place_run
from spinney.scheduler.placement.refusal import refusal_of
from spinney.scheduler.results import FitError
from spinney.scheduler.session import Session
from spinney.scheduler.statement import Statement
from spinney.scheduler.tasks import PodInfo


@dataclass(slots=True)
class Attempt:
    """One attempt to place a job; ``recorded`` keeps the reasons, ``pipeline_only`` gives promises, not nodes."""

    session: Session
    statement: Statement
    job: PodGroupInfo
    pipeline_only: bool = False
    recorded: bool = True

    def refuse(self, reason: str, message: str, details: object = None) -> bool:
        """Record why the job does not fit; return ``False``."""
        if self.recorded:
            self.session.record_fit_error(self.job, FitError(reason, message, details))
        return False


def place_job(
    session: Session,
    statement: Statement,
    job: PodGroupInfo,
    nodes: NodeSet,
    *,
    pipeline_only: bool = False,
    simulated: bool = False,
) -> bool:
    """Place the next tasks of ``job`` on ``nodes``; on failure the caller discards the statement.

    ``simulated`` keeps no reasons; ``pipeline_only`` promises nodes instead of giving them.
    """
    attempt = Attempt(session, statement, job, pipeline_only=pipeline_only, recorded=not simulated)
    if attempt.recorded:
        session.fit_errors.pop(job.key, None)
    session.pre_job_allocation(job)
    tasks = job.tasks_to_allocate()
    if not tasks:
        return attempt.refuse("NothingToAllocate", "no pod of the job can be placed now")
    verdict = session.is_job_over_capacity(job, tasks)
    if not verdict.ok:
        return attempt.refuse(verdict.reason, verdict.message, verdict.details)
    try:
        return _place_group(attempt, job.root, tasks, nodes)
    except SubsettingFailed as error:
        return attempt.refuse("PluginError", str(error))


def _place_group(attempt: Attempt, group: GroupSet, tasks: Sequence[PodInfo], nodes: NodeSet) -> bool:
    session, statement, job = attempt.session, attempt.statement, attempt.job
    by_set = _by_pod_set(tasks)
    for node_set in session.subset_nodes(job, group, tasks, nodes):
        checkpoint = statement.checkpoint()
        if all(_place_member(attempt, member, by_set, node_set) for member in job.ordered(group)):
            return True
        statement.rollback(checkpoint)
    return False


def _place_member(attempt: Attempt, member: Member, by_set: dict[str, list[PodInfo]], nodes: NodeSet) -> bool:
    tasks = [task for pod_set in member.pod_sets() for task in by_set.get(pod_set.name, ())]
    if not tasks:
        return True
    if isinstance(member, GroupSet):
        return _place_group(attempt, member, tasks, nodes)
    return _place_pod_set(attempt, member, tasks, nodes)


def _place_pod_set(attempt: Attempt, pod_set: PodSet, tasks: list[PodInfo], nodes: NodeSet) -> bool:
    session, statement = attempt.session, attempt.statement
    nearest: tuple[int, FitError] | None = None
    for node_set in session.subset_nodes(attempt.job, pod_set, tasks, nodes):
        checkpoint = statement.checkpoint()
        placed, failed = _place_tasks(attempt, tasks, node_set)
        if failed is None:
            return True
        if attempt.recorded and (nearest is None or placed > nearest[0]):
            nearest = (placed, refusal_of(session, pod_set, failed, placed, node_set))
        statement.rollback(checkpoint)
    if nearest is not None:
        session.record_fit_error(attempt.job, nearest[1])
    return False


def _place_tasks(attempt: Attempt, tasks: list[PodInfo], nodes: NodeSet) -> tuple[int, PodInfo | None]:
    """Place tasks in order, identical ones together; return how many found a node, and the first that found none."""
    placed = 0
    for _, run in groupby(tasks, key=lambda task: task.request.number):
        alike = list(run)
        done = place_run(attempt.session, attempt.statement, alike, nodes, pipeline_only=attempt.pipeline_only)
        placed += done
        if done < len(alike):
            return placed, alike[done]
    return placed, None


def _by_pod_set(tasks: Sequence[PodInfo]) -> dict[str, list[PodInfo]]:
    found: dict[str, list[PodInfo]] = {}
    for task in tasks:
        found.setdefault(task.pod_set.name, []).append(task)
    return found
