"""Capacity: limits bind everyone, quotas bind what cannot be preempted, at every level."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.fairshare import QueueBooks
from spinney.scheduler.fairshare.capacity import CapacityReason, over_capacity
from tests.scheduler.fairshare.strategies import a_queue, amounts, books, books_of, gpus


def test_within_limit_there_is_no_refusal() -> None:
    """A preemptible job may exceed the quota of its queue as long as it stays within the limit."""
    drawn = books_of(a_queue("a", quota=1, limit=4), total=8, allocated={"a": 2})
    assert over_capacity(drawn, "a", gpus(2), preemptible=True) is None


def test_a_limit_refuses_with_its_figures() -> None:
    """A refusal names the queue, the rule and the figures it was decided on."""
    drawn = books_of(a_queue("a", quota=1, limit=4), total=8, allocated={"a": 3})
    refusal = over_capacity(drawn, "a", gpus(1.5), preemptible=True)
    assert refusal is not None
    report = refusal.report
    assert (refusal.reason, report.queue, report.resource) == (CapacityReason.OVER_LIMIT, "a", "nvidia.com/gpu")
    assert (report.bound, report.used, report.requested) == (4, 3, 2)
    assert refusal.message == "queue a: nvidia.com/gpu limit is 4, in use 3, requested 1500m"


def test_an_ancestor_refuses_too() -> None:
    """The limit of an ancestor counts what all its descendants hold."""
    drawn = books_of(
        a_queue("top", limit=4), a_queue("a", parent="top"), a_queue("b", parent="top"), total=8, allocated={"b": 3}
    )
    refusal = over_capacity(drawn, "a", gpus(2), preemptible=True)
    assert refusal is not None
    assert refusal.report.queue == "top"


def test_non_preemptible_jobs_stay_within_quota() -> None:
    """What cannot be preempted may not exceed the quota, though the cluster is empty."""
    drawn = books_of(a_queue("a", quota=1), total=8)
    refusal = over_capacity(drawn, "a", gpus(2), preemptible=False)
    assert refusal is not None
    assert refusal.reason is CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA


def test_preemptible_use_does_not_count_against_the_quota() -> None:
    """The quota for what cannot be preempted is not used up by what can."""
    drawn = books_of(a_queue("a", quota=2), total=8, allocated={"a": 4})
    assert over_capacity(drawn, "a", gpus(2), preemptible=False) is None


def test_limit_zero_means_nothing_may_run() -> None:
    """A queue whose limit is 0 runs nothing that asks for the resource."""
    drawn = books_of(a_queue("a", limit=0), total=8)
    assert over_capacity(drawn, "a", gpus(0.1), preemptible=True) is not None
    assert over_capacity(drawn, "a", gpus(0), preemptible=True) is None


@given(books(), st.data())
@settings(max_examples=40)
def test_admitted_jobs_never_break_a_bound(drawn: QueueBooks, data: st.DataObject) -> None:
    """When only admitted jobs are charged, no queue exceeds its limit, nor its quota with what cannot be preempted."""
    names = st.sampled_from([page.queue.name for page in drawn.pages])
    for name, amount, preemptible in data.draw(st.lists(st.tuples(names, amounts(8), st.booleans()), max_size=12)):
        if over_capacity(drawn, name, amount, preemptible=preemptible) is None:
            drawn.charge(name, amount, preemptible=preemptible)
    for page in drawn.pages:
        assert page.allocated.within(page.queue.limit)
        assert page.allocated_non_preemptible.within(page.queue.quota)
