"""The outlook: what is free now, and what becomes free when those that run end.

Room only grows in it, since nobody new is foreseen, so the first moment at which something fits is found by halving.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.table import Matrix
from spinney.scheduler.plugins.keeping import held_by, scarce


class Release(NamedTuple):
    """Something that becomes free: when, where, and how much of each resource."""

    at: float
    row: int
    amounts: npt.NDArray[np.int64]


class Place(msgspec.Struct, frozen=True, eq=False):
    """Where and when something fits: ``held[row, resource]`` of ``rows``, and what is left there at that moment."""

    at: float
    rows: Rows
    held: Matrix
    left: Matrix


class Ends:
    """What becomes free, in the order of time: ``amounts[release, resource]``. Immutable."""

    def __init__(self, at: npt.NDArray[np.float64], rows: Rows, amounts: Matrix) -> None:
        moments = np.maximum(at, 0.0)
        order = np.argsort(moments, kind="stable")
        self.at = moments[order]
        self.rows = rows[order]
        self.amounts = amounts[order]

    @classmethod
    def of(cls, releases: Sequence[Release]) -> "Ends":
        """Return some releases, of which there is at least one."""
        return cls(
            np.array([each.at for each in releases], dtype=np.float64),
            np.array([each.row for each in releases], dtype=np.intp),
            np.stack([each.amounts for each in releases]),
        )


class Outlook:
    """Room over time. ``free[node, resource]`` is what is free now; times are seconds from now."""

    def __init__(self, free: Matrix, ends: Sequence[Ends]) -> None:
        self._free = free
        self._parts = ends

    def room(self, moment: float) -> Matrix:
        """Return what is free at a moment, ``[node, resource]``."""
        room = self._free.copy()
        for part in self._parts:
            count = int(np.searchsorted(part.at, moment, side="right"))
            np.add.at(room, part.rows[:count], part.amounts[:count])
        return room

    def earliest(self, demands: Sequence[Demand], regions: Iterable[Rows]) -> Place | None:
        """Return the first moment at which one of the regions holds the demands, and where; ``None``: never."""
        best: Place | None = None
        moments = np.unique(np.concatenate([part.at for part in self._parts]))
        for rows in regions:
            last = self._fit(float(moments[-1]) if len(moments) else 0.0, rows, demands)
            if last is None or (best is not None and best.at <= 0.0):
                continue
            now = self._fit(0.0, rows, demands)
            if now is not None:
                best = now
                continue
            low, high, found = -1, len(moments) - 1, last
            while high - low > 1:
                middle = (low + high) // 2
                tried = self._fit(float(moments[middle]), rows, demands)
                if tried is None:
                    low = middle
                else:
                    high, found = middle, tried
            if best is None or found.at < best.at:
                best = found
        return best

    def _fit(self, moment: float, rows: Rows, demands: Sequence[Demand]) -> Place | None:
        """Return how the demands fit at a moment, on the fullest nodes that take them."""
        room = self.room(moment)[rows]
        order = np.argsort(room[:, scarce(demands)], kind="stable")
        room, ordered = room[order], rows[order]
        held = held_by(room, ordered, demands)
        if held is None:
            return None
        used = held.any(axis=1)
        return Place(moment, ordered[used], held[used], (room - held)[used])
