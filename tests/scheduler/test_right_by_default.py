"""A plugin needs no flag: what it reads, counts and changes is taken into account, whatever that is."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from spinney.scheduler import Event, EventHandler, NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang, put_job


class LeadersOffSpot(Plugin):
    """Refuses spot nodes to leaders."""

    name = "leaders-off-spot"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate about labels."""
        session.add_predicate_fn(self._allowed)

    def _allowed(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if task.labels.get("role") == "leader" and node.labels.get("kind") == "spot":
            return f"leader {task.name} may not run on spot node {node.name}"
        return None


@pytest.mark.parametrize("leader", range(4))
def test_a_rule_about_a_label_is_asked_about_the_pod_that_has_it(leader: int) -> None:
    """A leader is kept off the nodes that it is refused, whichever pod of its gang it is."""
    inventory = an_inventory(a_node("a-spot", labels={"kind": "spot"}), a_node("b"))
    pods = (
        a_pod(f"p{each}", gang="job", gpus=1, labels={"role": "leader" if each == leader else "worker"})
        for each in range(4)
    )
    put_gang(inventory, a_gang("job", minimum=4), pods)

    found = placements(a_scheduler(inventory, LeadersOffSpot))

    assert len(found) == 4
    assert found[f"p{leader}"] == "b"


class NamespaceLimit(Plugin):
    """At most three pods of a namespace, counted by an event handler."""

    name = "namespace-limit"
    before_nodes = False

    def on_session_open(self, session: Session) -> None:
        """Count, and register a predicate or a pre-predicate."""
        self._pods: Counter[str] = Counter()
        session.add_event_handler(EventHandler(allocate=self._count, deallocate=self._discount))
        if self.before_nodes:
            session.add_pre_predicate_fn(lambda task, job: self._pods[task.namespace] < 3)
        else:
            session.add_predicate_fn(lambda task, job, node: self._pods[task.namespace] < 3)

    def _count(self, event: Event) -> None:
        self._pods[event.task.namespace] += 1

    def _discount(self, event: Event) -> None:
        self._pods[event.task.namespace] -= 1


@pytest.mark.parametrize("before_nodes", [False, True])
def test_a_limit_of_a_namespace_holds(before_nodes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written with an event handler and a predicate, or a pre-predicate, it places three pods and no more."""
    monkeypatch.setattr(NamespaceLimit, "before_nodes", before_nodes)
    inventory = an_inventory(a_node("n0"), a_node("n1"))
    put_job(inventory, "elastic", 5, minimum=2)
    put_job(inventory, "other", 3, minimum=1)

    assert len(placements(a_scheduler(inventory, NamespaceLimit))) == 3


LIMIT = {"pods": 2}


def _counts_questions() -> Callable[[PodInfo, PodGroupInfo], bool]:
    asked = 0

    def pre_predicate(task: PodInfo, job: PodGroupInfo) -> bool:
        nonlocal asked
        asked += 1
        return asked <= 2

    return pre_predicate


def _draws_lots() -> Callable[[PodInfo, PodGroupInfo], bool]:
    lots = iter([True, True, False])
    return lambda task, job: next(lots)


def _remembers_names() -> Callable[[PodInfo, PodGroupInfo], bool]:
    names: set[str] = set()

    def pre_predicate(task: PodInfo, job: PodGroupInfo) -> bool:
        names.add(task.name)
        return len(names) <= 2

    return pre_predicate


def _looks_at_the_job() -> Callable[[PodInfo, PodGroupInfo], bool]:
    return lambda task, job: sum(bool(each.node_name) for each in job.tasks) < LIMIT["pods"]


def _looks_at_itself() -> Callable[[PodInfo, PodGroupInfo], bool]:
    return lambda task, job: sum(bool(each.node_name) for each in job.tasks if each is not task) < LIMIT["pods"]


@pytest.mark.parametrize(
    "make", [_counts_questions, _draws_lots, _remembers_names, _looks_at_the_job, _looks_at_itself]
)
def test_what_a_function_keeps_or_looks_at_counts(
    make: Callable[[], Callable[[PodInfo, PodGroupInfo], bool]],
) -> None:
    """A function that changes its own state, or reads what placements change, is asked about each pod in turn."""

    class Drawn(Plugin):
        name = "drawn"

        def on_session_open(self, session: Session) -> None:
            session.add_pre_predicate_fn(make())

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 4, minimum=2)

    assert sorted(placements(a_scheduler(inventory, Drawn))) == ["job-0", "job-1"]


def test_state_that_another_hook_changes_counts() -> None:
    """What a predicate reads may be written by another function of the plugin, for each job."""

    class Alternating(Plugin):
        name = "alternating"

        def on_session_open(self, session: Session) -> None:
            self.turn = 0
            session.add_pre_job_allocation_fn(self._next)
            session.add_predicate_fn(lambda task, job, node: node.name == f"n{self.turn % 2}")

        def _next(self, job: PodGroupInfo) -> None:
            self.turn += 1

    inventory = an_inventory(a_node("n0"), a_node("n1"))
    for number in range(4):
        put_job(inventory, f"job{number}", 1)

    assert placements(a_scheduler(inventory, Alternating)) == {
        "job0-0": "n1",
        "job1-0": "n0",
        "job2-0": "n1",
        "job3-0": "n0",
    }


def test_a_refused_job_does_not_speak_for_another() -> None:
    """Jobs that ask for the same are tried each, where a plugin may tell them apart."""

    class OnlyTheSecond(Plugin):
        name = "only-the-second"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(lambda task, job, node: job.name == "job1")

    inventory = an_inventory(a_node("n0"))
    for number in range(3):
        put_job(inventory, f"job{number}", 1)

    assert set(placements(a_scheduler(inventory, OnlyTheSecond))) == {"job1-0"}


def test_reasons_name_the_pod_and_the_node_they_are_about() -> None:
    """Answers that are used again never carry the text that was given about something else."""
    inventory: Inventory = an_inventory(a_node("spot-1", labels={"kind": "spot"}))
    for number in range(2):
        pod = a_pod(f"p{number}", gang=f"job{number}", gpus=1, labels={"role": "leader"})
        put_gang(inventory, a_gang(f"job{number}"), [pod])

    found = a_scheduler(inventory, LeadersOffSpot).run_cycle().unschedulable
    assert [unschedulable.gang.name for unschedulable in found] == ["job0", "job1"]
    for unschedulable in found:
        expected = f"leader p{unschedulable.gang.name[-1]} may not run on spot node spot-1"
        assert expected in unschedulable.message


def test_chance_is_chance() -> None:
    """A predicate that draws lots is asked about every pod and node."""
    drawn: list[float] = []

    class Lots(Plugin):
        name = "lots"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(lambda task, job, node: drawn.append(random.random()))

    inventory = an_inventory(*(a_node(f"n{number}") for number in range(3)))
    put_job(inventory, "job", 4)
    placements(a_scheduler(inventory, Lots))

    assert len(drawn) == 12


class BesideLots(Plugin):
    """Draws lots for every pod and node, and has another rule that is asked at the moment of each placement."""

    name = "beside-lots"

    def on_session_open(self, session: Session) -> None:
        """Register both."""
        self.asked: Counter[tuple[str, str]] = Counter()
        lots = random.Random(7)

        def wins(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
            self.asked[task.name, node.name] += 1
            return lots.random() < 2

        session.add_predicate_fn(wins)
        session.add_predicate_fn(lambda task, job, node: True, stateful=True)
        session.memory["asked"] = self.asked


def test_a_rule_that_answers_otherwise_each_time_is_asked_once_about_a_pod_and_a_node() -> None:
    """Also where another rule has to be asked on the spot, so that the pods of the gang might be planned without it."""
    inventory = an_inventory(a_node("a", gpus=8), a_node("b", gpus=8))
    put_job(inventory, "job", 3)
    scheduler = a_scheduler(inventory, BesideLots)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    pairs = [(f"job-{pod}", node) for pod in range(3) for node in ("a", "b")]
    assert session.memory["asked"] == Counter(dict.fromkeys(pairs, 1))
