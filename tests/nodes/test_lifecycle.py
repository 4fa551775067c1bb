"""The life of a pod as a pure function: what has happened by a given time, and when to look again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.nodes.behaviour import PodTimings
from spinney.nodes.lifecycle import NextStep, PodRun, PodStage, adopt, advance, begin
from spinney.nodes.pods import BoundPod, Clique
from spinney.nodes.startup import Parent
from tests.nodes.builders import NOON, a_behaviour, a_bound_pod, after

TWO_INITS = [{"name": "first"}, {"name": "second"}]
WAITS = [{"name": "grove-initc", "args": ["--podcliques=g-0-leader:2"]}]
IN_GANG = {"metadata": {"labels": {"grove.io/podgang": "g-0", "grove.io/podclique": "g-0-worker"}}}


def at(
    seconds: float, pod: BoundPod, behaviour: PodTimings | PodRun, *, ready: dict[Clique, int] | None = None
) -> NextStep:
    """Look at a pod that was taken at noon, so many seconds later."""
    run = begin(behaviour, ip="10.128.0.1", now=NOON) if isinstance(behaviour, PodTimings) else behaviour
    return advance(pod, run, now=after(seconds), ready_pods=lambda clique: (ready or {}).get(clique, 0))


def test_without_latencies_a_pod_is_ready_in_one_step() -> None:
    """A pod with init containers and no latencies is running and ready the moment it arrives."""
    decision = at(0, a_bound_pod(initContainers=TWO_INITS), a_behaviour())
    assert (decision.run.phase, decision.run.ready, decision.wake) == ("Running", True, None)


def test_each_step_waits_for_its_latency() -> None:
    """Start, init and ready latencies follow one another, and each decision says when the next is due."""
    pod = a_bound_pod(initContainers=TWO_INITS)
    behaviour = a_behaviour(start=2, init=3, ready=5)
    wakes = []
    run: PodTimings | PodRun = behaviour
    moment: float = 0
    while True:
        decision = at(moment, pod, run)
        run = decision.run
        if decision.wake is None:
            break
        moment = (decision.wake - NOON).total_seconds()
        wakes.append((moment, decision.run.stage.value, len(decision.run.init_finished)))
    assert wakes == [(2, "creating", 0), (5, "initialising", 0), (8, "initialising", 1), (13, "running", 2)]
    assert decision.run.ready


def test_a_late_look_does_not_stretch_a_life() -> None:
    """Steps happen when they were due, not when somebody looked."""
    run = at(100, a_bound_pod(), a_behaviour(start=2, ready=5)).run
    assert (run.since, run.containers_ready_changed) == (after(2), after(7))


def test_a_pod_that_never_starts_waits_for_nothing() -> None:
    """A pod whose containers are never created stays pending without being looked at again."""
    decision = at(1000, a_bound_pod(), a_behaviour(start=None))
    assert (decision.run.phase, decision.wake) == ("Pending", None)


def test_a_pod_that_never_gets_ready_runs() -> None:
    """Running and not ready is a state of its own."""
    decision = at(1000, a_bound_pod(), a_behaviour(ready=None))
    assert (decision.run.phase, decision.run.ready, decision.wake) == ("Running", False, None)


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_a_pod_ends_with_its_exit_code(policy: str, code: int, phase: str) -> None:
    """Where the restart policy does not start it again, the exit code decides how a pod ended."""
    run = at(60, a_bound_pod(restartPolicy=policy), a_behaviour(runs_for=5, exit_code=code)).run
    assert (run.phase, run.ready, run.restarts) == (phase, False, 0)


def test_restarts_back_off() -> None:
    """The first restart is immediate, the following ones wait twice as long each time."""
    pod = a_bound_pod(restartPolicy="OnFailure")
    behaviour = a_behaviour(runs_for=5, exit_code=1)
    assert at(5, pod, behaviour).run.restarts == 1
    down = at(10, pod, behaviour)
    assert (down.run.stage, down.wake) == (PodStage.BACK_OFF, after(20))
    assert at(20, pod, behaviour).run.restarts == 2
    assert at(25, pod, behaviour).wake == after(45)


def test_a_pod_that_exits_at_once_does_not_spin() -> None:
    """Even without any back-off configured, a pod that ends at once is restarted only so often."""
    decision = at(10, a_bound_pod(), a_behaviour(runs_for=0, restart_back_off=0))
    assert decision.run.restarts < 10
    assert decision.wake is not None
    assert decision.wake > after(10)


def test_a_pod_waits_until_enough_of_its_parents_are_ready() -> None:
    """The start-up container ends when as many pods of the parent clique, in the same gang, are ready."""
    pod = a_bound_pod(IN_GANG, initContainers=WAITS)
    leader = ("test", "g-0", "g-0-leader")
    waiting = at(0, pod, a_behaviour(), ready={leader: 1})
    assert (waiting.run.stage, waiting.waits, waiting.wake) == (PodStage.INITIALISING, (Parent(leader, 2),), None)
    done = at(30, pod, waiting.run, ready={leader: 2})
    assert done.run.ready
    assert done.run.init_finished == (after(30),)


def test_a_sidecar_does_not_hold_up_the_others() -> None:
    """An init container that keeps running is passed at once, whatever init containers take."""
    sidecar = [{"name": "proxy", "restartPolicy": "Always"}]
    assert at(0, a_bound_pod(initContainers=sidecar), a_behaviour(init=10)).run.ready


def test_readiness_gates_hold_readiness_back() -> None:
    """A pod whose gate is closed has ready containers and is not ready."""
    gate = [{"conditionType": "example.com/in-load-balancer"}]
    closed = at(5, a_bound_pod(readinessGates=gate), a_behaviour())
    assert (closed.run.containers_ready, closed.run.ready) == (True, False)
    opened = {"status": {"conditions": [{"type": "example.com/in-load-balancer", "status": "True"}]}}
    assert at(9, a_bound_pod(opened, readinessGates=gate), closed.run).run.ready_changed == after(9)


@pytest.mark.parametrize(("stop", "grace", "gone"), [(2, 30, 2), (60, 30, 30), (2, 0, 0)])
def test_a_deleted_pod_goes_after_its_stop_time_at_most_its_grace(stop: float, grace: int, gone: float) -> None:
    """Whichever is shorter, the time a pod takes to stop or its grace period, it is gone then.

    It counts from when the node sees the deletion: the API server cuts the fraction of the second off.
    """
    deletion = {
        "metadata": {
            "deletionTimestamp": after(grace).isoformat(),
            "deletionGracePeriodSeconds": grace,
        }
    }
    pod = a_bound_pod(deletion)
    run = at(0, a_bound_pod(), a_behaviour(stop=stop)).run
    seen = at(0.9, pod, run)
    assert (seen.wake, seen.remove) == ((after(0.9 + gone), False) if gone else (None, True))
    assert not gone or at(0.5 + gone, pod, seen.run).wake == seen.wake
    assert at(0.9 + gone, pod, seen.run).remove


def test_a_running_pod_is_adopted_as_it_is() -> None:
    """After a restart of the nodes a running, ready pod goes on, with its address, restarts and end."""
    status = {
        "phase": "Running",
        "startTime": NOON.isoformat(),
        "podIP": "10.128.0.9",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [
            {"name": "main", "restartCount": 4, "state": {"running": {"startedAt": after(10).isoformat()}}}
        ],
    }
    pod = a_bound_pod({"status": status})
    run = adopt(pod, a_behaviour(runs_for=100), ip="10.128.0.77", now=after(50))
    decision = at(50, pod, run)
    assert decision.run.appearance == run.appearance
    assert (run.ip, run.restarts, decision.wake) == ("10.128.0.9", 4, after(110))


SECONDS = st.integers(0, 20)


@given(
    start=SECONDS,
    init=SECONDS,
    ready=st.none() | SECONDS,
    runs_for=st.none() | SECONDS,
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    code=st.sampled_from([0, 1]),
    looks=st.lists(st.integers(0, 300), max_size=8),
)
def test_how_often_one_looks_does_not_matter(
    *, start: int, init: int, ready: int | None, runs_for: int | None, policy: str, code: int, looks: list[int]
) -> None:
    """A run looked at often and one looked at once are the same at the same time, and wakes lie in the future."""
    pod = a_bound_pod(initContainers=TWO_INITS, restartPolicy=policy)
    behaviour = a_behaviour(start=start, init=init, ready=ready, runs_for=runs_for, exit_code=code)
    run = begin(behaviour, ip="10.128.0.1", now=NOON)
    for look in sorted(looks):
        run = at(look, pod, run).run
    often, once = at(300, pod, run), at(300, pod, behaviour)
    assert often == once
    assert once.wake is None or once.wake > after(300)
