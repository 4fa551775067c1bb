"""NodeResourcesBalancedAllocation: prefer nodes whose resources become more evenly used by the pod."""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.resources_allocated import usages
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesBalancedAllocation"
_HALF: Final = MAX_SCORE // 2


def _balanced_allocation(view: ClusterView, pod: Candidate, _: Mask) -> Scores | None:
    """Return 75 where the pod leaves the balance as it is, up to 100 where it improves it, down to 50."""
    cpu, memory = usages(view, pod, exact=True)
    if not any((usage.after - usage.before).any() for usage in (cpu, memory)):
        return None  # a pod that requests nothing changes no balance
    both = cpu.counts & memory.counts

    def balance(cores: Scores, amounts: Scores) -> Scores:
        """Return 100 where CPU and memory are equally used, less the more their utilisations differ, ``[node]``."""
        shares = [
            np.minimum(asked / np.maximum(usage.offered, 1), 1.0) for usage, asked in ((cpu, cores), (memory, amounts))
        ]
        deviation = np.where(both, np.abs(shares[0] - shares[1]) / 2, 0.0)
        return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)

    return _HALF + (_HALF + balance(cpu.after, memory.after) - balance(cpu.before, memory.before)) // 2


BALANCED_ALLOCATION: Final = ScoreRule(NAME, _balanced_allocation)
