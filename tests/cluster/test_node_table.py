"""The node table: rows, labels, ranks, forks."""

import numpy as np
import pytest

from spinney.api.affinity import Taint
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.table import Holding, NodeNotInTable, NodeTable
from tests.cluster.building import a_node


def test_a_node_offers_what_its_status_says() -> None:
    """Allocatable amounts are exact, cpu in millicores, and all of it is idle at first."""
    table = NodeTable()
    row = table.put(a_node("n1", cpu="1500m", gpus="4"))

    assert table.allocatable[row, CPU] == 1500
    assert table.allocatable[row, GPU] == 4
    assert (table.idle[row] == table.allocatable[row]).all()


def test_a_resource_seen_later_gets_a_column_for_everybody() -> None:
    """A new extended resource widens the arrays without disturbing what is in them."""
    table = NodeTable()
    first = table.put(a_node("n1"))
    for number in range(20):
        table.put(a_node(f"m{number}", resources={f"example.com/r{number}": "3"}))

    assert table.allocatable[first, CPU] == 8000
    column = table.axis.column("example.com/r19")
    assert table.allocatable[table.row("m19"), column] == 3
    assert table.allocatable[first, column] == 0


def test_a_node_that_changes_size_keeps_what_is_on_it() -> None:
    """Growing a node adds to what is idle; what pods hold stays."""
    table = NodeTable()
    row = table.put(a_node(cpu="4"))
    table.add(row, Holding.ACTIVE, table.axis.vector({"cpu": 3000}))

    table.put(a_node(cpu="10"))

    assert table.used[row, CPU] == 3000
    assert table.idle[row, CPU] == 7000


def test_rows_are_reused_and_ranks_follow_names() -> None:
    """A freed row goes to the next node; the order of rows is that of names, whatever the row."""
    table = NodeTable()
    for name in ("c", "a", "b"):
        table.put(a_node(name))
    row = table.remove("a")
    assert table.put(a_node("z")) == row

    assert [table.names[row] for row in table.rows()] == ["b", "c", "z"]


def test_labels_are_columns_of_interned_values() -> None:
    """A label column tells values apart by number and nodes without the label by -1; other values are not in it."""
    table = NodeTable()
    for name, rack in (("n1", "r1"), ("n2", "r2"), ("n3", "r1")):
        table.put(a_node(name, labels={"rack": rack}))
    table.put(a_node("n4"))
    column = table.labels.column("rack")

    assert column[table.row("n1")] == column[table.row("n3")] == table.labels.value_id("rack", "r1")
    assert column[table.row("n4")] == -1
    assert table.labels.value_id("rack", "r9") not in column
    assert (table.labels.column("zone") == -1).all()


def test_a_removed_label_leaves_the_column() -> None:
    """A label that is gone from the node is gone from its column."""
    table = NodeTable()
    row = table.put(a_node(labels={"rack": "r1", "zone": "z"}))
    table.put(a_node(labels={"zone": "z"}))

    assert table.labels.column("rack")[row] == -1
    assert table.labels.of_row(row) == {"zone": "z"}


def test_a_fork_does_not_see_what_happens_later() -> None:
    """Neither ledger nor labels nor nodes of a fork follow the table it came from, and the other way round."""
    table = NodeTable()
    row = table.put(a_node(labels={"rack": "r1"}))
    fork = table.fork()

    table.put(a_node(labels={"rack": "r2"}))
    table.put(a_node("n2"))
    fork.add(row, Holding.ACTIVE, fork.axis.vector({"cpu": 1000}))

    assert fork.labels.of_row(row) == {"rack": "r1"}
    assert "n2" not in fork
    assert table.idle[row, CPU] == 8000


def test_a_promise_that_a_fork_takes_back_can_be_given_again() -> None:
    """What is terminating and promised is free later as soon as the promise is gone, in a copy made before that too."""
    table = NodeTable()
    row = table.put(a_node(cpu="4"))
    everything = table.axis.vector({"cpu": 4000})
    table.add(row, Holding.RELEASING, everything)
    table.add(row, Holding.PIPELINED, everything)
    copy = table.fork()

    copy.subtract(row, Holding.PIPELINED, everything)

    assert copy.free_at(np.array([CPU]), np.array([row])).tolist() == [[4000]]


def test_journals_name_what_changed() -> None:
    """The static journal names changed nodes, the usage journal rows whose ledger changed."""
    table = NodeTable()
    first, second = table.put(a_node("n1")), table.put(a_node("n2"))
    static, usage = table.static.position, table.usage.position

    table.add(second, Holding.ACTIVE, table.axis.vector({"cpu": 1000}))
    table.put(a_node("n1", labels={"rack": "r1"}))

    changed = table.static.since(static)
    assert changed is not None
    assert changed.tolist() == [first]
    changed = table.usage.since(usage)
    assert changed is not None
    assert set(changed.tolist()) == {first, second}


def test_putting_the_same_node_again_changes_nothing() -> None:
    """A heartbeat that changes nothing that matters dirties no row."""
    table = NodeTable()
    table.put(a_node())
    position = table.static.position
    table.put(a_node())

    assert table.static.position == position


def test_taints_and_conditions_are_columns() -> None:
    """Taint lists are interned, and conditions become flags."""
    table = NodeTable()
    taint = Taint(key="dedicated", value="ml", effect="NoSchedule")
    row = table.put(a_node(taints=(taint,), conditions={"Ready": "False", "DiskPressure": "True"}))

    assert table.taints.lists()[table.taints.row_list[row]] == (taint,)
    assert not table.ready[row]
    assert table.disk_pressure[row]
    assert not table.memory_pressure[row]


def test_an_unknown_node_is_named() -> None:
    """Asking for the row of a node that is not there raises an error that names it."""
    with pytest.raises(NodeNotInTable, match="ghost"):
        NodeTable().row("ghost")


def test_many_nodes_fit() -> None:
    """The table grows as nodes arrive."""
    table = NodeTable()
    for number in range(1000):
        table.put(a_node(f"n{number:04d}", labels={"rack": f"r{number // 16}"}))

    assert len(table) == 1000
    assert (table.rank[table.rows()] == np.arange(1000)).all()
    assert table.labels.of_row(table.row("n0999")) == {"rack": "r62"}


def test_a_view_shows_the_same_node_until_that_changes() -> None:
    """A filter may ask about every node for every pod, so what cannot be written to is made once; forks know it."""
    table = NodeTable()
    row = table.put(a_node("n1"))
    shown = table.read_only().nodes[row]

    assert table.read_only().nodes[row] is shown
    assert table.fork().read_only().nodes[row] is shown
    assert list(table.read_only().nodes)[row] is shown

    table.put(a_node("n1", labels={"rack": "r1"}))
    changed = table.read_only().nodes[row]
    assert changed is not None
    assert changed.metadata.labels == {"rack": "r1"}
    table.remove("n1")
    assert table.read_only().nodes[row] is None


def test_names_in_a_view_compare_as_a_list() -> None:
    """A plugin that keeps what it found while the nodes are the same can tell that they are."""
    table = NodeTable()
    table.put(a_node("n1"))
    names = list(table.read_only().names)

    assert names == table.names
    assert table.read_only().names == names
    assert table.read_only().names == table.fork().read_only().names
    table.put(a_node("n2"))
    assert table.read_only().names != names
