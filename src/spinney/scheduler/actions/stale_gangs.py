"""Stale gang eviction: a gang that has been below its minimum for too long gives up what it still holds.

When a gang became stale is written on the gang or remembered from cycle to cycle; one seen stale for the first time is
stale from now on. Gangs that an operator looks after are left to it, and so are gangs of which some pod has succeeded.
"""

from collections.abc import Collection
from datetime import timedelta

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session


def evict_stale_gangs(session: Session) -> None:
    """Evict what stale gangs hold, once their grace is over."""
    snapshot, remembered = session.snapshot.gangs, session.stale_since
    suspects = _suspects(session)
    for key in [key for key in remembered if key not in suspects]:
        del remembered[key]
    for key in suspects:
        if snapshot.gangs[key].gang.owned_by_operator or session.setbacks.of(key, session.now) is not None:
            continue
        with session.bulkhead(key, "looking at"):
            job = session.job(key)
            if not job.stale:
                remembered.pop(key, None)
            elif _is_grace_over(session, job):
                _evict(session, job)


def _suspects(session: Session) -> Collection[GangKey]:
    """Return the gangs that may be stale: those that the book counts as broken, and those with pods that are stuck."""
    snapshot = session.snapshot.gangs
    if not session.are_counts_exact:
        return snapshot.gangs
    if not session.stuck:
        return snapshot.broken
    held_up = [key for key, gang in snapshot.gangs.items() if not gang.pods.keys().isdisjoint(session.stuck)]
    return {**dict.fromkeys(snapshot.broken), **dict.fromkeys(held_up)}


def _is_grace_over(session: Session, job: PodGroupInfo) -> bool:
    grace = job.gang.staleness_grace
    if grace is None:
        grace = timedelta(seconds=session.config.default_staleness_grace_seconds)
    if grace < timedelta(0):
        return False
    since = job.gang.stale_since or session.stale_since.setdefault(job.key, session.now)
    session.wake_at(since + grace)
    return session.now - since >= grace


def _evict(session: Session, job: PodGroupInfo) -> None:
    needed = ", ".join(f"{pod_set.min_member} of {name}" for name, pod_set in job.gang.pod_sets.items())
    message = f"job {job.key} has been below its minimum for longer than its grace period; it needs {needed}"
    statement = session.statement()
    for task in job.tasks:
        if task.status in ACTIVE_ALLOCATED:
            statement.evict(task, message)
    statement.commit()
