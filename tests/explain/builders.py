"""Masks written as strings, for tests that explain them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.explain import NodeNames

Mask = NDArray[np.bool_]


def a_mask(marks: str) -> Mask:
    """Return the mask written as ``x.x``: refused, not refused, refused."""
    return np.array([mark == "x" for mark in marks])


@dataclass(frozen=True)
class ARefusal:
    """A refusal of a filter, as a scheduler would hand it over."""

    filter: str
    reason: str
    nodes: Mask
    unresolvable: Mask


def refused(name: str, reason: str, marks: str, unresolvable: str | None = None) -> ARefusal:
    """Return a refusal of the nodes marked ``x``."""
    return ARefusal(name, reason, a_mask(marks), a_mask(unresolvable if unresolvable is not None else "." * len(marks)))


def nodes_named(*names: str) -> NodeNames:
    """Return the rows of nodes with these names, ordered by name."""
    return NodeNames(names, np.array(sorted(range(len(names)), key=lambda row: names[row]), dtype=np.intp))
