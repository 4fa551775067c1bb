"""What each topology domain lacked, and which one missed by least.

For a gang of identical pods a domain is summed up by two numbers per node: how many of the pods fit now and how many
would fit were the node empty. The pods that found no room are laid on the nodes of the domain where the next pod lacks
least, and what is lacking there is added up: that sum is what would have to be freed in the domain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.explain.reasons import DomainReport, Shortage

IntArray = NDArray[np.int64]
_Costs = NDArray[np.float64]


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
        missing = needed - held if possible else 0
        lacking = _shortages(free[rows], request, fits[rows], capacity[rows], missing)
        reports.append(
            DomainReport(
                level=table.level,
                domain=domain,
                nodes=len(rows),
                fits=held,
                needed=needed,
                shortages=_named(lacking, resources),
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
    counts = np.full(len(room), at_most, dtype=np.int64)
    for column in np.flatnonzero(request > 0).tolist():
        np.minimum(counts, room[:, column] // request[column], out=counts)
    return np.maximum(counts, 0)


def _widened(room: IntArray, width: int) -> IntArray:
    """Return ``room`` with exactly ``width`` columns, those that were missing filled with zeros."""
    missing = width - room.shape[1]
    return np.pad(room, ((0, 0), (0, missing))) if missing > 0 else room[:, :width]


def _shortages(free: IntArray, request: IntArray, fits: IntArray, capacity: IntArray, missing: int) -> IntArray:
    """Return what nodes lack, ``[node, resource]``, when ``missing`` more pods are laid where they lack least.

    Only nodes that were given pods are listed, in their order.
    """
    nodes = np.flatnonzero(capacity > fits)
    if missing <= 0 or len(nodes) == 0:
        return np.empty((0, len(request)), dtype=np.int64)
    asked = np.flatnonzero(request > 0)
    first = _lacking(free[nodes], request, fits[nodes], asked, 1)[:, 0]
    if len(nodes) > missing:
        # A later pod on a node never costs less than an earlier one, so no node beyond these is given any.
        nodes = np.sort(nodes[np.argsort(first, kind="stable")[:missing]])
    room = np.minimum(capacity[nodes] - fits[nodes], missing)
    lacking = _lacking(free[nodes], request, fits[nodes], asked, int(room.max()))
    # Rounded, so that a third is a third however it came about and ties go to the first node.
    costs = np.maximum.accumulate(np.round(np.diff(lacking, axis=1, prepend=0.0), 9), axis=1)
    costs[np.arange(costs.shape[1]) >= room[:, None]] = np.inf
    cheapest = np.argsort(costs, axis=None, kind="stable")[: min(missing, int(room.sum()))]
    laid = np.bincount(cheapest // costs.shape[1], minlength=len(nodes))
    nodes, laid = nodes[laid > 0], laid[laid > 0]
    short: IntArray = np.maximum((fits[nodes] + laid)[:, None] * request - free[nodes], 0) * (request > 0)
    return short


def _lacking(free: IntArray, request: IntArray, fits: IntArray, asked: NDArray[np.intp], most: int) -> _Costs:
    """Return what 1 to ``most`` more pods lack on each node, ``[node, pods]``, in units of one pod's request."""
    pods = fits[:, None] + np.arange(1, most + 1)
    total = np.zeros(pods.shape)
    for column in asked.tolist():
        total += np.maximum(pods * request[column] - free[:, column, None], 0) / request[column]
    return total


def _named(lacking: IntArray, resources: Sequence[str]) -> tuple[Shortage, ...]:
    total = lacking.sum(axis=0)
    return tuple(
        Shortage(resource=resources[column], amount=int(total[column]), nodes=int(np.count_nonzero(lacking[:, column])))
        for column in np.flatnonzero(total).tolist()
    )
