"""Topology domains as masks over nodes: those of a label, and those a group is confined to."""

from collections.abc import Iterable

import numpy as np

from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.groups.needs import DomainScope


def domain(table: NodeTable, key: str, value: str) -> Mask:
    """Return the nodes whose label ``key`` has this value."""
    mask: Mask = table.alive & (table.labels.column(key) == table.labels.value_id(key, value))
    return mask


def values_in(table: NodeTable, key: str, within: Mask) -> list[str]:
    """Return the values of a label that some of the nodes ``within`` have now."""
    column = table.labels.column(key)
    numbers = np.unique(column[within & (column >= 0)])
    values = table.labels.values(key)
    return [values[number] for number in numbers.tolist()]


def values_on(table: NodeTable, key: str, nodes: Iterable[str]) -> set[str]:
    """Return the values of a label on some nodes; one that has none, or is not there, has no say."""
    column, values = table.labels.column(key), table.labels.values(key)
    rows = (row for node in nodes if (row := table.find(node)) is not None)
    return {values[column[row]] for row in rows if column[row] >= 0}


def confined(table: NodeTable, group: Group, scopes: list[DomainScope]) -> Mask:
    """Return the nodes in the domains that were chosen for these parts of a group."""
    mask = table.alive
    for scope in scopes:
        if scope.name in group.domains:
            mask = mask & domain(table, scope.key, group.domains[scope.name])
    return mask
