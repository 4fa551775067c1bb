"""Shared GPUs: which devices of a node several pods divide among themselves, and how full each is.

A shared device (a *GPU group*, named by an id unique on its node) counts in the GPU column of the ledger as one whole
device. With ``active``, ``releasing`` and ``pipelined`` the parts held by users of each kind, the device is occupied
*now* if ``active + releasing > 0`` and *later* if ``active + pipelined > 0``; it takes one from ``idle`` in the first
case, and the difference of the two is what it adds to ``releasing``.
"""

from typing import NamedTuple

from spinney.cluster.devices import DEVICE
from spinney.cluster.row_books import RowBooks
from spinney.cluster.table import Holding


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
        """Tell whether somebody is on the device now; one that is only promised has not been chosen yet."""
        return self.active + self.releasing > 0

    @property
    def free_later(self) -> int:
        """Return the parts free once everything terminating is gone and every promise is kept."""
        return DEVICE - self.active - self.pipelined

    @property
    def used(self) -> int:
        """Return the parts anybody holds or was promised."""
        return self.active + self.releasing + self.pipelined

    @property
    def ledger(self) -> tuple[int, int, int]:
        """Return what the device contributes to (used, idle, releasing) of the GPU column."""
        now = self.active + self.releasing > 0
        later = self.active + self.pipelined > 0
        return int(self.used > 0), -int(now), int(now) - int(later)

    def plus(self, holding: Holding, parts: int) -> "DeviceUse":
        """Return the use after ``parts`` more (fewer, if negative) are held as ``holding``."""
        if holding is Holding.ACTIVE:
            return self._replace(active=self.active + parts)
        if holding is Holding.RELEASING:
            return self._replace(releasing=self.releasing + parts)
        return self._replace(pipelined=self.pipelined + parts)


class SharedDevices(RowBooks[str, DeviceUse]):
    """The shared devices of every node, by row, in the order they were opened. Mutable."""

    def book(self, row: int, group: str, holding: Holding, parts: int) -> tuple[int, int, int]:
        """Change one device's use; return the change it makes to (used, idle, releasing) of the GPU column."""
        devices = self._writable(row)
        before = devices.get(group, DeviceUse())
        after = before.plus(holding, parts)
        if after.used:
            devices[group] = after
        else:
            devices.pop(group, None)
            if not devices:
                self.drop_row(row)
        used, idle, releasing = (new - old for new, old in zip(after.ledger, before.ledger, strict=True))
        return used, idle, releasing
