"""NodeResourcesBalancedAllocation: prefer nodes whose resources become more evenly used by the pod."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.resources_allocated import CPU_AND_MEMORY, Usage, WeightedResource, usages
from spinney.cluster.scores.scoring import MAX_SCORE, Score, ScoreFunction, Scores
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesBalancedAllocation"
_HALF: Final = MAX_SCORE // 2


def balanced_allocation(resources: Sequence[WeightedResource] = CPU_AND_MEMORY) -> ScoreFunction:
    """Return the score: 75 where the pod leaves the balance as it is, up to 100 where it improves it, down to 50."""

    def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores | None:
        parts = [usage for _, usage in usages(view, pod, resources, exact=True)]
        if all(not (usage.after - usage.before).any() for usage in parts):
            return None  # a pod that requests nothing changes no balance
        after = _balance(parts, [usage.after for usage in parts])
        before = _balance(parts, [usage.before for usage in parts])
        return _HALF + (_HALF + after - before) // 2

    return score


def _balance(parts: Sequence[Usage], requested: Sequence[Scores]) -> Scores:
    """Return 100 where all resources are equally used, less the more their utilisations differ, ``[node]``."""
    present = np.stack([usage.counts for usage in parts])
    fractions = np.stack(
        [np.minimum(asked / np.maximum(usage.offered, 1), 1.0) for usage, asked in zip(parts, requested, strict=True)]
    )
    deviation = _deviation(np.where(present, fractions, 0.0), present)
    return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)


def _deviation(fractions: npt.NDArray[np.float64], present: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the standard deviation over the resources present, ``[node]``, of ``fractions[resource, node]``."""
    size = np.maximum(present.sum(axis=0), 1)
    mean = fractions.sum(axis=0) / size
    squares = np.where(present, (fractions - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.sqrt(squares / size)
    # With two resources half their distance is the same, without the rounding of a square root.
    highest = np.where(present, fractions, -np.inf).max(axis=0)
    lowest = np.where(present, fractions, np.inf).min(axis=0)
    half_distance = np.where(size == 2, (highest - lowest) / 2, 0.0)
    return np.where(size > 2, deviation, half_distance)


BALANCED_ALLOCATION: Final = Score(NAME, balanced_allocation())
