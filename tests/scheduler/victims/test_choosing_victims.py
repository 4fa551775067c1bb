"""Who goes: the minimum runtime that a gang asks for, and the work that it would lose."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spinney.api.labels import CHECKPOINT_GRACE, LAST_CHECKPOINT, MIN_RUNTIME
from spinney.api.time import timestamp
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import NOW, a_gang, a_node, a_pod, an_inventory, put_gang
from tests.scheduler.victims.worlds import run_on

HOUR = timedelta(hours=1)


def put_running(
    inventory: Inventory, name: str, *, node: str = "n0", since: timedelta, annotations: dict[str, str] | None = None
) -> None:
    """Put a gang of one pod that has run for so long; all are equally old."""
    gang = replace(a_gang(name, created=NOW - 9 * HOUR), last_start=NOW - since)
    put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=1, node=node, annotations=annotations)])


def taken(inventory: Inventory, action: str = "preempt", **settings: Any) -> list[str]:
    """Put a job of higher priority; return who goes for it."""
    put_gang(inventory, a_gang("urgent", priority=70), [a_pod("urgent-0", gang="urgent", gpus=1)])
    return [eviction.pod.name for eviction in run_on(inventory, action, **settings).evictions]


def test_the_job_that_loses_least_work_goes() -> None:
    """Of equals the one goes that saved its work last, however long it has run."""
    inventory = an_inventory(a_node("n0", gpus=3))
    put_running(inventory, "a", since=2 * HOUR)
    saved = {LAST_CHECKPOINT: timestamp(NOW - timedelta(minutes=1))}
    put_running(inventory, "b", since=8 * HOUR, annotations=saved)
    put_running(inventory, "c", since=3 * HOUR)
    assert taken(inventory) == ["b-0"]


def test_a_job_that_checkpoints_on_sigterm_loses_nothing() -> None:
    """It goes before one that has just saved its work, and is not asked first: being evicted is the signal."""
    inventory = an_inventory(a_node("n0", gpus=2))
    put_running(inventory, "a", since=8 * HOUR, annotations={CHECKPOINT_GRACE: "SIGTERM"})
    saved = {LAST_CHECKPOINT: timestamp(NOW - timedelta(minutes=1))}
    put_running(inventory, "b", since=8 * HOUR, annotations=saved)
    assert taken(inventory) == ["a-0"]


def test_lost_work_counts_after_priority() -> None:
    """A less important job goes, whatever it loses."""
    inventory = an_inventory(a_node("n0", gpus=2))
    put_running(inventory, "saved", since=timedelta(minutes=1))
    gang = replace(a_gang("idle", priority=10), last_start=NOW - 9 * HOUR)
    put_gang(inventory, gang, [a_pod("idle-0", gang="idle", gpus=1, node="n0")])
    assert taken(inventory) == ["idle-0"]


def test_the_weight_of_lost_work_can_be_switched_off() -> None:
    """Then the youngest goes, as with KAI; the last by name among equals."""
    inventory = an_inventory(a_node("n0", gpus=2))
    put_running(inventory, "a", since=timedelta(minutes=1))
    put_running(inventory, "b", since=8 * HOUR)
    assert taken(inventory, weigh_lost_work=False) == ["b-0"]


@pytest.mark.parametrize("ran", [timedelta(minutes=10), timedelta(minutes=40)])
def test_a_gang_may_ask_for_a_minimum_runtime(ran: timedelta) -> None:
    """Until it is over, jobs that lose more go before it; then it is the one."""
    inventory = an_inventory(a_node("n0", gpus=2))
    put_running(inventory, "young", since=ran, annotations={MIN_RUNTIME: "30m"})
    put_running(inventory, "old", since=9 * HOUR)
    assert taken(inventory) == (["old-0"] if ran < timedelta(minutes=30) else ["young-0"])


def test_a_gang_in_its_minimum_runtime_is_spared_where_nobody_else_is_there() -> None:
    """The job waits, and is looked at again when the time is over."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_running(inventory, "young", since=timedelta(minutes=10), annotations={MIN_RUNTIME: "30m"})
    put_gang(inventory, a_gang("urgent", priority=70), [a_pod("urgent-0", gang="urgent", gpus=1)])
    session = run_on(inventory, "preempt")
    assert not session.evictions
    assert session.next_moment == NOW + timedelta(minutes=20)


def test_a_minimum_runtime_is_limited() -> None:
    """Nobody makes a job that cannot be disturbed by asking for a year."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_running(inventory, "young", since=2 * HOUR, annotations={MIN_RUNTIME: "8760h"})
    assert taken(inventory) == ["young-0"]


def test_pods_beyond_the_minimum_go_all_the_same() -> None:
    """A minimum runtime protects the gang, not what it can do without."""
    inventory = an_inventory(a_node("n0", gpus=2))
    gang = replace(a_gang("elastic", minimum=1), last_start=NOW - timedelta(minutes=1), min_runtime=HOUR)
    put_gang(inventory, gang, [a_pod(f"elastic-{n}", gang="elastic", gpus=1, node="n0") for n in range(2)])
    assert len(taken(inventory)) == 1


def test_a_gang_in_its_minimum_runtime_is_not_moved() -> None:
    """A move starts it anew, so consolidation leaves it alone too."""
    inventory = an_inventory(a_node("n0", gpus=2), a_node("n1", gpus=2))
    for number in range(2):
        asked = {MIN_RUNTIME: "1h"}
        put_running(inventory, f"r{number}", node=f"n{number}", since=timedelta(minutes=1), annotations=asked)
    put_gang(inventory, a_gang("wide"), [a_pod("wide-0", gang="wide", gpus=2)])
    assert not run_on(inventory, "consolidation").evictions
