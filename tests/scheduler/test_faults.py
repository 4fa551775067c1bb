"""Whatever a plugin gets wrong, wherever it is asked: the scheduler lives, and other gangs get what is theirs."""

import pytest
from structlog.testing import capture_logs

from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.results import CycleResult
from tests.scheduler.building import a_runtime
from tests.scheduler.faults import FAULTY, HOOKS, NO_ANSWER, Fault, Hook, a_faulty_scheduler, a_world

MEANINGLESS = frozenset({Fault.WRONG_TYPE, Fault.NAN, Fault.WRONG_LENGTH})
"""Faults that a function whose answer means nothing cannot have."""
SEARCHING = {"reclaim", "preempt", "consolidation"}
ACTIONS = ("allocate", "share", *sorted(SEARCHING), "stale")


def served(result: CycleResult, kind: str) -> set[str]:
    """Return the actions that did something for the gangs of a kind."""
    gangs = {bind.gang.name for bind in result.binds} | {promise.gang.name for promise in result.pipelines}
    gangs |= {eviction.gang.name for eviction in result.evictions}
    return {action for action in ACTIONS if f"{kind}-{action}" in gangs}


def told(result: CycleResult) -> str:
    """Return everything said about the bad gangs."""
    return "\n".join(refused.message for refused in result.unschedulable if refused.gang.name.startswith("bad"))


def test_every_action_has_something_to_do() -> None:
    """Without a faulty plugin all gangs of the cluster are served."""
    result = Scheduler(SchedulerConfig(), a_world(), runtime=a_runtime()).run_cycle()
    assert served(result, "good") == served(result, "bad") == set(ACTIONS)


CASES = [
    pytest.param(hook, fault, id=f"{hook.name}-{fault.name.lower()}")
    for hook in HOOKS
    for fault in Fault
    if hook.answers or fault not in MEANINGLESS
]


@pytest.mark.parametrize(("hook", "fault"), CASES)
def test_a_fault_stays_with_whom_it_concerns(hook: Hook, fault: Fault) -> None:
    """The cycle ends, every good gang is served, nothing gets past a function that should have been asked."""
    with capture_logs():
        result = a_faulty_scheduler(fault, hook).run_cycle()

    # A search for victims has a budget, which a slow function uses up.
    expected = set(ACTIONS) - (SEARCHING if fault is Fault.SLOW else set())
    assert served(result, "good") >= expected
    if fault in NO_ANSWER:
        assert any(plugin == FAULTY for plugin, _ in result.failures), "it is counted, and logged"
        if hook.closed:
            assert not served(result, "bad") - {"stale"}
            assert FAULTY in told(result)
