"""Where the next of many alike pods go, when they come one gang at a time.

Pods that belong to nothing are gangs of one, and often there are thousands, of these or of small gangs, that ask for
the same. Where only room limits nodes and no score falls by use, they fill node after node, as the pods of one gang
would (:mod:`~spinney.scheduler.placement.filling`). So the ranking found for the first is kept for those that follow,
for as long as nothing else changes: the usage journal tells.
"""

from collections.abc import Hashable
from typing import Final

from spinney.cluster.journal import RowJournal, Rows
from spinney.cluster.resources import Vector

AHEAD: Final = 64
"""How many nodes of a ranking are kept."""


class KeptRanking:
    """The nodes that pods of one kind fill next, best first. Mutable."""

    def __init__(self, usage: RowJournal) -> None:
        self._usage = usage
        self._position = -1
        self._kind: Hashable = None
        self._left: list[tuple[int, int]] = []
        self.number = 0
        """Of the ranking that is kept: another has another."""

    def begin(self, kind: Hashable, rows: Rows, room: Vector) -> None:
        """Keep a ranking of nodes, each with room for so many pods of ``kind``."""
        self._kind = kind
        self.number += 1
        self._position = self._usage.position
        self._left = [each for each in zip(reversed(rows.tolist()), reversed(room.tolist()), strict=True) if each[1]]

    def forget(self) -> None:
        """Have nodes ranked anew: they are seen differently now."""
        self._kind = None
        self.number += 1

    def next_rows(self, kind: Hashable, pods: int) -> list[tuple[int, int]] | None:
        """Return the rows for the next ``pods``, each with how many go there.

        ``None``: nothing is known, or no longer, or there is too little room on what is kept.
        """
        return self.following(pods) if kind == self._kind else None

    def following(self, pods: int) -> list[tuple[int, int]] | None:
        """Return the same for the next ``pods`` of the kind that is kept."""
        if self._usage.position != self._position:
            return None
        found: list[tuple[int, int]] = []
        for row, room in reversed(self._left):
            found.append((row, min(room, pods)))
            pods -= room
            if pods <= 0:
                return found
        return None

    @property
    def room(self) -> int:
        """Return for how many pods of the kind that is kept there is room on what is kept."""
        return sum([room for _, room in self._left])

    def took(self, places: list[tuple[int, int]]) -> None:
        """Note that pods were placed on the next rows, and nothing else was done."""
        for row, pods in places:
            _, room = self._left.pop()
            if room > pods:
                self._left.append((row, room - pods))
        self._position = self._usage.position
