"""Where few nodes have changed they are judged by numbers, and the decisions are those of judging by columns."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.cluster.classes import RequestClass
from spinney.cluster.table import Mask
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.evaluation import node_rules
from spinney.scheduler.evaluation.node_rules import Judged, NodeRules
from spinney.scheduler.evaluation.rule_sets import TaskRules
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.intake.inventory import Inventory
from tests.examples import examples
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang

MODELS: tuple[dict[str, str], ...] = ({}, {"nvidia.com/gpu.memory": "16000"}, {"nvidia.com/gpu.memory": "40000"})

SCORING = (
    (PluginOption("packing"),),
    (PluginOption("packing"),),
    (PluginOption("nodeplacement"), PluginOption("gpusharingorder"), PluginOption("gpupack")),
    (PluginOption("nodeplacement", {"gpu": "spread", "cpu": "spread"}), PluginOption("gpuspread")),
)


class Single(NamedTuple):
    """A pod that is a job of its own."""

    gpus: int
    fraction: str
    memory: str
    devices: int
    cpu: int
    limited: bool


class Machine(NamedTuple):
    """A node, and whether a pod on it is terminating."""

    gpus: int
    cpu: int
    model: int
    releasing: bool


whole = st.builds(Single, st.integers(0, 3), st.just(""), st.just(""), st.just(1), st.integers(0, 9), st.booleans())
parts = st.builds(
    Single,
    st.just(0),
    st.sampled_from(["0.2", "0.45", "0.5", "0.9"]),
    st.just(""),
    st.integers(1, 2),
    st.integers(0, 9),
    st.booleans(),
)
memory = st.builds(
    Single, st.just(0), st.just(""), st.sampled_from(["4000", "9000"]), st.just(1), st.integers(0, 9), st.booleans()
)
machines = st.lists(
    st.builds(Machine, st.integers(0, 4), st.sampled_from([4, 16, 64]), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=24,
)
kinds = st.lists(whole | parts | memory, min_size=1, max_size=5)
orders = st.lists(st.integers(0, 4), min_size=10, max_size=50)
"""The kinds of pods in the order in which they come: nodes are judged again when a kind comes again."""


def a_world(nodes: list[Machine], work: list[Single]) -> Inventory:
    """Return nodes of several kinds, a queue with a limit and one without, and single pods."""
    inventory = an_inventory(
        *(
            a_node(f"n{number}", gpus=each.gpus, cpu=str(each.cpu), labels=MODELS[each.model])
            for number, each in enumerate(nodes)
        )
    )
    inventory.put_queue(QueueInfo(name="open"))
    inventory.put_queue(QueueInfo(name="limited", limit=Amounts(gpu=3 * GPU)))
    for number, each in enumerate(nodes):
        if each.releasing and each.gpus:
            inventory.apply(a_pod(f"old-{number}", gpus=1, node=f"n{number}", terminating=True))
    for number, pod in enumerate(work):
        name = f"job-{number:03d}"
        annotations = {"gpu-fraction": pod.fraction, "gpu-memory": pod.memory}
        if pod.devices > 1:
            annotations["gpu-fraction-num-devices"] = str(pod.devices)
        asked = {key: value for key, value in annotations.items() if value}
        queue = "limited" if pod.limited else "open"
        single = a_pod(name, gang=name, gpus=pod.gpus, cpu=f"{pod.cpu}", annotations=asked)
        put_gang(inventory, a_gang(name, queue=queue), [single])
    return inventory


def decided(nodes: list[Machine], work: list[Single], scoring: tuple[PluginOption, ...]) -> dict[str, object]:
    """Return everything that a cycle decides with other plugins in the place of packing."""
    plugins = [each for each in SchedulerConfig().plugins if each.name != "packing"]
    config = SchedulerConfig(device_reservation=True, plugins=(*plugins, *scoring))
    result = a_scheduler(a_world(nodes, work), config=config).run_cycle()
    return {
        "binds": [(each.pod, each.node, each.gpu_groups) for each in result.binds],
        "promises": result.pipelines,
        "refused": [(each.gang, each.errors, each.message) for each in result.unschedulable],
        "failures": result.failures,
    }


_KEPT = NodeRules._class_verdicts


def checked(self: NodeRules, task: PodInfo, rules: TaskRules) -> Judged:
    """Return the verdicts that are kept about a request class, after comparing them with those of all columns anew."""
    kept, anew, rows = _KEPT(self, task, rules), self._blank(), self._nodes.all.rows
    self._refresh((self._class(task, rules)[0], anew), rules, task, rows)
    assert kept.score[rows].tolist() == anew.score[rows].tolist()
    fits = rows[anew.roomy[rows]]
    assert kept.now[fits].tolist() == anew.now[fits].tolist()
    return kept


@settings(max_examples=examples(80), deadline=None)
@given(machines, kinds, orders, st.sampled_from(SCORING))
def test_few_nodes_are_judged_as_columns_judge_them(
    nodes: list[Machine], asked: list[Single], order: list[int], scoring: tuple[PluginOption, ...]
) -> None:
    """Single pods of all kinds, with limits and room to come: numbers and columns lead to the same decisions."""
    work = [asked[kind % len(asked)] for kind in order]
    with patch.object(NodeRules, "_class_verdicts", checked):
        by_numbers = decided(nodes, work, scoring)
    with patch.object(node_rules, "_FEW", -1):
        assert by_numbers == decided(nodes, work, scoring)


class Stumbling(Plugin):
    """Scores nodes in columns, and fails where few are asked about."""

    name = "stumbling"
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add_node_order_columns(self._columns, per_job=False, few=self._few)

    def _columns(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        return np.zeros(len(nodes))

    def _few(self, request: RequestClass, rows: Sequence[int]) -> Sequence[float]:
        raise ValueError("no numbers")


class Endless(Stumbling):
    """Gives few nodes a score that is not finite."""

    name = "endless"

    def _few(self, request: RequestClass, rows: Sequence[int]) -> Sequence[float]:
        return [float("inf")] * len(rows)


def test_a_plugin_that_fails_about_few_nodes_refuses_them() -> None:
    """As with columns, a node without a score is dropped, and the failure is told."""
    for plugin in (Stumbling, Endless):
        inventory = an_inventory(a_node("n1", gpus=0), a_node("n2", gpus=1))
        for name in ("first", "second"):
            annotations = {"gpu-fraction": "0.5"}
            put_gang(inventory, a_gang(name), [a_pod(name, gang=name, annotations=annotations)])
        scheduler = a_scheduler(inventory, plugin, config=SchedulerConfig(device_reservation=True))
        result = scheduler.run_cycle()
        assert [bind.pod.name for bind in result.binds] == ["first"]
        assert result.failures[plugin.name, "node_order"]
        assert [refused.gang.name for refused in result.unschedulable] == ["second"]


class OnePerNode(Plugin):
    """Lets one pod onto each node; ``shape`` is the form in which it answers about a few."""

    name = "one-per-node"
    treats_alike = True
    shape: Callable[[list[bool]], Any] = list

    def on_session_open(self, session: Session) -> None:
        """Register the rule."""
        self._session = session
        session.add_predicate_columns(self._columns, per_job=False, few=self._few)

    def _columns(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        return np.array([not any(node.pods) for node in nodes])

    def _few(self, request: RequestClass, rows: Sequence[int]) -> Any:
        return type(self).shape([not any(self._session.nodes.info(row).pods) for row in rows])


def bound_with(shape: Callable[[list[bool]], Any]) -> tuple[Counter[str], dict[tuple[str, str], int]]:
    """Return how many of six small pods go to each of three nodes, and what failed."""
    inventory = an_inventory(*(a_node(f"n{number}", gpus=1, cpu="8") for number in range(3)))
    for name in map(str, range(6)):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, annotations={"gpu-fraction": "0.3"})])
    plugin = type("Shaped", (OnePerNode,), {"shape": staticmethod(shape)})
    result = a_scheduler(inventory, plugin, config=SchedulerConfig(device_reservation=True)).run_cycle()
    return Counter(bind.node for bind in result.binds), dict(result.failures)


@pytest.mark.parametrize("shape", [list, tuple, np.array])
def test_answers_about_few_nodes_come_in_any_sequence(shape: Callable[[list[bool]], Any]) -> None:
    """A list, a tuple and an array are answers."""
    bound, failures = bound_with(shape)
    assert bound == {"n0": 1, "n1": 1, "n2": 1}
    assert not failures


@pytest.mark.parametrize("shape", [iter, set, lambda said: said[:-1], lambda said: [], lambda said: [*said, True]])
def test_wrong_answers_about_few_nodes_refuse_them(shape: Callable[[list[bool]], Any]) -> None:
    """Too few values, too many, and what has no order let no pod pass, and the plugin is told of."""
    bound, failures = bound_with(shape)
    assert max(bound.values()) == 1
    assert failures["one-per-node", "predicate"]


class Meddling(Stumbling):
    """Changes the rows that it is asked about."""

    name = "meddling"

    def _few(self, request: RequestClass, rows: Sequence[int]) -> Sequence[float]:
        rows.clear()  # type: ignore[attr-defined]
        return []


def test_rows_that_a_plugin_is_asked_about_cannot_be_changed() -> None:
    """Trying is a failure of the plugin, which harms no placement of others."""
    inventory = an_inventory(a_node("n1", gpus=1), a_node("n2", gpus=1))
    for name in ("first", "second", "third"):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, annotations={"gpu-fraction": "0.3"})])
    result = a_scheduler(inventory, Meddling, config=SchedulerConfig(device_reservation=True)).run_cycle()
    assert result.failures["meddling", "node_order"]
    assert all("the scheduler failed" not in refused.message for refused in result.unschedulable)
