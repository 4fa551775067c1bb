"""NodeResourcesFit: the node has room for what the pod requests, resource by resource.

Two meanings of room: kube-scheduler counts what terminating pods hold as taken; a scheduler that pipelines pods onto
what is being released counts it as available.
"""

from functools import partial
from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.requests import unoffered
from spinney.cluster.resources import PODS, UNOFFERED
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesFit"
_NAMED: Final = 8
"""How many resources that no node offers are refused by name, each for itself."""
TOO_MANY_PODS: Final = "Too many pods"


def refuse(view: ClusterView, pod: Candidate, *, after_release: bool) -> tuple[Refusal, ...]:
    """Refuse nodes where some request is above what is idle, or idle or being released."""
    table = view.table
    refusals = []
    for column in np.flatnonzero(pod.requests > 0).tolist():
        wanted = int(pod.requests[column])
        free = table.idle[:, column]
        if after_release:
            free = free + table.releasing[:, column]
        lacking: Mask = table.alive & (free < wanted)
        too_small: Mask = lacking & (table.allocatable[:, column] < wanted)
        if not lacking.any():
            continue
        if column == PODS:
            # A full node can always be emptied, even one that allows no pods; preemption finds that out by itself.
            refusals.append(Refusal.evictable(NAME, TOO_MANY_PODS, lacking))
        elif column == UNOFFERED:
            names = unoffered(pod.pod, table.axis)
            several = names if len(names) <= _NAMED else table.axis.names(names)[UNOFFERED : UNOFFERED + 1]
            refusals += [Refusal(NAME, f"Insufficient {name}", lacking, too_small) for name in several]
        else:
            refusals.append(Refusal(NAME, f"Insufficient {table.axis.name(column)}", lacking, too_small))
    return tuple(refusals)


NOW: Final = FilterRule(NAME, partial(refuse, after_release=False))
AFTER_RELEASE: Final = FilterRule(NAME, partial(refuse, after_release=True))
