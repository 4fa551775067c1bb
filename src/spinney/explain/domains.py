"""What each topology domain lacked, and which one missed by least.

For like pods a domain is summed up by two numbers per node: how many of the pods fit now and how many would fit were
the node empty. The pods that found no room are laid on the nodes of the domain where the next pod lacks least, and what
is lacking there is added up: that sum is what would have to be freed in the domain.

A gang of several kinds of pods is laid kind by kind, the largest first, each into what the ones before it left. That is
a packing, so what is said to fit does. A domain is called too small only where that is certain: one kind alone does not
fit into it when it is empty, or all of them together ask for more than it has.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from spinney.cluster.fitting import Demand, capacity, first_of, largest_first, widened
from spinney.cluster.resources import Vector
from spinney.cluster.table import Matrix
from spinney.explain.reasons import DomainReport, Shortage

_Costs = NDArray[np.float64]


class DomainTable(msgspec.Struct, frozen=True):
    """The nodes of a topology level. Arrays are ``[node]`` or ``[node, resource]``; only usable nodes are listed.

    ``domain_of`` indexes ``domains``; a node with -1 lies in none. A resource without a column is had by no node.
    """

    level: str
    domains: Sequence[str]
    domain_of: NDArray[np.int32]
    free: Matrix
    allocatable: Matrix


def domain_reports(table: DomainTable, demands: Sequence[Demand], resources: Sequence[str]) -> list[DomainReport]:
    """Report every domain of ``table`` for all pods of ``demands`` together; in domain order."""
    return [_report(table, index, demands, resources) for index in range(len(table.domains))]


def nearest_miss(reports: Iterable[DomainReport]) -> DomainReport | None:
    """Return the domain that could become right with the least change: most pods placed, then name."""
    missed = [report for report in reports if report.fits < report.needed]
    return min(missed, key=lambda report: (not report.possible, -report.fits, report.domain), default=None)


def _report(table: DomainTable, index: int, demands: Sequence[Demand], resources: Sequence[str]) -> DomainReport:
    rows = np.flatnonzero(table.domain_of == index)
    demands = [demand.at(rows) for demand in demands]
    room, empty = (widened(room[rows], demands) for room in (table.free, table.allocatable))
    needed = sum(demand.count for demand in demands)
    holds = capacity(empty, demands)
    missing: list[tuple[Demand, int]] = []
    for demand in largest_first(demands, empty):
        taken = first_of(demand.per_node(room), demand.count)
        missing.append((demand, demand.count - int(taken.sum())))
        used = taken[:, None] * demand.request
        room, empty = room - used, np.maximum(empty - used, 0)
    fits = needed - sum(count for _, count in missing)
    lacking, unlaid = np.zeros_like(room), 0
    for demand, count in missing if holds >= needed else ():
        laid = _cheapest(room, demand, demand.per_node(empty), count)
        unlaid += count - int(laid.sum())
        used = laid[:, None] * demand.request
        lacking += np.maximum(used - room, 0) * (demand.request > 0)
        room, empty = np.maximum(room - used, 0), np.maximum(empty - used, 0)
    possible = max(holds, fits) >= needed
    return DomainReport(
        level=table.level,
        domain=table.domains[index],
        nodes=len(rows),
        fits=fits,
        needed=needed,
        shortages=_named(lacking, resources) if not unlaid else (),
        possible=possible,
        capacity=max(holds, fits),
    )


def _cheapest(room: Matrix, demand: Demand, at_most: Vector, count: int) -> Vector:
    """Lay ``count`` pods where they lack least, at most ``at_most[node]``; return how many each node was given."""
    given = np.zeros_like(at_most)
    nodes = np.flatnonzero(at_most > 0)
    if count <= 0 or len(nodes) == 0:
        return given
    if len(nodes) > count:
        # A later pod on a node never costs less than an earlier one, so no node beyond these is given any.
        first = _lacking(room[nodes], demand.request, 1)[:, 0]
        nodes = np.sort(nodes[np.argsort(first, kind="stable")[:count]])
    places = np.minimum(at_most[nodes], count)
    lacking = _lacking(room[nodes], demand.request, int(places.max()))
    # Rounded, so that a third is a third however it came about and ties go to the first node.
    costs = np.maximum.accumulate(np.round(np.diff(lacking, axis=1, prepend=0.0), 9), axis=1)
    costs[np.arange(costs.shape[1]) >= places[:, None]] = np.inf
    cheapest = np.argsort(costs, axis=None, kind="stable")[: min(count, int(places.sum()))]
    given[nodes] = np.bincount(cheapest // costs.shape[1], minlength=len(nodes))
    return given


def _lacking(room: Matrix, request: Vector, most: int) -> _Costs:
    """Return what 1 to ``most`` pods lack on each node, ``[node, pods]``, in units of one pod's request."""
    pods = np.arange(1, most + 1)
    total = np.zeros((len(room), most))
    for column in np.flatnonzero(request > 0).tolist():
        total += np.maximum(pods * request[column] - room[:, column, None], 0) / request[column]
    return total


def _named(lacking: Matrix, resources: Sequence[str]) -> tuple[Shortage, ...]:
    total = lacking.sum(axis=0)
    return tuple(
        Shortage(resource=resources[column], amount=int(total[column]), nodes=int(np.count_nonzero(lacking[:, column])))
        for column in np.flatnonzero(total).tolist()
    )
