"""Free room as plain numbers: what nodes would have if some pods left, without evicting anything, even virtually.

Room is necessary, not sufficient: other rules may still refuse a node. So what does not fit here is never simulated,
and what does is left to a simulation.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, GPU, MEMORY, Vector, padded
from spinney.cluster.table import Mask, Matrix
from spinney.scheduler.fairshare.amounts import Amounts
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class FreedRoom:
    """What is free on each node once what is terminating is gone. Mutable: pods leave and arrive in the books."""

    def __init__(self, session: Session, devices: dict[int, dict[str, int]], free: Matrix | None = None) -> None:
        """``free`` is what nodes have of whole resources, if not what they have now."""
        self._session = session
        self._table = session.nodes.table
        self._width = self._table.idle.shape[1]
        self._memory = self._table.gpu_memory
        self._devices = devices
        if free is not None:
            self.free = free

    @cached_property
    def free(self) -> Matrix:
        """Return whole resources, ``[node, resource]``: a large copy, made when more than sums is wanted."""
        return self._table.idle + self._table.releasing

    @classmethod
    def of(cls, session: Session) -> "FreedRoom":
        """Return the room there is without any victim."""
        shared = session.ledger.shared
        devices = {
            # A device that only terminating pods are on is a whole one again, and is counted as such.
            row: {group: use.free_later for group, use in shared.of_row(row).items() if use.active + use.pipelined}
            for row in shared.rows()
        }
        return cls(session, devices)

    @classmethod
    def empty(cls, session: Session) -> "FreedRoom":
        """Return the room there would be if nothing ran."""
        return cls(session, {}, session.nodes.table.allocatable)

    def copy(self) -> "FreedRoom":
        """Return an independent copy."""
        devices = {row: dict(of_row) for row, of_row in self._devices.items()}
        return FreedRoom(self._session, devices, self.free.copy(order="K"))

    def name_of(self, row: int) -> str:
        """Return the name of the node of a row."""
        return self._session.nodes.table.names[row]

    def release(self, tasks: Sequence[PodInfo]) -> None:
        """Book that placed tasks leave."""
        for task in tasks:
            row, request = task.row, task.request
            self.free[row] += padded(request.requests, self._width)
            if request.share is None:
                continue
            parts = request.share.parts_on(int(self._memory[row]))
            devices = self._devices.setdefault(row, {})
            for group in task.gpu_groups:
                left = devices.get(group, 0) + parts
                devices[group] = left
                if left >= DEVICE:
                    del devices[group]
                    self.free[row, GPU] += 1

    def of_row(self, row: int) -> tuple[Vector, dict[str, int]]:
        """Return what one node has, to :meth:`restore` it."""
        return self.free[row].copy(), dict(self._devices.get(row, ()))

    def restore(self, row: int, before: tuple[Vector, dict[str, int]]) -> None:
        """Set one node back to what it had."""
        self.free[row], self._devices[row] = before

    def take(self, task: PodInfo, row: int) -> None:
        """Book that a task arrives on a row."""
        request = task.request
        self.free[row] -= padded(request.requests, self._width)
        if request.share is None:
            return
        parts = request.share.parts_on(int(self._memory[row]))
        devices = self._devices.setdefault(row, {})
        fitting = sorted((left, group) for group, left in devices.items() if left >= parts)[: request.share.devices]
        for left, group in fitting:
            devices[group] = left - parts
        for _ in range(request.share.devices - len(fitting)):
            self.free[row, GPU] -= 1
            devices[f"new {len(devices)}"] = DEVICE - parts

    def fitting(self, request: RequestClass, among: Mask) -> Mask:
        """Return the nodes of ``among`` with room for a request, ``[node]``."""
        fits = among.copy()
        for column, amount in zip(request.columns.tolist(), request.amounts.tolist(), strict=True):
            fits &= self.free[:, column] >= amount
        if request.share is not None:
            short = fits & (self.free[:, GPU] < request.share.devices)
            for row in np.flatnonzero(short).tolist():
                fits[row] = self._has_devices(request, row)
        return fits

    def fits_on(self, request: RequestClass, row: int) -> bool:
        """Tell whether a node has room for a request."""
        if not (self.free[row, request.columns] >= request.amounts).all():
            return False
        return request.share is None or self._has_devices(request, row)

    def tightest(self, request: RequestClass, among: Mask) -> int | None:
        """Return the row of ``among`` with room for a request that has least to spare, or ``None``."""
        rows = np.flatnonzero(self.fitting(request, among))
        if not len(rows):
            return None
        return int(rows[np.argmin(self.free[rows, GPU if request.requires_gpu else CPU])])

    def total(self, among: Mask | None = None) -> Amounts:
        """Return what is free on nodes of ``among``, or all, in what queues are charged for; never too little."""
        rows = self._session.nodes.all.rows
        rows = rows if among is None else rows[among[rows]]
        cpu, memory, gpus = (int(np.maximum(self._column(column)[rows], 0).sum()) for column in (CPU, MEMORY, GPU))
        parts = sum(
            max(left, 0)
            for row, devices in self._devices.items()
            if among is None or among[row]
            for left in devices.values()
        )
        return Amounts(cpu, memory, gpus * DEVICE + parts)

    def _column(self, column: int) -> Vector:
        """Return what nodes have of one resource, ``[node]``."""
        if "free" in self.__dict__:
            return self.free[:, column]
        found: Vector = self._table.idle[:, column] + self._table.releasing[:, column]
        return found

    def _has_devices(self, request: RequestClass, row: int) -> bool:
        share = request.share
        assert share is not None, "only requests for a share are asked about"
        parts = share.parts_on(int(self._memory[row]))
        if parts > DEVICE:
            return False
        shared = sum(left >= parts for left in self._devices.get(row, {}).values())
        return bool(shared + max(int(self.free[row, GPU]), 0) >= share.devices)
