"""Victims that are asked before they go, in a session: what was asked counts, and what stands is settled at its end.

A pod that was asked counts as terminating, so the job it goes for is placed on what it will leave, first of its queue,
and nobody else is. At the end of the session each request is looked at again. It is withdrawn if the job is gone or has
no need of it any more; it stands while a gang has time left and has not said that it is ready; and when the last of the
job's victims is ready, or its time is over, they are all evicted together. So nobody goes for nothing, and a gang that
was ready early goes on working meanwhile.

All that is remembered is on the pods themselves: a scheduler that starts in between goes on where another ended.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from spinney.cluster.resources import padded
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Holding
from spinney.gangs.checkpoints import Asked, EvictionRequest, Withdrawn, end_of, grace_within, may_go, request
from spinney.gangs.tree import GangKey
from spinney.scheduler.evaluation.turns import ALLOCATE
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.results import Eviction
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo


class Settlement(msgspec.Struct, frozen=True):
    """What a session leaves to be done about its victims."""

    evictions: Sequence[Eviction]
    """Of pods that go now."""
    asked: Sequence[Asked] = ()
    """To be asked."""
    withdrawn: Sequence[Withdrawn] = ()


Requests = Sequence[tuple[PodInfo, EvictionRequest]]
"""Tasks and what they were asked."""


def waiting_jobs(session: Session) -> frozenset[GangKey]:
    """Return the jobs whose victims were asked to go."""
    asked = session.snapshot.asked.values()
    return frozenset(found.beneficiary for requests in asked for found in requests.values())


def honour_requests(session: Session) -> None:
    """Have the pods that were asked count as terminating, and keep the places of those that are moved."""
    for beneficiary, tasks in _by_beneficiary(session).items():
        waits = beneficiary in session.snapshot.gangs.gangs and session.job(beneficiary).pending
        if not waits or not _keeps_moves(session, tasks):
            continue  # the end of the session takes them back
        statement = session.statement()
        for task, _ in tasks:
            if task.status in ACTIVE_ALLOCATED:
                statement.ask(task)
        statement.commit()


def settle_requests(session: Session, *, asks: bool) -> Settlement:
    """Return which pods go, are to be asked, or need not go; without ``asks`` all that were chosen go at once."""
    standing = _by_beneficiary(session)
    going, asked = _chosen(session, standing) if asks else (session.evictions, [])
    chosen = {eviction.pod for eviction in session.evictions}
    evictions: list[Eviction] = list(going)
    withdrawn: list[Withdrawn] = []
    for beneficiary, tasks in standing.items():
        staying = [
            (task, found) for task, found in tasks if task.record.status in ACTIVE_ALLOCATED and task.key not in chosen
        ]
        why = _why_not_needed(session, beneficiary, staying) if staying else None
        if why is not None:
            withdrawn += [Withdrawn(Asked(task.key, task.uid, task.job.key, found), why) for task, found in staying]
        elif _is_tried(session, beneficiary) and all(_may_go(session, task, found) for task, found in staying):
            for task, found in staying:
                said = {"message": found.message, "action": found.action, "moves_to": found.moves_to}
                evictions.append(Eviction.of(task, task.record.node, found.beneficiary, **said))
    return Settlement(evictions, asked, withdrawn)


def _by_beneficiary(session: Session) -> dict[GangKey, Requests]:
    """Return the tasks that were asked, terminating ones included, by the job they go for."""
    found: dict[GangKey, list[tuple[PodInfo, EvictionRequest]]] = {}
    for gang, requests in session.snapshot.asked.items():
        if gang not in session.snapshot.gangs.gangs:
            continue
        for task in session.job(gang).tasks:
            if task.key in requests:
                found.setdefault(requests[task.key].beneficiary, []).append((task, requests[task.key]))
    return dict(found)


def _keeps_moves(session: Session, tasks: Requests) -> bool:
    """Keep the places that moved pods were promised; tell whether all of them are still there."""
    table = session.nodes.table
    kept: list[tuple[int, PodInfo]] = []
    for task, found in tasks:
        if not found.moves_to or task.request.share is not None or task.request.constraints.claims:
            continue
        row = table.find(found.moves_to)
        amounts = padded(task.request.requests, table.axis.width)
        there = row is not None and not table.unschedulable[row] and table.ready[row]
        if row is None or not there or (amounts > table.idle[row] + table.releasing[row]).any():
            for taken, held in kept:
                session.ledger.remove(taken, held.request, Holding.PIPELINED)
            return False
        session.ledger.add(row, task.request, Holding.PIPELINED)
        kept.append((row, task))
    return True


def _chosen(session: Session, standing: Mapping[GangKey, Requests]) -> tuple[list[Eviction], list[Asked]]:
    """Return which of the pods chosen in this session go at once, and which are asked.

    The victims of one job go together, so one gang that is given time gives it to all of them.
    """
    most = timedelta(seconds=session.config.max_checkpoint_grace_seconds)
    gangs = {eviction.gang for eviction in session.evictions}
    graces = {gang: grace_within(session.job(gang).members, most) for gang in gangs}
    asking = {each.beneficiary for each in session.evictions if graces[each.gang]} | standing.keys()
    going, asked = [], []
    for each in session.evictions:
        if each.beneficiary is None or each.beneficiary not in asking or each.beneficiary == each.gang:
            going.append(each)
            continue
        found = request(
            each.beneficiary,
            now=session.now,
            grace=graces[each.gang],
            message=each.message,
            action=each.action,
            moves_to=each.moves_to,
        )
        session.wake_at(found.by)
        asked.append(Asked(each.pod, each.uid, each.gang, found))
    return going, asked


def _is_tried(session: Session, beneficiary: GangKey) -> bool:
    """Tell whether this session has looked at a job at all; what it has not looked at says nothing."""
    unreached = beneficiary in session.overdue.get(ALLOCATE, frozenset())
    return not session.unopened and not unreached and session.setbacks.of(beneficiary, session.now) is None


def _why_not_needed(session: Session, beneficiary: GangKey, staying: Requests) -> str | None:
    """Return why a job has no need any more of what pods would leave, or ``None`` if it has."""
    if beneficiary not in session.snapshot.gangs.gangs:
        return f"job {beneficiary} is gone"
    if not _is_tried(session, beneficiary):
        return None
    job = session.job(beneficiary)
    if not job.pending and not job.has_pipelined:
        return f"job {beneficiary} has found another place"
    if any(task.status in ACTIVE_ALLOCATED for task, _ in staying):
        return f"the places that were found for the sake of job {beneficiary} are not there any more"
    by_row: dict[int, list[PodInfo]] = {}
    for task, _ in staying:
        by_row.setdefault(task.row, []).append(task)
    if not any(_is_used(session, job, row, leaving) for row, leaving in by_row.items()):
        return f"job {beneficiary} has no use for the place any more"
    return None


def _is_used(session: Session, job: PodGroupInfo, row: int, leaving: Sequence[PodInfo]) -> bool:
    """Tell whether a job is promised room on a node that is only there when ``leaving`` are gone."""
    promised = [task for task in job.tasks if task.status is PodStatus.PIPELINED and task.row == row]
    if not promised or row == NOWHERE:
        return False
    if any(task.request.share is not None or task.request.constraints.claims for task in (*promised, *leaving)):
        return True  # devices are not told apart by sums
    table = session.nodes.table
    left = table.idle[row] + table.releasing[row]
    for task in leaving:
        left = left - padded(task.request.requests, table.axis.width)
    return bool((left < 0).any())


def _may_go(session: Session, task: PodInfo, found: EvictionRequest) -> bool:
    """Tell whether a pod need not be waited for any more; says when its time ends."""
    most = timedelta(seconds=session.config.max_checkpoint_grace_seconds)
    if may_go(task.job.members, found, now=session.now, most=most):
        return True
    session.wake_at(end_of(found, now=session.now, most=most))
    return False
