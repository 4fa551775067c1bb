"""Topology domains as masks over nodes: those of a label, and those a group is confined to."""

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


def value_on(table: NodeTable, key: str, node: str) -> str | None:
    """Return the value of a label on a node; ``None`` if it has none, or there is no such node."""
    row = table.find(node) if node else None
    number = table.labels.column(key)[row] if row is not None else -1
    return table.labels.values(key)[number] if number >= 0 else None


def confined(table: NodeTable, group: Group, scopes: list[DomainScope]) -> Mask:
    """Return the nodes in the domains that were chosen for these parts of a group."""
    mask = table.alive
    for scope in scopes:
        if scope.name in group.domains:
            mask = mask & domain(table, scope.key, group.domains[scope.name])
    return mask
