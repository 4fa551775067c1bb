"""NodeResourcesFit as a score: by how full nodes would be.

Three strategies: prefer empty nodes (LeastAllocated, the default), prefer full ones (MostAllocated), or follow a broken
line over utilisation (RequestedToCapacityRatio). Containers without requests count as small, not as nothing, so that
they do not all end up on one node.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.resources import CPU, MEMORY
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreFunction, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "NodeResourcesFit"
_POINT_SCALE: Final = 10
_SCALARS: Final = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class WeightedResource:
    """A resource and how much it counts among others."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the broken line: at this utilisation (per cent) a node scores this (0 to 10)."""

    utilisation: int
    score: int


CPU_AND_MEMORY: Final = (WeightedResource("cpu"), WeightedResource("memory"))


@dataclass(frozen=True, slots=True)
class Usage:
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


def usages(
    view: ClusterView, pod: Candidate, resources: Sequence[WeightedResource], *, exact: bool
) -> list[tuple[WeightedResource, Usage]]:
    """Return the use of each resource; one beyond cpu, memory and storage only where the pod asks for it.

    ``exact`` takes requests as they are; otherwise cpu and memory that nobody asked for count with their defaults.
    """
    table = view.table
    found = []
    for resource in resources:
        column = table.axis.find(resource.name)
        if column is None:
            continue
        asked = int(pod.requests[column]) if column < len(pod.requests) else 0
        if asked == 0 and resource.name not in _SCALARS:
            continue
        before = table.used[:, column]
        if not exact and column in {CPU, MEMORY}:
            which = (CPU, MEMORY).index(column)
            before = view.pods.nonzero_requested(table.capacity)[:, which]
            asked = pod.nonzero_requests[which]
        found.append((resource, Usage(table.allocatable[:, column], before, before + asked)))
    return found


def least_allocated(resources: Sequence[WeightedResource] = CPU_AND_MEMORY) -> ScoreFunction:
    """Return the score that prefers nodes with much left."""

    def part(usage: Usage) -> Scores:
        left: Scores = np.maximum(usage.offered - usage.after, 0)
        return left * MAX_SCORE // np.maximum(usage.offered, 1)

    return lambda view, pod, mask: _weighted(usages(view, pod, resources, exact=False), part, view.table.capacity)


def most_allocated(resources: Sequence[WeightedResource] = CPU_AND_MEMORY) -> ScoreFunction:
    """Return the score that prefers nodes that are full."""

    def part(usage: Usage) -> Scores:
        return np.minimum(usage.after, usage.offered) * MAX_SCORE // np.maximum(usage.offered, 1)

    return lambda view, pod, mask: _weighted(usages(view, pod, resources, exact=False), part, view.table.capacity)


def requested_to_capacity_ratio(
    shape: Sequence[ShapePoint], resources: Sequence[WeightedResource] = CPU_AND_MEMORY
) -> ScoreFunction:
    """Return the score that reads a node's utilisation off the broken line through ``shape``."""
    line = [(point.utilisation, point.score * _POINT_SCALE) for point in shape]

    def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores:
        total = np.zeros(view.table.capacity, dtype=np.int64)
        weights = np.zeros_like(total)
        for resource, usage in usages(view, pod, resources, exact=False):
            full = (usage.offered == 0) | (usage.after > usage.offered)
            utilisation = np.where(full, MAX_SCORE, usage.after * MAX_SCORE // np.maximum(usage.offered, 1))
            points = _on_line(line, utilisation)
            counts = usage.counts & (points > 0)
            total += np.where(counts, points * resource.weight, 0)
            weights += np.where(counts, resource.weight, 0)
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)

    return score


def _on_line(line: Sequence[tuple[int, int]], at: Scores) -> Scores:
    """Return the height of the broken line at each utilisation, fractions dropped towards zero."""
    heights = np.full_like(at, line[-1][1])
    for (left, low), (right, high) in reversed(list(pairwise(line))):
        between = low + np.trunc((high - low) * (at - left) / (right - left)).astype(np.int64)
        heights = np.where(at <= right, between, heights)
    return np.where(at <= line[0][0], line[0][1], heights)


def _weighted(
    parts: Sequence[tuple[WeightedResource, Usage]], part: Callable[[Usage], Scores], capacity: int
) -> Scores:
    total = np.zeros(capacity, dtype=np.int64)
    weights = np.zeros_like(total)
    for resource, usage in parts:
        total += np.where(usage.counts, part(usage) * resource.weight, 0)
        weights += np.where(usage.counts, resource.weight, 0)
    return total // np.maximum(weights, 1)


LEAST_ALLOCATED: Final = ScoreRule(NAME, least_allocated())
