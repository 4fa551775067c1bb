"""Identical tasks placed in one pass end up exactly where they would one by one."""

from collections.abc import Callable, Mapping
from unittest.mock import patch

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement import filling
from spinney.scheduler.topology.levels import TopologyLevels
from tests.examples import examples
from tests.scheduler.building import RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang

Shape = tuple[int, int, int]
"""GPUs of a node, GPUs in use, GPUs being released."""


class Moody(Plugin):
    """Prefers nodes by how many GPUs they have left, in no monotone way, and refuses some."""

    name = "moody"

    def on_session_open(self, session: Session) -> None:
        """Register a score and a predicate that read what is on the node."""
        session.add_node_order_fn(self._score)
        session.add_predicate_fn(lambda task, job, node: node.idle_gpus != 3)

    def _score(self, task: PodInfo, node: NodeInfo) -> float:
        del task
        return (node.idle_gpus * 7) % 5 * 20.0


shapes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2)).filter(lambda s: s[1] + s[2] <= s[0]),
    min_size=1,
    max_size=6,
)
jobs = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), min_size=1, max_size=4)


def outcome(
    nodes: list[Shape], work: list[tuple[int, int]], config: SchedulerConfig, *plugins: type[Plugin], packed: bool
) -> dict[str, tuple[str, str]]:
    """Return where every pod of some jobs ends up."""
    inventory = an_inventory(
        *(a_node(f"n{i}", gpus=gpus, labels={RACK: f"r{i % 2}"}) for i, (gpus, _, _) in enumerate(nodes))
    )
    inventory.put_topology(TopologyLevels("t", (RACK,)))
    for number, (_, used, releasing) in enumerate(nodes):
        for each in range(used + releasing):
            name = f"old-{number}-{each}"
            inventory.apply(a_pod(name, gpus=1, node=f"n{number}", terminating=each >= used))
    for number, (count, gpus) in enumerate(work):
        constraint = TopologyConstraintInfo("t", preferred=RACK) if packed and number % 2 else None
        gang = a_gang(f"job{number}", minimum=max(count - 2, 1), topology=constraint)
        put_gang(inventory, gang, (a_pod(f"j{number}-{i}", gang=f"job{number}", gpus=gpus) for i in range(count)))
    scheduler = a_scheduler(inventory, *plugins, config=config)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    return {task.name: (task.status.value, task.node_name) for job in session.jobs for task in job.tasks}


def slowly(*args: object, **kwargs: object) -> bool:
    """Stand in for the check that lets runs take a quick way."""
    del args, kwargs
    return False


def both_ways(run: Callable[[], Mapping[str, tuple[str, str]]]) -> None:
    """Assert that quick ways and task by task give the same result."""
    quick = run()
    with patch.object(filling, "_may_go_together", slowly):
        slow = run()
    assert quick == slow


SPREAD = SchedulerConfig(
    plugins=tuple(
        PluginOption("nodeplacement", {"gpu": "spread", "cpu": "spread"}) if each.name == "nodeplacement" else each
        for each in SchedulerConfig().plugins
    )
)


@settings(max_examples=examples(40), deadline=None)
@given(shapes, jobs, st.booleans())
def test_filling_gives_what_one_by_one_gives(nodes: list[Shape], work: list[tuple[int, int]], packed: bool) -> None:
    """With bin packing, nodes are filled down the ranking in one pass."""
    both_ways(lambda: outcome(nodes, work, SchedulerConfig(), packed=packed))


@settings(max_examples=examples(25), deadline=None)
@given(shapes, jobs, st.booleans())
def test_spreading_gives_what_one_by_one_gives(nodes: list[Shape], work: list[tuple[int, int]], packed: bool) -> None:
    """With spreading, equally good nodes are used in waves."""
    both_ways(lambda: outcome(nodes, work, SPREAD, packed=packed))


@settings(max_examples=examples(25), deadline=None)
@given(shapes, jobs)
@example([(6, 0, 0), (5, 0, 0)], [(4, 1)])
def test_any_plugin_gives_what_one_by_one_gives(nodes: list[Shape], work: list[tuple[int, int]]) -> None:
    """A plugin's per-node functions that read the node are asked again whenever the node changed."""
    both_ways(lambda: outcome(nodes, work, SchedulerConfig(), Moody, packed=False))


@settings(max_examples=examples(40), deadline=None)
@given(shapes, st.lists(st.tuples(st.sampled_from([1, 1, 1, 3]), st.integers(0, 2)), min_size=2, max_size=12))
def test_single_pods_go_where_the_last_one_left_off(nodes: list[Shape], work: list[tuple[int, int]]) -> None:
    """Gangs of one that follow each other fill node after node, whatever else is placed between them."""
    both_ways(lambda: outcome(nodes, work, SchedulerConfig(), packed=False))


class ChangesItsMind(Plugin):
    """Prefers nodes by name, the first before two pods are placed and the last afterwards."""

    name = "changes-its-mind"

    def on_session_open(self, session: Session) -> None:
        """Register the score, and listen."""
        self._session = session
        self._placed = 0
        session.add_node_order_columns(self._score, per_job=False, monotone=True)
        session.add_event_handler(EventHandler(allocate_many=self._count))

    def _score(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        del task, job
        sign = 1.0 if self._placed >= 2 else -1.0
        return np.array([sign * 1e6 * float(name[1:]) for name in nodes.names])

    def _count(self, event: BatchEvent) -> None:
        self._placed += len(event.tasks)
        self._session.scores_changed()


def test_a_plugin_that_sees_nodes_differently_is_followed_at_once() -> None:
    """Where alike pods come one by one, a node that is no longer the best is not filled to its end."""
    inventory = an_inventory(*(a_node(f"n{i}", gpus=8) for i in range(3)))
    for number in range(4):
        put_gang(inventory, a_gang(f"job{number}"), [a_pod(f"p{number}", gang=f"job{number}", gpus=1)])
    scheduler = a_scheduler(inventory, ChangesItsMind)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert [bind.node for bind in session.binds] == ["n0", "n0", "n2", "n2"]


def test_alike_gangs_go_on_where_the_last_left_off() -> None:
    """Gangs of three, one after the other, fill node after node; the last that does not fit takes nothing."""
    inventory = an_inventory(*(a_node(f"n{i}", gpus=4) for i in range(2)))
    for number in range(3):
        name = f"job{number}"
        put_gang(inventory, a_gang(name, minimum=3), (a_pod(f"{name}-{i}", gang=name, gpus=1) for i in range(3)))
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    placed = [(bind.pod.name, bind.node) for bind in session.binds]
    assert placed == [
        *((f"job0-{i}", "n0") for i in range(3)),
        ("job1-0", "n0"),
        ("job1-1", "n1"),
        ("job1-2", "n1"),
    ]
    assert [key.name for key in session.fit_errors] == ["job2"]
