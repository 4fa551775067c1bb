"""Some rows of the node table, seen as a cluster of their own.

Filters and scores that look at one node at a time give the same answer on a few rows cut out of the table as on all of
it. So when one node changed, the same kernels are asked about one row instead of five thousand.
"""

from spinney.cluster.filters import ClusterView, PlacedPods
from spinney.cluster.filters.count_vectors import Counts
from spinney.cluster.journal import RowJournal, Rows
from spinney.cluster.table import NodeTable


class TableRows(NodeTable):
    """A copy of the ledger of some rows, in the order given; no labels, taints or names: for kernels over amounts."""

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        # The constructor of the base allocates a whole table, which is what is to be avoided.
        self.axis = table.axis
        self.names = [""] * len(rows)
        self.alive = table.alive[rows]
        self.allocatable = table.allocatable[rows]
        self.used = table.used[rows]
        self.idle = table.idle[rows]
        self.releasing = table.releasing[rows]
        self.usage = RowJournal()


class PodsOfRows(PlacedPods):
    """What the pods on some rows weigh in scores."""

    def __init__(self, pods: PlacedPods, capacity: int, rows: Rows) -> None:
        self._of_rows: Counts = pods.nonzero_requested(capacity)[rows]

    def nonzero_requested(self, capacity: int) -> Counts:
        """Return cpu and memory in use as scores count them, ``[row, 2]``."""
        return self._of_rows


def cut_out(view: ClusterView, rows: Rows) -> ClusterView:
    """Return ``rows`` of ``view`` as a view, good for filters and scores over amounts alone."""
    return ClusterView(TableRows(view.table, rows), PodsOfRows(view.pods, view.table.capacity, rows))
