"""Which jobs an action looks at, and why others are left out."""

from collections.abc import Iterable, Iterator

from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.results import FitError
from spinney.scheduler.session import Session


def jobs_in_leaf_queues(
    session: Session, jobs: Iterable[PodGroupInfo], *, recorded: bool = True
) -> Iterator[PodGroupInfo]:
    """Return the jobs whose queue can hold jobs; for the others the reason is recorded, unless it was before."""
    queues = session.queues
    for job in jobs:
        position = queues.index.get(job.queue)
        if position is not None and queues.is_leaf(position):
            yield job
            continue
        if not recorded:
            continue
        if position is not None:
            message = f"queue {job.queue} has child queues, so jobs cannot be in it; name one of its leaf queues"
        elif job.queue in queues.dropped:
            message = f"queue {job.queue} is not usable: {queues.dropped[job.queue]}"
        else:
            message = f"queue {job.queue} does not exist"
        session.record_fit_error(job, FitError("QueueDoesNotExist", message))


def pending_jobs(session: Session, *, recorded: bool = True) -> Iterator[PodGroupInfo]:
    """Return the jobs that have pods to place and enough pods to start; for the others the reason is recorded.

    ``recorded=False`` is for actions after the first: the reasons are there already.
    """
    for job in jobs_in_leaf_queues(session, session.pending_jobs(), recorded=recorded):
        if job.gang.problem:
            if recorded:
                session.record_fit_error(job, FitError("InvalidPodGroup", job.gang.problem))
        elif job.is_ready:
            yield job
        elif recorded:
            session.record_fit_error(job, FitError("NotReady", _not_ready(job)))


def _not_ready(job: PodGroupInfo) -> str:
    short = []
    for name, pod_set in job.gang.pod_sets.items():
        exist = sum(task.status.value not in {"Gated", "Succeeded", "Failed"} for task in job.by_pod_set[name])
        if exist < pod_set.min_member:
            short.append(f"{name} has {exist} of {pod_set.min_member} pods")
    return f"too few pods exist or are ready to be scheduled: {', '.join(short) or 'too few groups'}"
