"""Allocate: place pending jobs on what is free, in order, queue by queue.

A job is placed as a whole or not at all; an elastic one then grows by one step at a time, queueing up again after each,
so that growth is fair between queues. A job that does not fit blocks nobody behind it.
"""

from collections.abc import Sequence
from typing import Final

from spinney.scheduler.actions.entry import pending_jobs
from spinney.scheduler.evaluation.turns import ALLOCATE, JobTurns, first_of_queues
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.results import OUT_OF_TIME, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.placement.failed_jobs import FailedSignatures
from spinney.scheduler.placement.placing import place_job
from spinney.scheduler.placement.plain_jobs import PlainJobs
from spinney.scheduler.victims.requests import honour_requests, waiting_jobs

FEWEST: Final = 1000
"""So many jobs are tried in every cycle: if that takes very long a plugin is slow, which readiness tells."""
NOT_REACHED: Final = (
    "the time for placing jobs (allocateSeconds) was over before the turn of this one; it comes first in the next cycle"
)


def allocate_jobs(session: Session) -> None:
    """Place what fits."""
    _serve_waiting(session)
    jobs = first_of_queues(session, ALLOCATE, pending_jobs(session))
    turns = JobTurns(session, ALLOCATE, jobs, lambda: session.monotonic() > end, at_least=FEWEST)
    end = session.monotonic() + session.config.allocate_seconds
    session.waiting = turns
    try:
        _take_turns(session, turns)
    finally:
        session.waiting = None
    for job in turns.missed:
        session.record_fit_error(job, FitError(OUT_OF_TIME, NOT_REACHED))


def _take_turns(session: Session, turns: JobTurns) -> None:
    """Try each job when its turn comes."""
    shared = session.config.use_scheduling_signatures and session.hooks.place_alike
    failed = FailedSignatures(session.nodes) if shared else None
    plain = PlainJobs(session, turns)
    for job in turns:
        known = failed.find(job) if failed is not None else None
        if known is not None:
            for error in known:
                session.record_fit_error(job, error.about(job))
            session.ask.job_refused(job)
            continue
        placed: bool | None = None
        why: Sequence[FitError] = ()
        failures = session.failures.total
        with session.bulkhead(job.key, "placing"):
            if together := plain.place(job):
                _started(session, together)
                placed = True
            else:
                placed = _allocate(session, job)
            if not placed:
                session.record_failures(job, failures)
                why = tuple(session.fit_errors.get(job.key, ()))  # what plugins add is about this job alone
                session.ask.job_refused(job)
        if placed and failed is not None:
            failed.decided()
        if placed and job.pending:
            turns.push(job)
        elif placed is False and failed is not None and session.failures.total == failures:
            # What failed may have failed about this job alone.
            failed.add(job, why)


def _serve_waiting(session: Session) -> None:
    """Try jobs whose victims were asked to go on what is free, first of all; for the others their place is kept."""
    waiting = waiting_jobs(session)
    if not waiting:
        return
    for job in [job for job in pending_jobs(session, recorded=False) if job.key in waiting]:
        with session.bulkhead(job.key, "placing"):
            _allocate(session, job)
    honour_requests(session)


def _allocate(session: Session, job: PodGroupInfo) -> bool:
    """Try to place the next tasks of a job; return whether that was done."""
    had_placed = any(job.active(pod_set) for pod_set in job.gang.pod_sets.values())
    statement = session.statement()
    if not place_job(session, statement, job):
        statement.discard()
        return False
    if not len(statement):
        raise RuntimeError("nothing was placed, though nothing was refused; was the list of its pods changed?")
    if job.should_pipeline:
        statement.convert_all_allocated_to_pipelined(job)
    statement.commit()
    if job.has_pipelined or had_placed:
        session.fit_errors.pop(job.key, None)
    else:
        _started(session, (job,))
    return True


def _started(session: Session, jobs: Sequence[PodGroupInfo]) -> None:
    """Note that jobs got their first pods."""
    for job in jobs:
        session.fit_errors.pop(job.key, None)
        job.last_start = session.now
        session.started.append(job.key)
