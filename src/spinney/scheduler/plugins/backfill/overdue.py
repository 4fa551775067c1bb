"""Who would run by now in strict order: the bound on how long others may pass a job of which no end is known.

Those who run and were submitted after a job have passed it. If it fits where they run, beside all that was submitted
before it, then only they keep it from running. That needs no run times, and happens to every job sooner or later.
"""

from collections.abc import Callable, Sequence

import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.table import Matrix
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.memory import Remaining
from spinney.scheduler.plugins.keeping import demands_of, held_by, regions, scarce, waiting_since


def is_overdue(
    session: Session,
    remaining: Remaining,
    job: PodGroupInfo,
    lacks_room: Callable[[PodGroupInfo, Sequence[PodInfo]], bool],
) -> bool:
    """Tell whether only those who have passed a job keep it from running; older ones that lack room go before it."""
    since = waiting_since(job)
    if since is None:
        return False
    table = session.nodes.table
    room = remaining.before(since.timestamp(), table.idle + table.releasing)
    demands = demands_of(session, job.tasks_to_allocate())
    if not _fits(room, session, job, demands):
        return False
    older: list[PodInfo] = []
    for key in session.snapshot.gangs.pending:
        other = session.job(key)
        if (waiting_since(other) or session.now) < since and lacks_room(other, other.tasks_to_allocate()):
            older += other.tasks_to_allocate()
    beside = _beside(room, session.nodes.all.rows, demands_of(session, older))
    return beside is not None and _fits(beside, session, job, demands)


def _fits(room: Matrix, session: Session, job: PodGroupInfo, demands: Sequence[Demand]) -> bool:
    return any(_beside(room, rows, demands) is not None for rows in regions(session, job))


def _beside(room: Matrix, rows: Rows, demands: Sequence[Demand]) -> Matrix | None:
    """Return what is left of ``room[node, resource]`` beside demands on the fullest rows; ``None``: too little."""
    ordered = rows[np.argsort(room[rows, scarce(demands)], kind="stable")]
    held = held_by(room[ordered], ordered, demands)
    if held is None:
        return None
    left = room.copy()
    left[ordered] -= held
    return left
