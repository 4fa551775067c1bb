"""Whether everybody who stays could find a place beside the job that a scenario is for, by arithmetic.

Whole GPUs are counted in units. A pod of 4 GPUs takes one unit of 4, or two of 2, and a node with 7 free GPUs has one
unit of 4 and three of 2. So pods whose GPUs are a multiple of a unit need as many units as they take, whatever else is
where. Most scenarios that move somebody fail by that: the GPUs that are free are spread over nodes, one or two on each.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from spinney.cluster.resources import GPU
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

NO_OTHER_PLACE: Final = "not every pod to be moved found another place"


def all_have_units(session: Session, tasks: Iterable[PodInfo], leaving: Iterable[PodInfo]) -> bool:
    """Tell whether nodes have the units that ``tasks`` need once the tasks that are ``leaving`` have left."""
    table = session.nodes.table
    free = table.idle[:, GPU] + table.releasing[:, GPU]
    for task in leaving:
        # The last that shares a device leaves it whole.
        free[task.row] += task.request.gpus + (task.request.share.devices if task.request.share is not None else 0)
    asked = Counter(gpus for task in tasks if (gpus := task.request.gpus))
    here = np.maximum(free[session.nodes.all.rows], 0)
    return all(
        sum(count * gpus for gpus, count in asked.items() if gpus % unit == 0) <= int((here // unit).sum()) * unit
        for unit in asked
    )
