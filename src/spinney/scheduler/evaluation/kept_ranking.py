"""Where the next of many alike pods goes, when they come one gang at a time.

Pods that belong to nothing are gangs of one, and often there are thousands that ask for the same. Where only room
limits nodes and no score falls by use, they fill node after node, as the pods of one gang would
(:mod:`~spinney.scheduler.placement.filling`). So the ranking found for the first is kept for those that follow, for as
long as nothing else changes: the usage journal tells.
"""

from collections.abc import Hashable
from typing import Final

from spinney.cluster.journal import Journal, Rows
from spinney.cluster.resources import Vector

AHEAD: Final = 64
"""How many nodes of a ranking are kept."""


class KeptRanking:
    """The nodes that pods of one kind fill next, best first. Mutable."""

    def __init__(self, usage: Journal) -> None:
        self._usage = usage
        self._position = -1
        self._kind: Hashable = None
        self._left: list[tuple[int, int]] = []

    def begin(self, kind: Hashable, rows: Rows, room: Vector) -> None:
        """Keep a ranking of nodes, each with room for so many pods of ``kind``."""
        self._kind = kind
        self._position = self._usage.position
        self._left = [each for each in zip(reversed(rows.tolist()), reversed(room.tolist()), strict=True) if each[1]]

    def next_row(self, kind: Hashable) -> int | None:
        """Return the row for the next pod; ``None`` if nothing is known, or no longer."""
        if not self._left or kind != self._kind or self._usage.position != self._position:
            return None
        return self._left[-1][0]

    def took(self) -> None:
        """Note that a pod was placed on the next row, and nothing else was done."""
        row, room = self._left.pop()
        if room > 1:
            self._left.append((row, room - 1))
        self._position = self._usage.position
