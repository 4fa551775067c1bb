"""Shared GPUs: which devices of a node several pods divide among themselves, and how full each is.

A shared device (a *GPU group*, named by an id unique on its node) counts in the GPU column of the ledger as one whole
device. With ``active``, ``releasing`` and ``pipelined`` the parts held by users of each kind, the device is occupied
*now* if ``active + releasing > 0`` and *later* if ``active + pipelined > 0``; it takes one from ``idle`` in the first
case, and the difference of the two is what it adds to ``releasing``.

The same is kept in columns, so that all nodes are asked at once where a share fits.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from spinney.cluster.devices import DEVICE
from spinney.cluster.row_books import RowBooks
from spinney.cluster.table import Holding

Parts = npt.NDArray[np.int64]
"""Parts of devices, ``[device, node]``; :data:`NO_DEVICE` where a node has fewer shared devices."""
NO_DEVICE: Final = -1


class DeviceUse(NamedTuple):
    """Parts of one shared device by how they are held."""

    active: int = 0
    releasing: int = 0
    pipelined: int = 0

    @property
    def free(self) -> int:
        """Return the parts free now."""
        return DEVICE - self.active - self.releasing

    @property
    def exists(self) -> bool:
        """Tell whether a pod is on the device now; one that is only promised has not been chosen yet."""
        return self.active + self.releasing > 0

    @property
    def free_later(self) -> int:
        """Return the parts free once everything terminating is gone and every promise is kept."""
        return DEVICE - self.active - self.pipelined

    @property
    def used(self) -> int:
        """Return the parts that pods hold or were promised."""
        return self.active + self.releasing + self.pipelined

    @property
    def ledger(self) -> tuple[int, int, int]:
        """Return what the device contributes to (used, idle, releasing) of the GPU column."""
        active, releasing, pipelined = self
        now, later = active + releasing > 0, active + pipelined > 0
        return int(active + releasing + pipelined > 0), -int(now), int(now) - int(later)

    def plus(self, holding: Holding, parts: int) -> "DeviceUse":
        """Return the use after ``parts`` more (fewer, if negative) are held as ``holding``."""
        active, releasing, pipelined = self
        if holding is Holding.ACTIVE:
            return DeviceUse(active + parts, releasing, pipelined)
        if holding is Holding.RELEASING:
            return DeviceUse(active, releasing + parts, pipelined)
        return DeviceUse(active, releasing, pipelined + parts)


_UNUSED: Final = DeviceUse()


class SharedDevices(RowBooks[str, DeviceUse]):
    """The shared devices of every node, by row, in the order they were opened. Mutable."""

    def __init__(self, shared: Mapping[int, dict[str, DeviceUse]] = {}, columns: Parts | None = None) -> None:
        super().__init__(shared)
        self._columns = columns if columns is not None else np.full((3, 0, 0), NO_DEVICE, dtype=np.int64)
        """What the three methods below return, ``[method, device, node]``."""
        self._numbers: dict[int, list[list[int]]] = {}
        """The same of rows that were asked about one by one, ``[method][device]``."""

    def free_later(self, rows: npt.NDArray[np.intp]) -> Parts:
        """Return what is free of each device of ``rows`` once what is terminating is gone and promises are kept."""
        return self._at(0, rows)

    def kept_later(self, rows: npt.NDArray[np.intp]) -> Parts:
        """Return the same of the devices that are shared then; others are whole again."""
        return self._at(1, rows)

    def free_now(self, rows: npt.NDArray[np.intp]) -> Parts:
        """Return what is free now, and promised to nobody, of the devices of ``rows`` that pods are on."""
        return self._at(2, rows)

    def free_later_on(self, row: int) -> Sequence[int]:
        """Return :meth:`free_later` of one row."""
        return self._on(0, row)

    def kept_later_on(self, row: int) -> Sequence[int]:
        """Return :meth:`kept_later` of one row."""
        return self._on(1, row)

    def free_now_on(self, row: int) -> Sequence[int]:
        """Return :meth:`free_now` of one row."""
        return self._on(2, row)

    def fork(self) -> Self:
        """Return a copy that shares each row's book until either side writes."""
        self._own.clear()
        return type(self)(self._by_row, self._columns.copy())

    def drop_row(self, row: int) -> None:
        super().drop_row(row)
        self._write(row)

    def book(self, row: int, group: str, holding: Holding, parts: int) -> tuple[int, int, int]:
        """Change one device's use; return the change it makes to (used, idle, releasing) of the GPU column."""
        devices = self._writable(row)
        before = devices.get(group, _UNUSED)
        after = before.plus(holding, parts)
        if after.used:
            devices[group] = after
        else:
            devices.pop(group, None)
            if not devices:
                super().drop_row(row)
        self._write(row)
        (used, idle, releasing), (was_used, was_idle, was_releasing) = after.ledger, before.ledger
        return used - was_used, idle - was_idle, releasing - was_releasing

    def _write(self, row: int) -> None:
        """Bring the columns of one row up to date."""
        devices = self.of_row(row)
        _, most, rows = self._columns.shape
        if row >= rows or len(devices) > most:
            if not devices:
                return
            self._enlarge(max(most, len(devices)), max(rows, 2 * row + 1))
        before = self._numbers.pop(row, None)
        if before is None or len(before[0]) > len(devices):
            self._columns[:, :, row] = NO_DEVICE
        if devices:
            numbers = self._numbers[row] = _numbers_of(devices)
            self._columns[:, : len(devices), row] = numbers

    def _at(self, which: int, rows: npt.NDArray[np.intp]) -> Parts:
        try:
            found: Parts = self._columns[which].take(rows, axis=1)
        except IndexError:  # nothing was ever shared on some of them
            self._enlarge(self._columns.shape[1], 2 * int(rows.max()) + 1)
            found = self._columns[which].take(rows, axis=1)
        return found

    def _on(self, which: int, row: int) -> Sequence[int]:
        known = self._numbers.get(row)
        if known is None:
            known = self._numbers[row] = _numbers_of(self.of_row(row))
        return known[which]

    def _enlarge(self, devices: int, rows: int) -> None:
        _, most, last = self._columns.shape
        more = ((0, 0), (0, devices - most), (0, rows - last))
        self._columns = np.pad(self._columns, more, constant_values=NO_DEVICE)


def _numbers_of(devices: Mapping[str, DeviceUse]) -> list[list[int]]:
    """Return what is free of the devices of a node: later, later where they are shared then, and now."""
    later: list[int] = []
    kept: list[int] = []
    now: list[int] = []
    for active, releasing, pipelined in devices.values():
        free = DEVICE - active - pipelined
        later.append(free)
        kept.append(free if active + pipelined else NO_DEVICE)
        now.append(min(DEVICE - active - releasing, free) if active + releasing > 0 else NO_DEVICE)
    return [later, kept, now]
