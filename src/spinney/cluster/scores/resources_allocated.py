"""NodeResourcesFit as a score: prefer nodes with much CPU and memory left (LeastAllocated, kube-scheduler's default).

Containers without requests count as small, not as nothing, so that they do not all end up on one node.
"""

from typing import Final

import msgspec
import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.resources import CPU, MEMORY
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesFit"


class Usage(msgspec.Struct, frozen=True):
    """One resource over all nodes, ``[node]``: what the node offers, what is requested of it without and with the pod.

    ``counts`` tells where the resource counts: on nodes that have it.
    """

    offered: Scores
    before: Scores
    after: Scores

    @property
    def counts(self) -> Mask:
        """Return the nodes that offer the resource."""
        return self.offered > 0


def usages(view: ClusterView, pod: Candidate, *, exact: bool) -> list[Usage]:
    """Return the use of CPU and of memory.

    ``exact`` takes requests as they are; otherwise what nobody asked for counts with its default.
    """
    table = view.table
    found = []
    for which, column in enumerate((CPU, MEMORY)):
        if exact:
            before, asked = table.used[:, column], int(pod.requests[column])
        else:
            before = view.pods.nonzero_requested(table.capacity)[:, which]
            asked = pod.nonzero_requests[which]
        found.append(Usage(table.allocatable[:, column], before, before + asked))
    return found


def _least_allocated(view: ClusterView, pod: Candidate, _: Mask) -> Scores:
    total = np.zeros(view.table.capacity, dtype=np.int64)
    resources = np.zeros_like(total)
    for usage in usages(view, pod, exact=False):
        left = np.maximum(usage.offered - usage.after, 0)
        total += np.where(usage.counts, left * MAX_SCORE // np.maximum(usage.offered, 1), 0)
        resources += usage.counts
    return total // np.maximum(resources, 1)


LEAST_ALLOCATED: Final = ScoreRule(NAME, _least_allocated)
