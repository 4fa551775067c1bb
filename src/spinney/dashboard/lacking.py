"""What each domain lacks for a gang that waits: the racks it could use, and what would have to be freed in each.

Every domain of the level that the gang requires is reported, or of the narrowest level where it requires none. Nodes
that something other than room keeps the pods off (a taint, a label, a cordon) are left out.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.filters import Candidate, FilterFramework
from spinney.cluster.filters.framework import NODE_FILTERS
from spinney.cluster.fitting import Demand
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import WAITING
from spinney.cluster.table import Mask
from spinney.dashboard.board import Board
from spinney.explain.domains import DomainTable, domain_reports
from spinney.explain.reasons import DomainReport
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey, required_of_all

_FILTERS: Final = FilterFramework(NODE_FILTERS)


class DomainNeed(DomainReport, frozen=True, kw_only=True):
    """How many of a gang's pods one domain has room for, what it lacks for the others, and where it is."""

    path: tuple[str, ...]


def domain_needs(board: Board, key: GangKey) -> tuple[DomainNeed, ...]:
    """Return what every domain lacks for the pods of a gang that wait, the one that lacks least first."""
    members = board.gangs.members(key)
    levels = _levels(board, members) if members is not None else ()
    if members is None or not levels:
        return ()
    waiting = [each for _, each in members.pods.values() if each.status in WAITING]
    kinds: dict[RequestClass, list[PodRecord]] = {}
    for record in waiting:
        kinds.setdefault(record.request, []).append(record)
    usable = {request: _usable(board, alike[0]) for request, alike in kinds.items()}
    return _reports(board, kinds, usable, levels) if kinds else ()


def _levels(board: Board, members: GangMembers) -> Sequence[str]:
    """Return the levels down to the one that all of a gang must share, or to the narrowest that the page shows."""
    required = required_of_all(members.gang.root)
    found = board.inventory.topologies.required(required) if required is not None else None
    if found is None:
        return board.levels
    topology, depth = found
    key = topology.levels[depth]
    if key in board.levels:
        return board.levels[: board.levels.index(key) + 1]
    return topology.levels[: depth + 1]  # each node alone, or a topology that the page does not show


def _usable(board: Board, record: PodRecord) -> Mask:
    """Return the nodes where nothing but room can be in the way, ``[node]``."""
    cluster = board.inventory.cluster
    usable: Mask = cluster.table.alive.copy()
    candidate = Candidate(record.pod, record.request.requests)
    for refusal in _FILTERS.feasible(cluster.view, candidate, thorough=True).refusals:
        usable &= ~refusal.nodes
    return usable


def _reports(
    board: Board,
    kinds: dict[RequestClass, list[PodRecord]],
    usable: dict[RequestClass, Mask],
    levels: Sequence[str],
) -> tuple[DomainNeed, ...]:
    table = board.inventory.cluster.table
    places = board.places(levels)
    anywhere = np.logical_or.reduce(list(usable.values()))
    rows = np.array([row for row in table.rows().tolist() if anywhere[row] and table.names[row] in places], dtype=int)
    if not len(rows):
        return ()
    paths = [places[table.names[row]] for row in rows.tolist()]
    domains = sorted(set(paths))
    index = {path: number for number, path in enumerate(domains)}
    room = DomainTable(
        levels[-1].rpartition("/")[2],
        ["/".join(path) for path in domains],
        np.array([index[path] for path in paths], dtype=np.int32),
        (table.idle + table.releasing)[rows],
        table.allocatable[rows],
    )
    width = room.free.shape[1]
    demands = [Demand(request.vector(width), len(alike), usable[request][rows]) for request, alike in kinds.items()]
    unoffered = dict.fromkeys(name for request in kinds for name in request.unoffered)
    found = domain_reports(room, demands, table.axis.names(tuple(unoffered)))
    needs = [
        DomainNeed(path=path, **{name: getattr(report, name) for name in report.__struct_fields__})
        for path, report in zip(domains, found, strict=True)
    ]
    return tuple(sorted(needs, key=lambda need: (-need.fits, not need.possible, need.path)))
