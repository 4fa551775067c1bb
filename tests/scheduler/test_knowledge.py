"""What is known about a function: what it reaches, what it reads only to give a reason, and when its order holds."""

import logging
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, ClassVar

import msgspec
import pytest

from spinney.scheduler import DoesNotFit, NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.knowledge.reaching import reach_of
from spinney.scheduler.knowledge.refusals import reasons_of
from tests.scheduler.building import a_gang, a_node, a_pod, a_session, an_inventory, placements, put_gang, put_job
from tests.scheduler.building import a_scheduler as a_scheduler_with

LIMITS = {"gold": 3}
POOLS = ("a", "b")
SETTINGS: Any = object()


class Tier(Enum):
    GOLD = "gold"


class Chosen(msgspec.Struct, frozen=True):
    key: str = "pool"


class Policy:
    """Functions as plugins have them, with what they keep."""

    most: ClassVar[int] = 3

    def __init__(self) -> None:
        self.pods: Counter[str] = Counter()
        self.names: defaultdict[str, int] = defaultdict(int)
        self.chosen = Chosen()
        self.helper = self.below
        self.opaque = object()
        self.log = logging.getLogger("policy")

    def below(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return self.pods[task.namespace] < self.most

    def by_helper(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return self.below(task, job) or self.helper(task, job) or self.is_calm

    @property
    def is_calm(self) -> bool:
        return not self.pods

    def by_comprehension(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return all(self.pods[name] < self.most for name in sorted(task.labels))

    def by_arguments(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return task.labels.get(self.chosen.key) in POOLS and task.labels["tier"] == Tier.GOLD.value

    def with_log(self, task: PodInfo, job: PodGroupInfo) -> str | None:
        self.log.info("asked")
        return None if math.floor(LIMITS["gold"]) > 2 else f"no room for {task.name}"

    def writes(self, task: PodInfo, job: PodGroupInfo) -> bool:
        self.pods[task.name] = 1
        return True

    def appends(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return bool(self.pods.update([task.name]))

    def inserts(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return self.names[task.name] < 3

    def hands_itself_over(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return bool(vars(self))

    def reaches_something(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return self.opaque is SETTINGS

    def takes_time(self, task: PodInfo, job: PodGroupInfo) -> bool:
        return time.monotonic() > 3

    def imports(self, task: PodInfo, job: PodGroupInfo) -> bool:
        import os  # noqa: PLC0415 - some do

        return bool(os.environ)


@pytest.mark.parametrize("name", ["below", "by_helper", "by_comprehension", "by_arguments", "with_log"])
def test_functions_over_plain_data_are_understood(name: str) -> None:
    """Attributes, helpers, properties, arguments, globals and logs are seen through."""
    assert reach_of(getattr(Policy(), name)) is not None


@pytest.mark.parametrize(
    "name",
    ["writes", "appends", "inserts", "hands_itself_over", "reaches_something", "takes_time", "imports"],
)
def test_what_writes_or_reaches_anything_else_is_not(name: str) -> None:
    """Such a function is asked each time."""
    assert reach_of(getattr(Policy(), name)) is None


def test_closures_are_seen_through() -> None:
    """Variables of the surrounding function count as data, and as a change when they are changed."""
    count, lots, pods = 0, random.Random(0), [1, 2]

    def add() -> None:
        nonlocal count
        count += 1

    def writes(task: PodInfo, job: PodGroupInfo) -> int:
        nonlocal count
        count += 1
        return count

    reach = reach_of(lambda task, job: count < 3)
    listed = reach_of(lambda task, job: len(pods) < 3)
    assert reach is not None
    assert listed is not None
    before, listed_before = reach.state(), listed.state()
    assert reach.state() == before
    add()
    pods.append(3)
    assert reach.state() != before
    assert listed.state() != listed_before
    assert reach_of(partial(lambda most, task, job: count < most, 3)) is not None
    assert reach_of(writes) is None
    assert reach_of(lambda task, job: lots.random() < 0.5) is None
    assert reach_of(lambda task, job: random.random() < 0.5) is None
    assert reach_of(print) is None


def test_a_session_may_be_read_for_what_never_changes() -> None:
    """The example of the documentation is understood; a function that looks at nodes through the session is not."""
    session = a_session(an_inventory(a_node("n1")))

    assert reach_of(lambda task, job: job.is_preemptible_job(session.is_inference_preemptible())) is not None
    assert reach_of(lambda task, job: session.node("n1").idle_gpus > 0) is None


def test_what_becomes_something_else_is_no_longer_understood() -> None:
    """Data that turns into an object of its own is noticed."""
    policy = Policy()
    reach = reach_of(policy.below)
    assert reach is not None
    policy.pods = object()  # type: ignore[assignment] # as a plugin might
    assert reach.state() is None


def _with_reason(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    if node.gpus < 2:
        return f"node {node.name} has too few GPUs for {task.name}"
    return None


def _raising(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
    if node.gpus < 2:
        raise DoesNotFit(f"node {node.name} has too few GPUs for {task.name}")


def _deciding_by_text(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    text = f"{task.name} on {node.name}"
    return text if text == "job-0 on n0" else None


def _by_condition(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    return f"{task.namespace}/{task.uid} may not" if task.name == "job-0" and node.name == "n0" else None


def _catching(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    try:
        return f"{task.labels['reserved']} is reserved for {node.name}"
    except KeyError:
        return None


def test_a_text_that_cannot_be_made_may_decide() -> None:
    """A function that catches what making its reason raises is asked about what it reads for it."""
    inventory = an_inventory(a_node("n0"))
    pods = [a_pod(f"p{each}", gang="job", labels={"reserved": "yes"} if each == 1 else {}) for each in range(3)]
    put_gang(inventory, a_gang("job", minimum=1), pods)

    class Drawn(Plugin):
        name = "drawn"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(_catching)

    assert set(placements(a_scheduler_with(inventory, Drawn))) == {"p0"}


@pytest.mark.parametrize(
    ("predicate", "alike"), [(_with_reason, True), (_raising, True), (_deciding_by_text, False), (_by_condition, False)]
)
def test_what_is_read_for_a_reason_alone_decides_nothing(
    predicate: Callable[[PodInfo, PodGroupInfo, NodeInfo], Any], alike: bool
) -> None:
    """Names in a text that is returned or raised at once do not make pods unlike; names that are compared do."""

    class Drawn(Plugin):
        name = "drawn"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(predicate)

    inventory = an_inventory(a_node("n0", gpus=1), a_node("n1"))
    put_job(inventory, "job", 2)
    session = a_session(inventory, Drawn)
    (job,) = session.jobs
    judge = session.ask.node_rules
    candidates, rules = judge.candidates(job.tasks[0], session.nodes.all), judge.rules(job.tasks[0])

    assert judge.alike(job.tasks, 0, int(candidates.rows[0]), rules) == (2 if alike else 1)
    assert (reasons_of(predicate) is not None) == (predicate is not _deciding_by_text)


def test_refusals_by_name_hold_for_that_name() -> None:
    """A pod that is refused by its name leaves the node to the others."""

    class Drawn(Plugin):
        name = "drawn"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(_by_condition)

    inventory = an_inventory(a_node("n0"), a_node("n1", gpus=1))
    put_job(inventory, "job", 3)

    assert placements(a_scheduler_with(inventory, Drawn)) == {"job-0": "n1", "job-1": "n0", "job-2": "n0"}


@pytest.mark.parametrize("by_key", [False, True])
def test_orders_follow_what_they_count(by_key: bool) -> None:
    """A queue's jobs are ordered by what was placed by then, whether a plugin compares them or gives a key."""

    class Turns(Plugin):
        name = "turns"

        def on_session_open(self, session: Session) -> None:
            def held(job: PodGroupInfo) -> int:
                return sum(
                    bool(task.node_name)
                    for other in session.jobs
                    if other.name[0] == job.name[0]
                    for task in other.tasks
                )

            if by_key:
                session.add_job_order_key(held)
            else:
                session.add_job_order_fn(lambda left, right: held(left) - held(right))

    inventory = an_inventory(a_node("n0", gpus=4))
    for name in ("a1", "a2", "a3", "b1", "b2"):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, gpus=1)])
    scheduler = a_scheduler_with(inventory, Turns)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert [bind.pod.name for bind in session.binds] == ["a1", "b1", "a2", "b2"]


def test_a_comparison_and_a_key_give_the_same_victims() -> None:
    """Victims are taken in one order, however a plugin writes it, also after some were taken."""

    def evicted(register: Callable[[Session], None]) -> list[str]:
        class Drawn(Plugin):
            name = "drawn"

            def on_session_open(self, session: Session) -> None:
                register(session)

        inventory = an_inventory(a_node("n0", gpus=6))
        for number in range(6):
            gang = a_gang(f"run{number}", priority=10)
            put_gang(inventory, gang, [a_pod(f"run{number}", gang=f"run{number}", gpus=1, node="n0")])
        for number in range(3):
            gang = a_gang(f"job{number}", priority=90)
            put_gang(inventory, gang, [a_pod(f"job{number}", gang=f"job{number}", gpus=1)])
        scheduler = a_scheduler_with(inventory, Drawn)
        session = scheduler.open_session()
        scheduler.run_actions(session)
        return [eviction.pod.name for eviction in session.evictions]

    def rank(job: PodGroupInfo) -> int:
        return int(job.name[-1]) * 5 % 7

    by_key = evicted(lambda session: session.add_job_order_key(rank))
    by_comparison = evicted(lambda session: session.add_job_order_fn(lambda left, right: rank(left) - rank(right)))

    assert by_key == by_comparison == ["run4", "run1", "run5"]
