"""An answer that is no answer fails closed, and says whose it is: plugin, function and what it returned."""

from collections.abc import Callable
from itertools import cycle as cycle_through
from typing import Any

import numpy as np
import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from spinney.api.struct import encode
from spinney.scheduler import CapacityVerdict, CycleResult, NodeInfo, Plugin, PodInfo, Session
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, a_session, an_inventory, put_gang, put_job

Register = Callable[[Session, Callable[..., Any]], None]


def a_plugin(register: Register, answer: Any) -> type[Plugin]:
    """Return a plugin whose one function always answers ``answer``; a function is asked for it."""

    def odd(*args: Any) -> Any:
        return answer(*args) if callable(answer) else answer

    class Odd(Plugin):
        name = "odd-one"

        def on_session_open(self, session: Session) -> None:
            register(session, odd)

    return Odd


def cycle(register: Register, answer: Any, *, pods: int = 1) -> CycleResult:
    """Run a cycle with such a plugin and a job on two nodes."""
    inventory = an_inventory(a_node("n1"), a_node("n2"))
    put_job(inventory, "job", pods)
    return a_scheduler(inventory, a_plugin(register, answer)).run_cycle()


def score(session: Session, fn: Callable[..., Any]) -> None:
    """Register a score, asked node by node."""
    session.add_node_order_fn(fn)


def scores(session: Session, fn: Callable[..., Any]) -> None:
    """Register a score, asked about all nodes."""
    session.add_node_order_columns(fn)


def mask(session: Session, fn: Callable[..., Any]) -> None:
    """Register a predicate, asked about all nodes."""
    session.add_predicate_columns(fn)


def pre_predicate(session: Session, fn: Callable[..., Any]) -> None:
    session.add_pre_predicate_fn(fn)


def predicate(session: Session, fn: Callable[..., Any]) -> None:
    session.add_predicate_fn(fn)


def subset(session: Session, fn: Callable[..., Any]) -> None:
    """Register a division of nodes."""
    session.add_subset_nodes_fn(fn)


def capacity(session: Session, fn: Callable[..., Any]) -> None:
    """Register a capacity check, before that of proportion."""
    session.add_is_job_over_capacity_fn(fn)
    session.hooks.job_over_capacity.reverse()


@pytest.mark.parametrize(
    ("register", "answer", "said"),
    [
        (score, float("nan"), "returned nan for node n1 and for 1 other(s), expected a finite number"),
        (score, float("inf"), "returned inf for node n1 and for 1 other(s), expected a finite number"),
        (score, None, "returned None, expected a finite number"),
        (score, "5", "returned '5' (str), expected a finite number"),
        (score, [1.0], "returned [1.0] (list), expected a finite number"),
        (scores, np.array([np.nan, -np.inf]), "returned nan for node n1 and for 1 other(s), expected a finite number"),
        (scores, None, "returned None, expected one number per node"),
        (scores, ["1", "2"], "returned values of type <U1, expected one number per node"),
        (scores, np.zeros(3), "returned 3 values for 2 nodes, expected one number per node"),
        (scores, [1.0], "returned 1 value for 2 nodes, expected one number per node"),
        (mask, np.array([True]), "returned 1 value for 2 nodes, expected one truth value per node"),
        (mask, [[True], []], "returned [[True], []] (list), expected one truth value per node"),
        (mask, [[True], [True]], "returned values of shape (2, 1) for 2 nodes, expected one truth value per node"),
        (mask, "refused", "returned 'refused' (str), expected one truth value per node"),
        (mask, None, "returned None, expected one truth value per node"),
        (mask, np.array([0, 1]), "returned values of type int64, expected one truth value per node"),
        (predicate, 1, "returned 1 (int), expected None or True where a pod fits, False or a reason where not"),
        (pre_predicate, [], "returned [] (list), expected None or True where a pod fits, False or a reason where not"),
        (subset, [None], "returned a list with None in it, expected a list of node sets"),
        (
            subset,
            lambda job, group, tasks, nodes: nodes,
            "returned NodeSet([n1, n2]) (NodeSet), expected a list of node sets",
        ),
        (subset, lambda *args: iter(()), "expected a list of node sets, or None where the plugin"),
        (capacity, None, "returned None, expected a CapacityVerdict"),
        (
            capacity,
            CapacityVerdict(ok="no"),  # type: ignore[arg-type]
            "returned a CapacityVerdict whose ok is 'no' (str), expected True or False",
        ),
        (
            capacity,
            CapacityVerdict(ok=False, message=None),  # type: ignore[arg-type]
            "returned a CapacityVerdict whose message is None, expected text",
        ),
    ],
)
def test_an_answer_that_is_none_refuses_and_is_told(register: Register, answer: Any, said: str) -> None:
    """Nothing is placed; what the gang is told, and the log, name plugin, function and what was returned."""
    with structlog.testing.capture_logs() as logged:
        result = cycle(register, answer)

    assert result.binds == []
    (refused,) = result.unschedulable
    assert "odd-one" in refused.message
    assert said in refused.message
    (entry,) = [each for each in logged if each.get("plugin") == "odd-one"]
    assert "odd" in entry["function"]
    assert entry["error"] in said or said in entry["error"]


@pytest.mark.parametrize(
    ("register", "answer"),
    [
        (predicate, "no room in caf\udce9"),
        (pre_predicate, "no room in caf\udce9"),
        (capacity, CapacityVerdict(ok=False, reason="Full", message="no room in caf\udce9")),
    ],
)
def test_a_reason_that_no_encoding_has_is_told_with_escapes(register: Register, answer: Any) -> None:
    """It is told as a condition can hold it: a text that cannot be written let every cycle fail."""
    (refused,) = cycle(register, answer).unschedulable
    assert "no room in caf\\udce9" in refused.message.encode().decode()


def test_a_score_beyond_all_floats_is_told() -> None:
    """The gang names the plugin; it said that the scheduler had failed."""
    (refused,) = cycle(score, lambda *_: 10**400).unschedulable
    assert "plugin odd-one" in refused.message
    assert "returned a number too large for a float, expected a finite number" in refused.message


@pytest.mark.parametrize(
    "answer", [{"no key!": "x"}, {"": "x"}, {"key": "caf\udce9"}, {"caf\udce9": "x"}, {"key": 5}, ["key"]]
)
def test_annotations_that_no_pod_can_have_are_left_out(answer: object) -> None:
    """The pod is bound without them: it was refused by the API server each time, or could not be written."""
    result = cycle(lambda session, fn: session.add_bind_request_mutate_fn(fn), answer)
    (bind,) = result.binds
    assert bind.annotations == {}
    assert ("odd-one", "bind_request_mutate") in result.failures


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ({"Example.com/Rank": "1"}, {"Example.com/Rank": "1"}),
        ({np.str_("example.com/rank"): np.str_("1")}, {"example.com/rank": "1"}),
    ],
)
def test_annotations_are_written_as_a_pod_can_have_them(answer: object, written: dict[str, str]) -> None:
    """Prefixes may have capitals in annotations, as in Kubernetes; texts of numpy become texts that can be encoded."""
    (bind,) = cycle(lambda session, fn: session.add_bind_request_mutate_fn(fn), answer).binds
    assert encode(bind.annotations) == encode(written)


def test_annotations_that_are_too_large_for_the_pod_are_left_out() -> None:
    """Kubernetes binds a pod with any, and then refuses each status of it, so that it would never run."""
    inventory = an_inventory(a_node("n0"))
    put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job", annotations={"own": "x" * 200_000})])

    class Writes(Plugin):
        name = "writes"
        bytes = 100_000

        def on_session_open(self, session: Session) -> None:
            session.add_bind_request_mutate_fn(lambda task, node: {"example.com/map": "x" * self.bytes})

    class WritesLess(Writes):
        name = "writes-less"
        bytes = 10_000

    with structlog.testing.capture_logs() as logged:
        result = a_scheduler(inventory, Writes, WritesLess).run_cycle()

    (bind,) = result.binds
    assert {key: len(value) for key, value in bind.annotations.items()} == {"example.com/map": 10_000}
    assert result.failures == {("writes", "bind_request_mutate"): 1}
    (entry,) = [each for each in logged if each.get("plugin") == "writes"]
    assert entry["error"].endswith("expected at most 262144 bytes with its own")


def test_what_numpy_gives_for_one_node_is_an_answer() -> None:
    """An array without dimensions, as ``np.where`` gives one, is the value in it."""

    class WithNumpy(Plugin):
        name = "with-numpy"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(lambda task, job, node: one(node.gpus > 0))
            session.add_node_order_fn(lambda task, node: one(1e9 if node.name == "n2" else 0.0))
            session.add_gpu_order_fn(lambda task, node, gpu: one(1.0))

    def one(value: Any) -> Any:
        return np.array(value)

    inventory = an_inventory(a_node("n1"), a_node("n2"), a_node("n3", gpus=0))
    inventory.apply(a_pod("sharing", annotations={"gpu-fraction": "0.5"}))
    result = a_scheduler(inventory, WithNumpy, config=SchedulerConfig(device_reservation=True)).run_cycle()
    assert not result.failures
    assert [bind.node for bind in result.binds] == ["n2"]


def test_a_key_of_numpy_that_is_no_number_counts_as_equal() -> None:
    """As one of Python does."""
    for nan in (float("nan"), np.float32("nan")):
        result = cycle(lambda session, fn: session.add_job_order_key(fn), nan)
        assert result.binds
        assert ("odd-one", "job_order") in result.failures


def test_a_refusal_without_a_text_is_told_without_brackets() -> None:
    """A predicate that answers with an empty text has only refused."""
    (refused,) = cycle(predicate, "").unschedulable
    assert "refused by plugin odd-one" in refused.message
    assert "()" not in refused.message


def test_an_answer_is_told_the_same_in_each_cycle() -> None:
    """Where an object is in memory is not part of it: it would be news each time."""
    (refused,) = cycle(predicate, lambda *_: iter(())).unschedulable
    assert "returned tuple_iterator, expected None or True" in refused.message


def test_only_the_nodes_without_a_score_are_dropped() -> None:
    """A node that got a proper score can be used, and the fault is counted."""

    def picky(_: PodInfo, node: NodeInfo) -> float:
        return float("nan") if node.name == "n1" else 1.0

    result = cycle(score, picky)

    assert [bind.node for bind in result.binds] == ["n2"]
    assert result.failures == {("odd-one", "node_order"): 1}


@pytest.mark.parametrize("answer", [True, 3, np.float32(0.5), np.int64(2), np.True_, 10**30])
def test_whatever_is_a_number_is_a_score(answer: object) -> None:
    """Python's and numpy's numbers all count, and so do truth values."""
    result = cycle(score, answer)

    assert len(result.binds) == 1
    assert not result.failures


@pytest.mark.parametrize("answer", [float("nan"), None, "later", 0.5, True, np.True_])
def test_an_order_that_is_no_number_says_equal(answer: object) -> None:
    """A comparison must answer with a whole number; anything else, such as ``a > b``, tells nothing apart."""

    def orders(session: Session, fn: Callable[..., Any]) -> None:
        session.add_job_order_fn(fn)
        session.add_queue_order_fn(fn)

    inventory = an_inventory(a_node("n1"))
    for name in ("a", "b"):
        put_job(inventory, name, 1)
    result = a_scheduler(inventory, a_plugin(orders, answer)).run_cycle()

    assert len(result.binds) == 2
    assert result.failures[("odd-one", "job_order")] > 0


def test_keys_that_cannot_be_compared_tell_nothing_apart() -> None:
    """A task order by keys of different types counts as saying equal."""
    answers = cycle_through([1, "b", None])
    result = cycle(lambda session, fn: session.add_task_order_key(fn), lambda _: next(answers), pods=3)

    assert len(result.binds) == 3
    assert set(result.failures) == {("odd-one", "task_order")}


@pytest.mark.parametrize("answer", [None, "protected", 1])
def test_a_victim_is_only_taken_where_plugins_really_agree(answer: object) -> None:
    """A filter that answers with a reason, or forgets to answer, does not agree."""

    def filters(session: Session, fn: Callable[..., Any]) -> None:
        session.add_preempt_victim_filter_fn(fn)
        session.add_reclaim_victim_filter_fn(fn)

    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "a", 1)
    put_job(inventory, "b", 1)
    session = a_session(inventory, a_plugin(filters, answer))
    one, other = session.jobs

    assert not session.ask.is_victim("preempt", one, other)
    assert not session.ask.is_victim("reclaim", one, other)
    assert session.failures.counts == {("odd-one", "preempt_victim_filter"): 1, ("odd-one", "reclaim_victim_filter"): 1}


@pytest.mark.parametrize(("answer", "refusal"), [(np.True_, None), ("no", "no"), (None, "refused by plugin odd-one")])
def test_a_scenario_passes_only_where_plugins_really_agree(answer: object, refusal: str | None) -> None:
    """True agrees, a text says why not, and nothing is no."""
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "a", 1)
    odd = a_plugin(lambda session, fn: session.add_preempt_scenario_validator_fn(fn), answer)
    session = a_session(inventory, odd)
    (job,) = session.jobs

    assert session.ask.scenario_refusal("preempt", Scenario(preemptor=job, pending=job.tasks, victims={})) == refusal


def test_failures_are_counted_for_prometheus() -> None:
    """The metric says which plugin failed where, and how often: when the job was tried, and when it was explained."""
    registry = CollectorRegistry()
    CycleMetrics(registry).cycle(cycle(scores, None), 0.1)

    exported = generate_latest(registry).decode()
    assert 'spinney_scheduling_plugin_failures_total{hook="node_order",plugin="odd-one"} 2.0' in exported
