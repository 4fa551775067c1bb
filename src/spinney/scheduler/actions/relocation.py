"""Relocation: a broken gang that cannot be repaired where it is gives its places up and is moved whole.

A gang that lost pods, because a node failed or was drained, gets them back in the domain it lies in: what is left of it
decides where a required constraint holds. Where that domain has no room for them the gang would stay broken for as long
as the rest of it runs, which without its minimum does nothing. So the rest is evicted, if the whole gang fits somewhere
else, disruption budgets allow it, and only then. Gangs that must share a domain with it (the scaled gangs of a set)
move along.

It runs before others are disturbed: a broken gang that restarts loses nothing more, and the healthy ones that would
make room for it do. One that waits for pods that are on their way, or whose last bind is, is left alone.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler.actions.entry import pending_jobs
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.placement.placing import promise_job
from spinney.scheduler.victims.pool import is_just_bound

log = structlog.get_logger()

_GOING: Final = frozenset({PodStatus.RELEASING, PodStatus.PIPELINED})


def relocate_broken_gangs(session: Session) -> None:
    """Move the broken gangs that nothing else could help."""
    refused = _refused_in_part(session)
    if not refused:
        return
    waiting = pending_jobs(session, recorded=False)
    broken = [job for job in waiting if job.key in refused and _is_stranded(job)]
    if not broken:
        return
    followers = _followers(session)
    for job in sorted(broken, key=session.ask.job_key):
        with session.bulkhead(job.key, "moving"):
            _move(session, [job, *followers.get(job.key, ())])


def _refused_in_part(session: Session) -> set[GangKey]:
    """Return the gangs that were refused room in this session for some of their pods only."""
    gangs = session.snapshot.gangs.gangs
    return {key for key in session.fit_errors if key in gangs and gangs[key].pending < len(gangs[key].pods)}


def _is_stranded(job: PodGroupInfo) -> bool:
    """Tell whether a gang that must share a domain has pods on nodes, too few of them, and none on their way."""
    if not job.root.bound_to_domains or job.has_pipelined or job.gang_satisfied:
        return False
    placed = [task for task in job.tasks if task.status in ACTIVE_ALLOCATED]
    return bool(placed) and not any(map(is_just_bound, placed))


def _followers(session: Session) -> dict[GangKey, list[PodGroupInfo]]:
    """Return the gangs that hold something in the domain of another, by that other."""
    found: dict[GangKey, list[PodGroupInfo]] = {}
    for key, members in session.snapshot.gangs.gangs.items():
        if members.gang.anchor is not None and session.job(key).holds_anything:
            found.setdefault(members.gang.anchor, []).append(session.job(key))
    return found


def _move(session: Session, jobs: Sequence[PodGroupInfo]) -> None:
    """Evict what jobs hold, if all of them then find room."""
    broken = jobs[0]
    lost = sum(task.should_allocate for task in broken.tasks)
    message = f"gang {broken.key} is moved whole: where it runs there is no room for {lost} pods that it lacks"
    statement = session.statement()
    for job in jobs:
        for task in job.tasks:
            if task.status in ACTIVE_ALLOCATED:
                statement.evict(task, message, beneficiary=broken.key)
    if not all(_place(session, statement, job) for job in jobs):
        statement.discard()
        return
    evicted = [task.record for job in jobs for task in job.tasks if task.record.node and task.status in _GOING]
    refusal = session.snapshot.budgets.refusal(evicted)
    if refusal is not None:
        log.info("gang not moved", gang=str(broken.key), reason=refusal)
        statement.discard()
        return
    statement.commit()
    session.snapshot.budgets.spend(evicted)
    session.fit_errors.pop(broken.key, None)
    session.victim_reports.pop(broken.key, None)
    log.info("gang moved whole", gang=str(broken.key), gangs=len(jobs), pods=len(evicted))


def _place(session: Session, statement: Statement, job: PodGroupInfo) -> bool:
    """Promise a job as many places as it had or needs; tell whether it has its minimum."""
    while job.tasks_to_allocate():
        checkpoint = statement.checkpoint()
        if not promise_job(session, statement, job):
            statement.rollback(checkpoint)
            break
    return job.gang_satisfied
