"""Searches for devices that have failed, so that the same search is not made again.

What is found on a node depends on what is asked for, on which of the node's devices are taken, and on how much may be
looked at. While these stay the same, so does the answer. A new catalogue begins with nothing remembered.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from spinney.cluster.dra.requests import ClaimDemand

KEPT: Final = 200_000
"""So many failures are remembered, one for each node and each sort of demand."""


class UnmetDemand(NamedTuple):
    """A search of a node that found nothing."""

    taken: frozenset[tuple[str, str, str]]
    """The devices of the node that were taken."""
    steps: float
    """How much it was allowed to look at; infinite where it has looked at everything."""


class UnmetDemands:
    """By what was asked for and by node, the last failure. Mutable."""

    def __init__(self, nodes: int) -> None:
        self._most = max(KEPT // max(nodes, 1), 1)
        self._by_demand: dict[tuple[ClaimDemand, ...], dict[str, UnmetDemand]] = {}
        self._taken: dict[str, frozenset[tuple[str, str, str]]] = {}
        """By node, what was taken when it was searched last: the failures of all demands share it."""

    def of(self, asks: Sequence[ClaimDemand]) -> dict[str, UnmetDemand]:
        """Return the failures of one demand by node, to be written to."""
        key = tuple(asks)
        known = self._by_demand.get(key)
        if known is None:
            if len(self._by_demand) >= self._most:
                self._by_demand.clear()
            known = self._by_demand[key] = {}
        return known

    def shared(self, node: str, taken: frozenset[tuple[str, str, str]]) -> frozenset[tuple[str, str, str]]:
        """Return the same devices, as one object for as long as no other devices of the node are taken."""
        known = self._taken.get(node)
        if known != taken:
            known = self._taken[node] = taken
        return known
