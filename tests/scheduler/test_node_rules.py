"""How often plugins are asked, and that both forms of a rule give the same."""

import numpy as np
import pytest

from spinney.scheduler import NodeInfo, NodeSet, Plugin, PodGroupInfo, PodInfo, SchedulerConfig, Scores, Session
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.evaluation import node_rules
from tests.scheduler.building import a_node, a_scheduler, a_session, an_inventory, placements, put_job


class Curious(Plugin):
    """Counts how often it is asked about each node."""

    name = "curious"
    per_pod = True
    asked: list[tuple[str, str]]

    def on_session_open(self, session: Session) -> None:
        """Register a predicate that notes every question."""
        Curious.asked = []
        session.add_predicate_fn(self._ask, per_pod=self.per_pod)

    def _ask(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
        Curious.asked.append((task.name, node.name))


def questions(*, per_pod: bool) -> list[tuple[str, str]]:
    """Return what a plugin is asked while three pods are placed on four nodes."""
    Curious.per_pod = per_pod
    inventory = an_inventory(*(a_node(f"n{number}") for number in range(4)))
    put_job(inventory, "job", 3)
    assert len(placements(a_scheduler(inventory, Curious))) == 3
    return Curious.asked


def test_a_rule_that_promises_so_is_asked_once_per_node() -> None:
    """Afterwards only the nodes that changed are asked about again."""
    asked = questions(per_pod=False)

    assert sorted(asked[:4]) == [("job-0", f"n{number}") for number in range(4)]
    assert set(asked[4:]) == {("job-0", "n0")}


def test_a_rule_that_keeps_notes_is_asked_every_time() -> None:
    """Every task is judged on every candidate, in order."""
    assert questions(per_pod=True) == [(f"job-{task}", f"n{node}") for task in range(3) for node in range(4)]


class PerNode(Plugin):
    """A policy node by node."""

    name = "policy"

    def on_session_open(self, session: Session) -> None:
        """Refuse small nodes, and like those with many GPUs in use."""
        session.add_predicate_fn(lambda task, job, node: node.gpus >= 2)
        session.add_node_order_fn(lambda task, node: 50.0 * node.used.get("nvidia.com/gpu", 0))


class InColumns(Plugin):
    """The same policy for all nodes at once."""

    name = "policy"

    def on_session_open(self, session: Session) -> None:
        """Register both rules in columns."""
        session.add_predicate_columns(lambda task, job, nodes: nodes.allocatable("nvidia.com/gpu") >= 2)
        session.add_node_order_columns(self._score)

    def _score(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        return 50.0 * nodes.used("nvidia.com/gpu").astype(np.float64)


def test_both_forms_give_the_same_result() -> None:
    """Where every pod goes does not depend on the form a policy is written in."""

    def outcome(plugin: type[Plugin]) -> dict[str, str]:
        inventory = an_inventory(*(a_node(f"n{number}", gpus=number) for number in range(6)))
        for number in range(4):
            put_job(inventory, f"job{number}", 1 + number, gpus=1 + number % 2)
        return placements(a_scheduler(inventory, plugin))

    assert outcome(PerNode) == outcome(InColumns)


class Wrong(Plugin):
    """Answers with something that is no verdict per node."""

    name = "wrong"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate of the wrong length."""
        session.add_predicate_columns(lambda task, job, nodes: np.ones(len(nodes) + 1, dtype=np.bool_))


def test_an_answer_of_the_wrong_shape_refuses() -> None:
    """A column that does not fit the nodes is a failure of the plugin, which is named."""
    inventory = an_inventory(a_node("n1"), a_node("n2"))
    put_job(inventory, "job", 1)
    scheduler = a_scheduler(inventory, Wrong)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert not session.binds
    (job,) = session.jobs
    assert "wrong" in session.ask.node_rules.failures(job.key, job.tasks)


def test_ties_go_to_the_first_name() -> None:
    """Equal nodes are used in the order of their names, whatever the order in which they came."""
    inventory = an_inventory(*(a_node(name, gpus=1) for name in ("c", "a", "b")))
    put_job(inventory, "job", 2)

    assert placements(a_scheduler(inventory)) == {"job-0": "a", "job-1": "b"}


def test_time_is_measured_by_plugin_and_hook() -> None:
    """A cycle says where its time went."""
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "job", 1)
    seconds = a_scheduler(inventory, Curious).run_cycle().seconds

    assert {("curious", "predicate"), ("curious", "on_session_open"), ("action", "allocate")} <= set(seconds)
    assert all(spent >= 0 for spent in seconds.values())


@pytest.mark.parametrize("seed", range(3))
def test_decisions_are_deterministic(seed: int) -> None:
    """The same cluster gives the same decisions, whatever the order in which its objects arrived."""
    names = [f"n{number}" for number in range(8)]
    np.random.default_rng(seed).shuffle(names)
    inventory = an_inventory(*(a_node(name, gpus=2 + int(name[1:]) % 3) for name in names))
    for number in range(5):
        put_job(inventory, f"job{number}", 2, gpus=1)

    assert placements(a_scheduler(inventory))["job0-0"] == "n0"


def test_plugins_share_a_metrics_registry_that_outlives_sessions() -> None:
    """What a plugin registers in one session it finds in the next."""
    scheduler: Scheduler = a_scheduler(an_inventory(a_node("n1")))

    assert scheduler.open_session().metrics is scheduler.open_session().metrics is scheduler.metrics


def test_a_session_serves_what_plugins_offer() -> None:
    """HTTP handlers of the newest session are at hand by path."""

    class Serving(Plugin):
        name = "serving"

        def on_session_open(self, session: Session) -> None:
            session.add_http_handler("/jobs", lambda query: b"[]")

    scheduler = a_scheduler(an_inventory(), Serving)
    scheduler.open_session()

    assert scheduler.http_handlers["/jobs"].fn({}) == b"[]"
    assert a_session(an_inventory(), config=SchedulerConfig()).hooks.http_handlers == {}


def test_verdicts_that_were_forgotten_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many kinds of pods are remembered changes no decision."""

    def placed() -> dict[str, str]:
        inventory = an_inventory(*(a_node(f"n{number}") for number in range(4)))
        for number in range(12):
            put_job(inventory, f"job-{number}", 2, gpus=1 + number % 3)
        return placements(a_scheduler(inventory, PerNode))

    remembered = placed()
    monkeypatch.setattr(node_rules, "_CELLS", 1)

    assert placed() == remembered
    assert len(remembered) > 6
