"""Where a group that requires a level has pods already: it has to stay with them."""

import numpy as np

from spinney.cluster.journal import Rows
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.gangs.tree import Member
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session


def rows_to_stay_with(session: Session, job: PodGroupInfo, group: Member) -> Rows:
    """Return the rows of placed pods that a group of a job must stay with; none if it requires no level."""
    constraint = group.topology
    if constraint is None or not constraint.required or (job.plain is not None and job.gang.anchor is None):
        return np.empty(0, dtype=np.intp)
    rows = [
        task.row
        for pod_set in group.pod_sets()
        if job.active(pod_set)
        for task in job.by_pod_set[pod_set.name]
        if task.status in ACTIVE_ALLOCATED
    ]
    anchor = job.gang.anchor
    if group is job.root and anchor is not None and anchor in session.snapshot.gangs.gangs:
        base = session.job(anchor)
        if base.root.topology is not None and base.root.topology.required == constraint.required:
            rows += [task.row for task in base.tasks if task.status in ACTIVE_ALLOCATED]
    return np.array(sorted(set(rows)), dtype=np.intp)
