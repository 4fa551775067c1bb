"""Which jobs an action looks at, and why others are left out."""

from collections.abc import Iterator

from spinney.api.podgang import CONSTRAINT_NOT_HONOURED
from spinney.gangs.tree import GangKey
from spinney.scheduler.evaluation.constraints import unhonoured
from spinney.scheduler.framework.jobs import READY, PodGroupInfo
from spinney.scheduler.framework.results import NOT_READY, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.rule import VictimRule
from spinney.scheduler.victims.searching import search_victims


def pending_jobs(session: Session, *, recorded: bool = True) -> Iterator[PodGroupInfo]:
    """Return the jobs that have pods to place and enough pods to start; for the others the reason is recorded.

    ``recorded=False`` is for actions after the first: the reasons are there already.
    """
    for key in session.snapshot.gangs.pending:
        ready: PodGroupInfo | None = None
        with session.bulkhead(key, "looking at"):
            ready = _ready(session, key, recorded=recorded)
        if ready is not None:
            yield ready


def search_for_pending(session: Session, *, rule: VictimRule) -> None:
    """Search victims for the jobs that have pods to place, unless nobody may be disturbed."""
    if rule.most_jobs(session) != 0:
        search_victims(session, rule, list(pending_jobs(session, recorded=False)))


def _ready(session: Session, key: GangKey, *, recorded: bool) -> PodGroupInfo | None:
    """Return a job that can be tried now."""
    setback = session.setbacks.of(key, session.now)
    if setback is not None:
        session.fit_errors[key] = [setback.error]
        session.wake_at(setback.until)
        return None
    job = session.job(key)
    if not job.pending:
        return None
    obstacle = _obstacle(session, job)
    if obstacle is not None and recorded:
        session.record_fit_error(job, obstacle)
    return job if obstacle is None else None


def _obstacle(session: Session, job: PodGroupInfo) -> FitError | None:
    """Return what keeps a job from being tried at all."""
    queues, queue = session.queues, job.gang.queue
    position = queues.index.get(queue)
    if position is not None and not queues.is_leaf(position):
        message = f"queue {queue} has child queues, so jobs cannot be in it; name one of its leaf queues"
    elif position is None and queue in queues.dropped:
        message = f"queue {queue} is not usable: {queues.dropped[queue]}"
    elif position is None:
        message = f"queue {queue} does not exist"
    elif job.gang.problem:
        return FitError("InvalidPodGroup", job.gang.problem)
    elif not job.ready:
        return FitError(NOT_READY, _not_ready(job))
    elif (unmet := unhonoured(session, job)) is not None:
        return FitError(CONSTRAINT_NOT_HONOURED, unmet)
    else:
        return None
    return FitError("QueueDoesNotExist", message)


def _not_ready(job: PodGroupInfo) -> str:
    ready = job.count_in(READY)
    short = [
        f"{name} has {ready(pod_set)} of {pod_set.min_member} pods"
        for name, pod_set in job.gang.pod_sets.items()
        if ready(pod_set) < pod_set.min_member
    ]
    return f"too few pods exist or are ready to be scheduled: {', '.join(short) or 'too few groups'}"
