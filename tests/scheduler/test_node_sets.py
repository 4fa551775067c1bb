"""Node sets: what they are, how plugins divide them, and that jobs are tried on each in turn."""

from collections.abc import Sequence

import numpy as np
import pytest
from structlog.testing import capture_logs

from spinney.gangs.tree import Member
from spinney.scheduler import NodeSet, Plugin, PodGroupInfo, PodInfo, SchedulerConfig, Session
from tests.scheduler.building import a_node, a_scheduler, a_session, an_inventory, placements, put_job


class Splitting(Plugin):
    """Divides nodes as the class attribute says: lists of names, ``None`` or an exception."""

    answer: Sequence[Sequence[str]] | Exception | None = None
    asked: list[list[str]]

    def on_session_open(self, session: Session) -> None:
        """Register the division."""
        type(self).asked = []
        session.add_subset_nodes_fn(self._subset)

    def _subset(
        self, job: PodGroupInfo, group: Member, tasks: Sequence[PodInfo], nodes: NodeSet
    ) -> Sequence[NodeSet] | None:
        if group is not job.root:
            return None
        self.asked.append(nodes.names)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            return None
        return [nodes.where(np.isin(nodes.names, names)) for names in self.answer]


class P(Splitting):
    """The first to divide."""

    name = "P"


class R(Splitting):
    """The second to divide."""

    name = "R"


def a_divided_session(p: object, r: object) -> Session:
    """Return a session on six nodes, divided by two plugins."""
    P.answer, R.answer = p, r  # type: ignore[assignment]
    inventory = an_inventory(*(a_node(f"n{number}") for number in range(1, 7)))
    put_job(inventory, "job", 1)
    return a_session(inventory, P, R)


def sets_of(session: Session) -> list[list[str]]:
    """Return the node sets of the only job."""
    (job,) = session.jobs
    return [nodes.names for nodes in session.ask.subset_nodes(job, job.root, job.tasks, session.nodes.all)]


def test_a_node_set_is_a_sequence_in_name_order() -> None:
    """It has a length, can be indexed, sliced and iterated, and equals another with the same nodes."""
    nodes = a_session(an_inventory(a_node("b"), a_node("a"), a_node("c"))).nodes.all

    assert len(nodes) == 3
    assert [node.name for node in nodes] == nodes.names == ["a", "b", "c"]
    assert nodes[1].name == "b"
    assert nodes[1:].names == ["b", "c"]
    assert nodes.where(np.array([True, False, True])).names == ["a", "c"]
    assert nodes[:2] == nodes.having([nodes[0], nodes[1]])
    assert len({nodes, nodes[:]}) == 1


def test_a_node_set_gives_columns() -> None:
    """Labels and amounts come aligned with the nodes."""
    inventory = an_inventory(a_node("a", gpus=2, labels={"x": "1"}), a_node("b", gpus=4))
    nodes = a_session(inventory).nodes.all

    assert nodes.labelled("x").tolist() == [True, False]
    assert nodes.labelled("x", "2").tolist() == [False, False]
    assert nodes.idle("nvidia.com/gpu").tolist() == [2, 4]
    assert nodes.allocatable("example.com/unheard-of").tolist() == [0, 0]


def test_plugins_nest() -> None:
    """The second plugin divides every set of the first, in order."""
    session = a_divided_session([["n1", "n2", "n3"], ["n4", "n5", "n6"]], [["n1", "n4"], ["n2", "n3", "n5", "n6"]])

    assert sets_of(session) == [["n1"], ["n2", "n3"], ["n4"], ["n5", "n6"]]


def test_a_plugin_without_a_say_leaves_the_sets_whole() -> None:
    """``None`` means not relevant for this job."""
    assert sets_of(a_divided_session(None, [["n1"], ["n2"]])) == [["n1"], ["n2"]]
    assert sets_of(a_divided_session([["n1"], ["n2"]], None)) == [["n1"], ["n2"]]
    assert sets_of(a_divided_session(None, None)) == [[f"n{number}" for number in range(1, 7)]]


def test_an_empty_list_means_that_nothing_fits() -> None:
    """A relevant plugin that finds no set leaves nothing to try."""
    assert sets_of(a_divided_session([], None)) == []


def test_a_job_that_is_left_no_nodes_says_which_plugin_leaves_none() -> None:
    """Nothing was tried, so nothing else would say why the job waits."""
    P.answer, R.answer = [], None
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "job", 1)

    (refused,) = a_scheduler(inventory, P).run_cycle().unschedulable

    assert "plugin P leaves no nodes for it" in refused.message


def test_a_node_may_be_in_several_sets() -> None:
    """Sets may overlap, and need not cover all nodes."""
    assert sets_of(a_divided_session([["n1", "n2"], ["n2", "n3"]], None)) == [["n1", "n2"], ["n2", "n3"]]


def test_a_raising_plugin_fails_the_job_for_this_cycle() -> None:
    """The error is logged with the plugin's name, the job waits, and other jobs go on."""
    P.answer, R.answer = RuntimeError("no map of the cluster"), None
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "job", 1)
    with capture_logs() as logs:
        result = a_scheduler(inventory, P).run_cycle()

    assert not result.binds
    assert (
        "plugin P could not divide the nodes: Splitting._subset raised RuntimeError: no map of the cluster"
        in result.unschedulable[0].message
    )
    assert any(entry.get("plugin") == "P" and entry["log_level"] == "error" for entry in logs)


def test_a_job_is_tried_on_each_set_until_one_holds_it() -> None:
    """The first set is too small for the gang; the second takes it whole."""
    P.answer = [["n1"], ["n2", "n3"]]
    inventory = an_inventory(*(a_node(name, gpus=2) for name in ("n1", "n2", "n3")))
    put_job(inventory, "job", 4)

    assert set(placements(a_scheduler(inventory, P)).values()) == {"n2", "n3"}


def test_users_do_not_hear_of_node_sets() -> None:
    """What is shown to users speaks of nodes and pods only."""
    P.answer = [["n1"], ["n2"]]
    inventory = an_inventory(a_node("n1", gpus=1), a_node("n2", gpus=1))
    put_job(inventory, "job", 2)
    (unschedulable,) = a_scheduler(inventory, P).run_cycle().unschedulable

    assert "set" not in unschedulable.message.lower()


@pytest.mark.parametrize(
    ("verbosity", "expected"),
    [
        (0, []),
        (4, ["Performing P logic", "Result of P logic is 2 subsets"]),
        (7, ["Performing P logic", "Result of P logic is 2 subsets", "Result of P logic is [n1], [n2, n3]"]),
    ],
)
def test_developer_logs_say_how_nodes_were_divided(verbosity: int, expected: list[str]) -> None:
    """At 4 what was done and how many sets came of it, at 7 also which nodes."""
    P.answer = [["n1"], ["n2", "n3"]]
    inventory = an_inventory(*(a_node(name) for name in ("n1", "n2", "n3")))
    put_job(inventory, "job", 1)
    session = a_session(inventory, P, config=SchedulerConfig(verbosity=verbosity))
    with capture_logs() as logs:
        sets_of(session)

    assert [entry["event"] for entry in logs if "P logic" in entry["event"]] == expected
