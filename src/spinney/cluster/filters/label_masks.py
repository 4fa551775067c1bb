"""Node label requirements over columns: one truth per row, by interned value."""

from collections.abc import Mapping, Sequence

import numpy as np

from spinney.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.selectors import Requirement, SelectorOperator
from spinney.cluster.journal import Rows
from spinney.cluster.labels import ABSENT
from spinney.cluster.table import Mask, NodeTable

NAME_FIELD = "metadata.name"


def matches_labels(table: NodeTable, rows: Rows, wanted: Mapping[str, str]) -> Mask:
    """Return which of ``rows`` carry all ``wanted`` labels."""
    mask = table.alive[rows]
    for key, value in wanted.items():
        mask &= table.labels.column(key)[rows] == table.labels.value_id(key, value)
    return mask


def matches_selector(table: NodeTable, rows: Rows, selector: NodeSelector, *, with_fields: bool = True) -> Mask:
    """Return which of ``rows`` match one of the terms; without terms, none."""
    mask = np.zeros(len(rows), dtype=np.bool_)
    for term in selector.node_selector_terms:
        mask |= matches_term(table, rows, term, with_fields=with_fields)
    return mask


def matches_term(table: NodeTable, rows: Rows, term: NodeSelectorTerm, *, with_fields: bool = True) -> Mask:
    """Return which of ``rows`` match every expression and field of ``term``; an empty term matches none."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(rows), dtype=np.bool_)
    mask = table.alive[rows]
    for expression in term.match_expressions:
        mask &= matches_expression(table, rows, expression)
    for requirement in term.match_fields if with_fields else ():
        mask &= _matches_field(table, rows, requirement)
    return mask


def matches_expression(table: NodeTable, rows: Rows, expression: NodeSelectorRequirement) -> Mask:
    """Return which of ``rows`` meet one comparison of a label."""
    numbers = table.labels.column(expression.key)[rows]
    mask: Mask
    match expression.operator:
        case "Exists":
            mask = numbers != ABSENT
        case "DoesNotExist":
            mask = numbers == ABSENT
        case "In":
            mask = np.isin(numbers, _numbers(table, expression.key, expression.values))
        case "NotIn":
            mask = ~np.isin(numbers, _numbers(table, expression.key, expression.values))
        case "Gt" | "Lt":
            requirement = Requirement(expression.key, SelectorOperator(expression.operator), expression.values)
            truth = [requirement.matches({expression.key: value}) for value in table.labels.values(expression.key)]
            # The last entry stands for an absent label: -1 indexes it.
            mask = np.array([*truth, False], dtype=np.bool_)[numbers]
    return mask


def _numbers(table: NodeTable, key: str, values: Sequence[str]) -> list[int]:
    return [table.labels.value_id(key, value) for value in values]


def _matches_field(table: NodeTable, rows: Rows, requirement: NodeSelectorRequirement) -> Mask:
    if requirement.key != NAME_FIELD or requirement.operator not in {"In", "NotIn"}:
        return np.zeros(len(rows), dtype=np.bool_)
    named = [row for row in (table.find(name) for name in requirement.values) if row is not None]
    inside = np.isin(rows, named)
    return inside if requirement.operator == "In" else ~inside
