"""NodeResourcesBalancedAllocation: prefer nodes whose resources become more evenly used by the pod."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.resources_allocated import CPU_AND_MEMORY, Usage, WeightedResource, usages
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreFunction, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesBalancedAllocation"
_HALF: Final = MAX_SCORE // 2

Shares = npt.NDArray[np.float64]
"""Utilisation between 0 and 1, ``[resource, node]``, or what is computed of it, ``[node]``."""


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
    shares = np.stack(
        [np.minimum(asked / np.maximum(usage.offered, 1), 1.0) for usage, asked in zip(parts, requested, strict=True)]
    )
    size = np.count_nonzero(present, axis=0)
    deviation = _half_distance(shares, present)
    if len(parts) > 2:
        deviation = np.where(size > 2, _deviation(shares, present, size), deviation)
    return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)


def _half_distance(shares: Shares, present: npt.NDArray[np.bool_]) -> Shares:
    """Return the deviation where two resources are present: half their distance, without a square root's rounding."""
    if len(shares) == 2:
        return np.where(present.all(axis=0), np.abs(shares[0] - shares[1]) / 2, 0.0)
    highest = np.where(present, shares, 0.0).max(axis=0)
    lowest = np.where(present, shares, 1.0).min(axis=0)
    return np.where(np.count_nonzero(present, axis=0) == 2, (highest - lowest) / 2, 0.0)


def _deviation(shares: Shares, present: npt.NDArray[np.bool_], size: npt.NDArray[np.intp]) -> Shares:
    """Return the standard deviation over the ``size[node]`` resources present."""
    mean = np.where(present, shares, 0.0).sum(axis=0) / np.maximum(size, 1)
    squares = np.where(present, (shares - mean) ** 2, 0.0).sum(axis=0)
    deviation: Shares = np.sqrt(squares / np.maximum(size, 1))
    return deviation


BALANCED_ALLOCATION: Final = ScoreRule(NAME, balanced_allocation())
