"""The ledger: who holds what on which node, for whole resources and shared devices together."""

from collections.abc import Sequence

from spinney.cluster.classes import RequestClass
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.sharing import SharedDevices
from spinney.cluster.table import Holding, NodeTable


class Ledger:
    """The node table and the shared devices, booked together. Mutable; :meth:`remove` undoes :meth:`add` exactly."""

    def __init__(self, table: NodeTable | None = None, shared: SharedDevices | None = None) -> None:
        self.table = table if table is not None else NodeTable()
        self.shared = shared if shared is not None else SharedDevices()

    def fork(self) -> "Ledger":
        """Return an independent copy."""
        return Ledger(self.table.fork(), self.shared.fork())

    def add(self, row: int, request: RequestClass, holding: Holding, groups: Sequence[str] = ()) -> None:
        """Book a pod on a row; a pod that shares devices names their groups."""
        self._book(row, request, holding, groups, 1)

    def remove(self, row: int, request: RequestClass, holding: Holding, groups: Sequence[str] = ()) -> None:
        """Take a pod off a row, held as it was added."""
        self._book(row, request, holding, groups, -1)

    def add_many(self, rows: Rows, counts: Vector, request: RequestClass) -> None:
        """Book ``counts[i]`` pods of one class on each of the distinct ``rows``; negative counts take them off."""
        self.table.add_many(rows, counts, request.requests)

    def fits(self, row: int, request: RequestClass, groups: Sequence[str] = ()) -> bool:
        """Tell whether :meth:`add` would book nothing that is not there: whole resources, and parts of ``groups``."""
        if not fits_on(self.table, row, request):
            return False
        if request.share is None:
            return True
        parts = request.share.parts_on(int(self.table.gpu_memory[row]))
        opened = self.shared.of_row(row)
        if any(opened[group].free < parts for group in groups if group in opened):
            return False
        # A device that nobody holds now is taken whole from the idle ones by the first who shares it.
        taken = sum(group not in opened or not opened[group].exists for group in groups)
        return int(self.table.idle[row, GPU]) >= request.gpus + taken

    def _book(self, row: int, request: RequestClass, holding: Holding, groups: Sequence[str], sign: int) -> None:
        table = self.table
        if sign > 0:
            table.add(row, holding, request.requests)
        else:
            table.subtract(row, holding, request.requests)
        if request.share is None:
            return
        parts = request.share.parts_on(table.gpu_memory.item(row))
        for group in groups:
            used, idle, releasing = self.shared.book(row, group, holding, sign * parts)
            if used or idle or releasing:  # mostly others share the device already
                table.used[row, GPU] += used
                table.idle[row, GPU] += idle
                table.releasing[row, GPU] += releasing


def fits_on(table: NodeTable, row: int, request: RequestClass) -> bool:
    """Tell whether the request is at most what is idle on one row."""
    return bool((table.idle[row, request.columns] >= request.amounts).all())
