"""Pods wait in the right place, in the right order, and are woken by what may help them."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core import NODE, POD, Pod, PodSchedulingGate, PodSpec
from spinney.api.meta import Metadata
from spinney.coscheduling.cycle.queue import BackoffTimes, SchedulingQueue
from spinney.coscheduling.framework import (
    SUCCESS,
    Action,
    ClusterEvent,
    EventHint,
    PreEnqueue,
    QueuedPod,
    QueueSort,
    Status,
)
from spinney.kube.keys import Key
from spinney.runtime import Clock


class HandClock(Clock):
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> Any:
        raise NotImplementedError

    def monotonic(self) -> float:
        return self.time


class ByPriority(QueueSort):
    name = "ByPriority"

    def __init__(self) -> None:
        """Need no scheduler."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        return (-queued.priority, queued.first_queued, queued.key)


class Gates(PreEnqueue):
    name = "Gates"

    def __init__(self) -> None:
        """Need no scheduler."""

    def pre_enqueue(self, pod: Pod) -> Status:
        return Status.unresolvable("gated") if pod.gated else SUCCESS

    def events(self) -> tuple[EventHint, ...]:
        return (EventHint(POD, Action.UPDATE),)


NODE_ADDED = ClusterEvent(NODE, Action.ADD)
HINTS = {"Fit": (EventHint(NODE, Action.ADD),), "Gates": Gates().events()}


def a_pod(name: str, *, priority: int = 0, gates: tuple[str, ...] = ()) -> Pod:
    spec = PodSpec(priority=priority, scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates))
    return Pod(metadata=Metadata(name=name, namespace="ns"), spec=spec)


def a_key(name: str) -> Key:
    return Key("ns", name)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def queue(clock: HandClock) -> SchedulingQueue:
    return SchedulingQueue(clock, ByPriority(), pre_enqueue=lambda _: [Gates()], hints=HINTS)


def popped(queue: SchedulingQueue) -> list[str]:
    names = []
    while (queued := queue.pop()) is not None:
        names.append(queued.key.name)
    return names


def test_the_sort_key_decides_who_is_first(queue: SchedulingQueue) -> None:
    """Pods leave the queue by priority, then by name."""
    for name, priority in (("b", 1), ("a", 1), ("z", 9)):
        queue.add(a_pod(name, priority=priority))

    assert popped(queue) == ["z", "a", "b"]


def test_a_rejected_pod_waits_for_an_event_its_plugin_asked_for(queue: SchedulingQueue, clock: HandClock) -> None:
    """A rejected pod is not tried again until an event arrives that its rejecting plugin registered."""
    queue.add(a_pod("a"))
    queued = queue.pop()
    assert queued is not None
    queue.give_back(queued, ["Fit"])
    clock.time += 3600
    queue.notify(ClusterEvent(NODE, Action.DELETE))
    assert popped(queue) == []

    queue.notify(NODE_ADDED)

    assert popped(queue) == ["a"]


def test_a_woken_pod_rests_first(queue: SchedulingQueue, clock: HandClock) -> None:
    """A pod that was tried a moment ago backs off before it is tried again, even if something changed."""
    queue.add(a_pod("a"))
    queued = queue.pop()
    assert queued is not None
    queue.give_back(queued, ["Fit"])
    queue.notify(NODE_ADDED)
    assert popped(queue) == []
    assert queue.next_rested() == clock.time + 1.0

    clock.time += 1.0

    assert popped(queue) == ["a"]


def test_an_event_during_the_cycle_is_not_missed(queue: SchedulingQueue, clock: HandClock) -> None:
    """A pod rejected after a helpful event arrived in mid-cycle is tried again without waiting for another event."""
    queue.add(a_pod("a"))
    queued = queue.pop()
    assert queued is not None
    queue.notify(NODE_ADDED)

    queue.give_back(queued, ["Fit"])
    clock.time += 1.0

    assert popped(queue) == ["a"]


def test_a_gated_pod_stays_out_until_its_gate_goes(queue: SchedulingQueue) -> None:
    """A pod with a scheduling gate is not tried; it becomes active as soon as an update removes the gate."""
    queue.add(a_pod("a", gates=("wait",)))
    assert popped(queue) == []

    queue.update(a_pod("a"))

    assert popped(queue) == ["a"]


def test_activated_pods_do_not_rest(queue: SchedulingQueue) -> None:
    """Activation takes a pod out of back-off and out of the unschedulable place at once."""
    queue.add(a_pod("a"))
    queue.add(a_pod("b"))
    for _ in range(2):
        queued = queue.pop()
        assert queued is not None
        queue.give_back(queued, ["Fit"] if queued.key.name == "a" else [])

    queue.activate([a_key("a"), a_key("b"), a_key("unknown")])

    assert popped(queue) == ["a", "b"]


def test_a_deleted_pod_is_forgotten_in_flight_too(queue: SchedulingQueue) -> None:
    """A pod deleted while it is being scheduled does not come back when its cycle fails."""
    queue.add(a_pod("a"))
    queued = queue.pop()
    assert queued is not None

    queue.delete(a_key("a"))
    queue.give_back(queued, ["Fit"])

    assert queue.counts == {"active": 0, "backoff": 0, "unschedulable": 0, "in_flight": 0}


@pytest.mark.parametrize(("attempts", "rest"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (50, 10.0)])
def test_rest_doubles_up_to_a_limit(attempts: int, rest: float) -> None:
    """Back-off is one second, doubling to ten."""
    assert BackoffTimes().after(attempts) == rest


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "pop", "reject", "error", "bind", "node", "delete", "activate", "wait"]),
        st.sampled_from("abc"),
    ),
    max_size=60,
)


@given(STEPS)
def test_no_pod_is_lost_or_doubled(steps: list[tuple[str, str]]) -> None:
    """Whatever happens, every pod that was added and neither bound nor deleted is in exactly one place."""
    clock = HandClock()
    queue = SchedulingQueue(clock, ByPriority(), hints=HINTS)
    alive: set[str] = set()
    flying: dict[str, QueuedPod] = {}
    for step, name in steps:
        match step:
            case "add" if name not in alive:
                queue.add(a_pod(name))
                alive.add(name)
            case "pop":
                queued = queue.pop()
                if queued is not None:
                    flying[queued.key.name] = queued
            case "reject" | "error" if name in flying:
                queue.give_back(flying.pop(name), ["Fit"] if step == "reject" else [])
            case "bind" if name in flying:
                queue.done(flying.pop(name))
                alive.discard(name)
            case "node":
                queue.notify(NODE_ADDED)
            case "delete":
                queue.delete(a_key(name))
                alive.discard(name)
                flying.pop(name, None)
            case "activate":
                queue.activate([a_key(name)])
            case "wait":
                clock.time += 5.0
        assert sum(queue.counts.values()) == len(alive)
        assert queue.counts["in_flight"] == len(flying)


def test_rests_are_bounded_however_often_a_pod_failed() -> None:
    """A pod that has been tried for weeks rests as long as any other."""
    assert BackoffTimes().after(1_000_000) == 10


def test_a_held_pod_misses_nothing_it_needs(clock: HandClock) -> None:
    """Events are kept for pods in a cycle, not for those that wait with a node; both come back when returned."""
    queue = SchedulingQueue(clock, ByPriority(), hints=HINTS)
    for name in ("cycle", "held"):
        queue.add(a_pod(name))
    cycle, held = queue.pop(), queue.pop()
    assert cycle is not None
    assert held is not None
    queue.hold(held.key)
    queue.notify(NODE_ADDED)
    assert queue.counts["in_flight"] == 2
    assert queue.give_back(cycle, ["Fit"])
    assert queue.give_back(held, ["Fit"])
    assert queue.counts == {"active": 0, "backoff": 1, "unschedulable": 1, "in_flight": 0}
    assert not queue.give_back(held, ["Fit"])


def test_long_waits_are_flushed(clock: HandClock) -> None:
    """A rejected pod is tried again after a while even if no event came."""
    queue = SchedulingQueue(clock, ByPriority(), hints=HINTS)
    queue.add(a_pod("p"))
    popped = queue.pop()
    assert popped is not None
    queue.give_back(popped, ["Fit"])
    clock.time += 299
    queue.flush(300)
    assert queue.counts["unschedulable"] == 1
    clock.time += 2
    queue.flush(300)
    assert queue.counts["active"] == 1


class Broken(Gates):
    """Fails wherever it is asked."""

    def pre_enqueue(self, pod: Pod) -> Status:
        raise RuntimeError("lost my configuration")


def test_a_pod_that_could_not_be_asked_about_rests_and_says_so(clock: HandClock) -> None:
    """A PreEnqueue plugin that raises keeps the pod out for a while; the fault is told, others go on."""
    told: list[str] = []
    queue = SchedulingQueue(
        clock, ByPriority(), pre_enqueue=lambda _: [Broken()], failed=lambda queued, error: told.append(str(error))
    )
    queue.add(a_pod("a"))

    assert popped(queue) == []
    assert queue.counts["backoff"] == 1
    clock.time += 1.5
    assert popped(queue) == []
    assert told == ["plugin Gates failed at preEnqueue: raised RuntimeError: lost my configuration"] * 2


def test_a_hint_that_fails_wakes(clock: HandClock) -> None:
    """A pod whose plugin cannot tell whether an event helps is tried again rather than left waiting."""

    def broken(pod: Pod, event: ClusterEvent) -> bool:
        raise RuntimeError("lost my configuration")

    hints = {"Broken": (EventHint(NODE, Action.ADD, broken),)}
    queue = SchedulingQueue(clock, ByPriority(), hints=hints)
    queue.add(a_pod("a"))
    (queued,) = [queue.pop()]
    assert queued is not None
    queue.give_back(queued, ["Broken"])

    queue.notify(ClusterEvent(NODE, Action.ADD))
    clock.time += 60

    assert popped(queue) == ["a"]


class Incomparable(ByPriority):
    """Gives keys of several types."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        name = queued.pod.metadata.name
        if name == "b":
            raise RuntimeError("lost my configuration")
        return (name,) if name == "a" else (1,)


def test_pods_whose_keys_do_not_compare_are_all_tried(clock: HandClock) -> None:
    """A QueueSort plugin that raises, or gives keys that do not compare, loses no pod."""
    queue = SchedulingQueue(clock, Incomparable())
    for name in ("b", "a", "c", "d"):
        queue.add(a_pod(name))
        clock.time += 1

    assert popped(queue) == ["a", "c", "d", "b"]


class Leaving(int):
    """A number that ends the program when it is compared."""

    def __lt__(self, other: object) -> bool:
        sys.exit(3)


class LeavesWhenCompared(ByPriority):
    """Gives keys that end the program when they are compared."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        return (Leaving(queued.pod.metadata.name, 16),)


def test_a_comparison_of_keys_does_not_end_the_program(clock: HandClock) -> None:
    """Keys of a QueueSort plugin that call sys.exit do not compare: who came first goes first."""
    queue = SchedulingQueue(clock, LeavesWhenCompared())
    for name in ("c", "a", "b"):
        queue.add(a_pod(name))
        clock.time += 1

    assert popped(queue) == ["c", "a", "b"]


class Waiting(Gates):
    """Keeps pods out until it is told to let them in, and counts how often it was asked."""

    name = "Waiting"

    def __init__(self) -> None:
        self.ready = False
        self.asked = 0

    def pre_enqueue(self, pod: Pod) -> Status:
        self.asked += 1
        return SUCCESS if self.ready else Status.unresolvable("not yet")


def test_what_happens_before_the_first_pod_is_asked_for_is_looked_at_together(clock: HandClock) -> None:
    """A thousand nodes, read beside pods that are kept out, cost one question for each pod, and none is missed."""
    waiting, woken = Waiting(), []
    queue = SchedulingQueue(
        clock,
        ByPriority(),
        pre_enqueue=lambda _: [waiting],
        hints={"Waiting": (EventHint(NODE, Action.ADD),)},
        wake=lambda: woken.append(True),
    )
    for name in "ab":
        queue.add(a_pod(name))
    waiting.ready = True
    for _ in range(1000):
        queue.notify(NODE_ADDED)

    assert woken
    assert popped(queue) == ["a", "b"]
    assert waiting.asked == 4
