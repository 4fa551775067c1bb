"""What each topology domain lacked, and which one missed by least.

For a gang of identical pods a domain is summed up by two numbers per node: how many of the pods fit now and how many
would fit were the node empty. The pods that found no room are laid, one by one, on the node of the domain where the
next pod lacks least, and what is lacking there is added up: that sum is what would have to be freed in the domain.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.explain.reasons import DomainReport, Shortage

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DomainTable:
    """The nodes of a topology level. Arrays are ``[node]`` or ``[node, resource]``; only usable nodes are listed.

    ``domain_of`` indexes ``domains``; a node with -1 lies in none. A resource without a column is had by no node.
    """

    level: str
    domains: Sequence[str]
    domain_of: NDArray[np.int32]
    free: IntArray
    allocatable: IntArray


def domain_reports(table: DomainTable, request: IntArray, resources: Sequence[str], needed: int) -> list[DomainReport]:
    """Report every domain of ``table`` for ``needed`` pods that each ask for ``request[resource]``; in domain order."""
    free, allocatable = (_widened(room, len(request)) for room in (table.free, table.allocatable))
    fits = pods_per_node(free, request, needed)
    capacity = np.maximum(pods_per_node(allocatable, request, needed), fits)
    reports = []
    for index, domain in enumerate(table.domains):
        rows = np.flatnonzero(table.domain_of == index)
        held = min(int(fits[rows].sum()), needed)
        possible = int(capacity[rows].sum()) >= needed
        lacking = _shortages(free[rows], request, fits[rows], capacity[rows], needed - held)
        reports.append(
            DomainReport(
                level=table.level,
                domain=domain,
                nodes=len(rows),
                fits=held,
                needed=needed,
                shortages=_named(lacking, resources) if possible else (),
                possible=possible,
            )
        )
    return reports


def nearest_miss(reports: Iterable[DomainReport]) -> DomainReport | None:
    """Return the domain that could become right with the least change: most pods placed, then name."""
    missed = [report for report in reports if report.fits < report.needed]
    return min(missed, key=lambda report: (not report.possible, -report.fits, report.domain), default=None)


def pods_per_node(room: IntArray, request: IntArray, at_most: int) -> IntArray:
    """Return, per node, how many pods of ``request[resource]`` fit into ``room[node, resource]``."""
    asked = request > 0
    if not asked.any():
        return np.full(len(room), at_most, dtype=np.int64)
    counts: IntArray = np.clip((room[:, asked] // request[asked]).min(axis=1), 0, at_most)
    return counts


def _widened(room: IntArray, width: int) -> IntArray:
    """Return ``room`` with exactly ``width`` columns, those that were missing filled with zeros."""
    missing = width - room.shape[1]
    return np.pad(room, ((0, 0), (0, missing))) if missing > 0 else room[:, :width]


def _shortages(
    free: IntArray, request: IntArray, fits: IntArray, capacity: IntArray, missing: int
) -> dict[int, IntArray]:
    """Return what each node (position in ``free``) lacks when ``missing`` more pods are laid where they lack least."""
    asked = np.flatnonzero(request > 0)
    amounts = request[asked].tolist()
    room = free[:, asked].tolist()  # plain numbers: the loop below looks at one node at a time
    held, most = fits.tolist(), capacity.tolist()

    def cost(node: int, pods: int) -> float:
        """Return what ``pods`` more pods lack on a node, in units of one pod's request."""
        count = held[node] + pods
        lacking: float = sum(max(count * want - have, 0) / want for want, have in zip(amounts, room[node], strict=True))
        return lacking

    # A later pod on a node never costs less than an earlier one, so taking the cheapest next pod is optimal.
    heap = [(cost(node, 1), node, 1) for node in range(len(held)) if most[node] > held[node]]
    heapq.heapify(heap)
    laid: dict[int, int] = {}
    while heap and missing > 0:
        _, node, pods = heap[0]
        laid[node] = pods
        missing -= 1
        if held[node] + pods < most[node]:
            heapq.heapreplace(heap, (cost(node, pods + 1) - cost(node, pods), node, pods + 1))
        else:
            heapq.heappop(heap)
    return {
        node: np.maximum((held[node] + pods) * request - free[node], 0) * (request > 0) for node, pods in laid.items()
    }


def _named(lacking: dict[int, IntArray], resources: Sequence[str]) -> tuple[Shortage, ...]:
    if not lacking:
        return ()
    table = np.stack([lacking[node] for node in sorted(lacking)])
    total = table.sum(axis=0)
    return tuple(
        Shortage(resource=resources[column], amount=int(total[column]), nodes=int(np.count_nonzero(table[:, column])))
        for column in np.flatnonzero(total).tolist()
    )
