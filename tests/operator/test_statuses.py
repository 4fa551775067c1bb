"""Statuses and orders as pure functions of what exists: the tables of the specification."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import labels as marks
from spinney.api.conditions import find_condition
from spinney.api.core import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
)
from spinney.api.grove import PodClique, PodCliqueSpec
from spinney.api.grove_status import PodCliqueUpdateProgress
from spinney.api.meta import Condition, Metadata, ObjectMeta
from spinney.operator.headcounts import Headcount
from spinney.operator.pod_states import DuplicateIndex, PodState, deletion_order, free_indexes, state
from spinney.operator.status.podclique import (
    MIN_AVAILABLE_BREACHED,
    POD_CLIQUE_SCHEDULED,
    clique_status,
    was_well_before,
)
from spinney.operator.updates.podclique import clique_update

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CREATED = NOW - timedelta(hours=1)


def a_pod(
    index: int = 0,
    *,
    scheduled: bool = True,
    ready: bool = True,
    failed: bool = False,
    started: bool = True,
    template: str = "new",
    age: int = 0,
    gated: bool = False,
) -> Pod:
    """Return a pod of the clique ``c``."""
    ended = ContainerState(terminated=ContainerStateTerminated(exit_code=1)) if failed else ContainerState()
    conditions = [Condition(type="PodScheduled", status="True")] if scheduled else []
    conditions += [Condition(type="Ready", status="True")] if ready else []
    return Pod(
        metadata=Metadata(
            name=f"c-{index}-{template}",
            uid=f"{index}-{template}",
            labels={marks.POD_INDEX: str(index), marks.POD_TEMPLATE_HASH: template},
            creation_timestamp=NOW - timedelta(minutes=age),
        ),
        spec=PodSpec(
            node_name="n" if scheduled else "",
            hostname=f"c-{index}",
            scheduling_gates=(PodSchedulingGate(name=marks.POD_GANG_GATE),) if gated else (),
        ),
        status=PodStatus(
            phase="Running" if scheduled else "Pending",
            conditions=tuple(conditions),
            container_statuses=(ContainerStatus(name="main", ready=ready, started=started, last_state=ended),),
        ),
    )


def a_podclique(replicas: int, minimum: int, *, template: str = "new", recorded: str | None = "new") -> PodClique:
    """Return a PodClique with a template hash, and the one on record."""
    clique = PodClique(
        metadata=ObjectMeta(
            name="c", uid="u", generation=1, creation_timestamp=CREATED, labels={marks.POD_TEMPLATE_HASH: template}
        ),
        spec=PodCliqueSpec(pod_spec={}, replicas=replicas, min_available=minimum),
    )
    status = msgspec.structs.replace(clique.status, current_pod_template_hash=recorded)
    return msgspec.structs.replace(clique, status=status)


@pytest.mark.parametrize(
    ("pods", "breach", "scheduled"),
    [
        ([], ("True", "ScheduledReplicasBelowMinAvailable"), ("False", "InsufficientScheduledPods")),
        ([a_pod(0)], ("True", "ScheduledReplicasBelowMinAvailable"), ("False", "InsufficientScheduledPods")),
        ([a_pod(0), a_pod(1)], ("False", "SufficientReadyPods"), ("True", "SufficientScheduledPods")),
        (
            [a_pod(0), a_pod(1, ready=False, failed=True)],
            ("True", "InsufficientReadyPods"),
            ("True", "SufficientScheduledPods"),
        ),
        (
            [a_pod(0), a_pod(1, ready=False)],
            ("True", "InsufficientReadyPods"),
            ("True", "SufficientScheduledPods"),
        ),
        (
            [a_pod(0), a_pod(1, ready=False, started=False)],
            ("False", "SufficientReadyPods"),
            ("True", "SufficientScheduledPods"),
        ),
        ([a_pod(0), a_pod(1, failed=True)], ("False", "SufficientReadyPods"), ("True", "SufficientScheduledPods")),
    ],
)
def test_conditions_of_a_clique(pods: list[Pod], breach: tuple[str, str], scheduled: tuple[str, str]) -> None:
    """The conditions follow the table; a pod that is starting counts, one that is ready counts despite its past."""
    status = clique_status(
        a_podclique(3, 2), Headcount.of(pods), generation_hash="g", progress=None, settled=True, now=NOW
    )
    for kind, expected in ((MIN_AVAILABLE_BREACHED, breach), (POD_CLIQUE_SCHEDULED, scheduled)):
        condition = find_condition(status.conditions, kind)
        assert condition is not None
        assert (condition.status, condition.reason) == expected


def test_an_open_update_makes_the_breach_unknown() -> None:
    """During an update nothing is called breached, so nothing is recycled for it."""
    progress = PodCliqueUpdateProgress(
        update_started_at=NOW, pod_clique_set_generation_hash="g", pod_template_hash="new"
    )
    status = clique_status(
        a_podclique(2, 2), Headcount(), generation_hash="g", progress=progress, settled=False, now=NOW
    )
    condition = find_condition(status.conditions, MIN_AVAILABLE_BREACHED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "UpdateInProgress")


def test_never_having_run_is_told_from_having_broken() -> None:
    """A clique that has never been scheduled says so since its creation; one that lost its pods, since then."""
    fresh = a_podclique(2, 2)
    status = clique_status(fresh, Headcount(), generation_hash="g", progress=None, settled=True, now=NOW)
    assert not was_well_before(status.conditions, POD_CLIQUE_SCHEDULED, CREATED)
    running = clique_status(
        fresh, Headcount.of([a_pod(0), a_pod(1)]), generation_hash="g", progress=None, settled=True, now=NOW
    )
    later = clique_status(
        msgspec.structs.replace(fresh, status=running),
        Headcount(),
        generation_hash="g",
        progress=None,
        settled=True,
        now=NOW + timedelta(minutes=1),
    )
    assert was_well_before(later.conditions, POD_CLIQUE_SCHEDULED, CREATED)


def test_counts_of_a_clique() -> None:
    """Ready, scheduled, gated and updated pods are counted; terminating and failed ones are not."""
    gone = msgspec.structs.replace(a_pod(4), metadata=Metadata(name="gone", deletion_timestamp=NOW))
    dead = msgspec.structs.replace(a_pod(5), status=PodStatus(phase="Failed"))
    pods = [
        a_pod(0),
        a_pod(1, ready=False),
        a_pod(2, scheduled=False, ready=False, gated=True),
        a_pod(3, template="old"),
        gone,
        dead,
    ]
    status = clique_status(
        a_podclique(4, 2), Headcount.of(pods), generation_hash="g", progress=None, settled=True, now=NOW
    )
    assert (status.replicas, status.ready_replicas, status.scheduled_replicas) == (4, 2, 3)
    assert (status.schedule_gated_replicas, status.updated_replicas) == (1, 3)


def test_readiness_comes_before_the_past() -> None:
    """A ready pod that once failed is ready."""
    assert state(a_pod(failed=True)) is PodState.READY
    assert state(a_pod(failed=True, ready=False)) is PodState.FAILED_BEFORE
    assert state(a_pod(ready=False)) is PodState.NOT_READY
    assert state(a_pod(ready=False, started=False)) is PodState.STARTING
    assert state(a_pod(scheduled=False, ready=False, started=False)) is PodState.PENDING


def test_scale_in_takes_the_least_useful_first() -> None:
    """Unplaced, then unready, then outdated, then young; beyond a native gang's minimum before all."""
    unplaced = a_pod(0, scheduled=False, ready=False)
    unready = a_pod(1, ready=False)
    outdated = a_pod(2, template="old")
    young = a_pod(3, age=1)
    old = a_pod(4, age=60)
    everybody = [old, young, outdated, unready, unplaced]
    assert deletion_order(everybody, "new") == [unplaced, unready, outdated, young, old]
    assert deletion_order(everybody, "new", minimum=4) == [old, unplaced, unready, outdated, young]


@given(st.lists(st.integers(0, 12), unique=True), st.integers(0, 6))
def test_free_indexes_fill_holes_first(taken: list[int], count: int) -> None:
    """New pods get the lowest indexes that nobody has."""
    found = free_indexes([a_pod(index) for index in taken], count)
    assert len(found) == count
    assert not set(found) & set(taken)
    below = range(max(found, default=-1) + 1)
    assert set(below) <= set(found) | set(taken)


def test_one_index_for_two_pods_is_an_error() -> None:
    """Two active pods that claim one index are named."""
    with pytest.raises(DuplicateIndex, match="both have index 1"):
        free_indexes([a_pod(1), a_pod(1, template="other")], 1)


def step(clique: PodClique, pods: list[Pod], *, selected: bool = True, on_delete: bool = False) -> list[str]:
    """Return the pods that the next step of an update deletes."""
    update = clique_update(clique, pods, generation_hash="g", selected=selected, on_delete=on_delete, now=NOW)
    return sorted(pod.metadata.name for pod in update.delete)


def test_an_update_never_takes_more_than_the_clique_can_spare() -> None:
    """Idle old pods go at once; a serving one only above the minimum, or when all are ready."""
    clique = a_podclique(3, 2, recorded="old")
    old = [a_pod(n, template="old", age=n) for n in range(3)]
    assert step(clique, old) == ["c-2-old"]
    assert step(clique, [old[0], old[1], a_pod(2, ready=False)]) == []
    assert step(clique, [old[0], a_pod(1, template="old", ready=False), a_pod(2)]) == ["c-1-old"]
    tight = a_podclique(2, 2, recorded="old")
    assert step(tight, old[:2]) == ["c-1-old"]
    assert step(tight, [old[0], a_pod(1, ready=False)]) == []


def test_an_update_waits_for_its_turn_and_respects_on_delete() -> None:
    """Nothing is deleted while another replica is being updated, nor ever with OnDelete."""
    clique = a_podclique(2, 1, recorded="old")
    old = [a_pod(n, template="old") for n in range(2)]
    assert step(clique, old, selected=False) == []
    assert step(clique, old, on_delete=True) == []
    assert step(a_podclique(2, 1, recorded="new"), old) == []
