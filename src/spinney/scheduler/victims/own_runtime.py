"""The minimum runtime that a gang asks for itself: until it is over the gang only loses what it can do without.

It holds for every action that disturbs others, whatever plugins say about queues, up to a limit of the configuration:
else a user could make a job that nobody may ever disturb.
"""

from datetime import timedelta
from typing import Final

from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.gangs.checkpoints import min_runtime_of
from spinney.gangs.tree import is_satisfied
from spinney.scheduler.fairshare.runtimes import is_protected
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session

_STAYING: Final = ACTIVE_ALLOCATED - {PodStatus.PIPELINED}
CUT_SHORT: Final = "a gang would be disturbed before the minimum runtime it asks for is over"


def is_within_own_runtime(session: Session, job: PodGroupInfo) -> bool:
    """Tell whether a job has not yet run for as long as it asks for; says when that ends."""
    asked = min_runtime_of(job.members)
    if asked is None:
        return False
    asked = min(asked, timedelta(seconds=session.config.max_own_min_runtime_seconds))
    started = job.last_start
    if started is None or not is_protected(started, asked, session.now):
        return False
    session.wake_at(started + asked)
    return True


def is_cut_short(session: Session, victim: PodGroupInfo) -> bool:
    """Tell whether a scenario takes a job below its minimum too early; what is moved starts anew as well."""
    return not is_satisfied(victim.root, victim.count_in(_STAYING)) and is_within_own_runtime(session, victim)


def can_give(job: PodGroupInfo) -> bool:
    """Tell whether a job has pods that it can do without."""
    tasks, more = job.tasks_to_evict()
    return bool(tasks) and more
