"""Masks written as strings, for tests that explain them."""

import numpy as np

from spinney.cluster.filters.verdict import Refusal
from spinney.cluster.table import Mask
from spinney.explain.counting import NodeNames


def a_mask(marks: str) -> Mask:
    """Return the mask written as ``x.x``: refused, not refused, refused."""
    return np.array([mark == "x" for mark in marks])


def refused(name: str, reason: str, marks: str, unresolvable: str | None = None) -> Refusal:
    """Return a refusal of the nodes marked ``x``."""
    return Refusal(name, reason, a_mask(marks), a_mask(unresolvable if unresolvable is not None else "." * len(marks)))


def nodes_named(*names: str) -> NodeNames:
    """Return the rows of nodes with these names, ordered by name."""
    return NodeNames(names, np.array(sorted(range(len(names)), key=lambda row: names[row]), dtype=np.intp))
