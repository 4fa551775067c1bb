"""Reclaim: who may take, from whom, and when a set of evictions is just."""

from spinney.scheduler.fairshare import Amounts, QueueBooks
from spinney.scheduler.fairshare.reclaim import Reclaimer, Victims, can_reclaim, judge, may_be_victim
from tests.scheduler.fairshare.strategies import a_queue, books_of, gpus


def wants(count: float, queue: str = "a", *, preemptible: bool = True) -> Reclaimer:
    return Reclaimer(queue=queue, request=gpus(count), preemptible=preemptible)


def taking(queue: str, *chunks: float) -> Victims:
    return Victims(queue=queue, chunks=tuple(gpus(chunk) for chunk in chunks))


def two_queues(
    *, a_quota: float = 2, b_quota: float = 2, a_holds: float = 0, b_holds: float = 4, total: float = 4
) -> QueueBooks:
    return books_of(
        a_queue("a", quota=a_quota),
        a_queue("b", quota=b_quota),
        total=total,
        requested={"a": total, "b": total},
        allocated={"a": a_holds, "b": b_holds},
    )


def test_a_queue_may_reclaim_up_to_its_fair_share() -> None:
    """A job may search for victims only while its queue would stay within its fair share."""
    drawn = two_queues(a_holds=1, b_holds=3)
    assert can_reclaim(drawn, wants(1))
    assert not can_reclaim(drawn, wants(2))


def test_a_non_preemptible_reclaimer_needs_quota() -> None:
    """A job that cannot be preempted may only reclaim within what is left of the quota for such jobs."""
    drawn = two_queues(a_quota=0)
    assert can_reclaim(drawn, wants(1))
    assert not can_reclaim(drawn, wants(1, preemptible=False))


def test_taking_from_a_queue_above_its_share_is_just() -> None:
    """A queue above what it may claim gives, one chunk after the other, until it is back within."""
    assert judge(two_queues(), wants(2), [taking("b", 1, 1)]) is None


def test_a_queue_within_its_share_keeps_what_it_has() -> None:
    """Once a queue is back within its share, nothing more is taken from it."""
    unjust = judge(two_queues(), wants(2), [taking("b", 1, 1, 1)])
    assert unjust is not None
    assert (unjust.reason, unjust.queue) == ("VictimWithinShare", "b")


def test_one_chunk_may_reach_below_the_share() -> None:
    """A gang is taken whole, even if its queue ends below its share."""
    assert judge(two_queues(b_holds=3, a_holds=0), wants(1), [taking("b", 3)]) is None


def test_in_quota_reclaimer_takes_what_is_beyond_quota() -> None:
    """A reclaimer within its quota may take what a queue holds beyond quota, though within its fair share."""
    drawn = books_of(
        a_queue("a", quota=2, weight=0),
        a_queue("b", quota=0, weight=1),
        total=4,
        requested={"a": 1, "b": 4},
        allocated={"b": 3},
    )
    assert drawn["b"].allocated == drawn["b"].fair_share
    assert judge(drawn, wants(1), [taking("b", 1)]) is None


def test_nobody_who_gives_is_left_less_saturated() -> None:
    """A reclaimer beyond its fair share may not leave a giver with relatively less than itself."""
    drawn = two_queues(a_quota=0, b_quota=0, a_holds=2, b_holds=3, total=4)
    unjust = judge(drawn, wants(1), [taking("b", 1)])
    assert unjust is not None
    assert unjust.reason == "SiblingLessSaturated"


def test_the_multiplier_makes_saturation_stricter() -> None:
    """A larger multiplier protects givers that are only a little fuller than the taker."""
    drawn = two_queues(a_quota=0, b_quota=0, a_holds=2, b_holds=6, total=4)
    assert judge(drawn, wants(1), [taking("b", 1)]) is None
    assert judge(drawn, wants(1), [taking("b", 1)], saturation_multiplier=2.0) is not None


def test_shares_are_judged_where_the_paths_part() -> None:
    """Between departments, the departments' shares decide, not those of the leaf queues."""
    drawn = books_of(
        a_queue("d1", quota=2),
        a_queue("d2", quota=2),
        a_queue("a", parent="d1"),
        a_queue("b", parent="d2", quota=4),
        total=4,
        requested={"a": 2, "b": 4},
        allocated={"b": 4},
    )
    assert judge(drawn, wants(2), [taking("b", 1, 1)]) is None
    assert judge(drawn, wants(2), [taking("b", 1, 1, 1)]) is not None


def test_the_prefilter_spares_queues_that_cannot_give() -> None:
    """A queue that is neither above its share nor above its quota is no victim."""
    assert may_be_victim(two_queues(), wants(2), "b")
    assert not may_be_victim(two_queues(b_holds=1), wants(2), "b")
    assert not may_be_victim(two_queues(b_holds=2, a_holds=2), wants(1), "b")


def test_the_prefilter_keeps_a_queue_that_is_just_at_its_quota() -> None:
    """A queue that uses exactly its quota may still have to move, so it is not ruled out."""
    assert may_be_victim(two_queues(b_holds=2), wants(2), "b")
    everything = Reclaimer(queue="a", request=Amounts(1000, 1000, wants(2).request.gpu))
    assert may_be_victim(two_queues(b_holds=2), everything, "b")


def test_the_prefilter_looks_at_what_is_asked_for() -> None:
    """A queue above quota only in a resource nobody asks for is no victim."""
    drawn = two_queues(b_holds=1)
    drawn.charge("b", Amounts(cpu=8000), preemptible=True)
    assert not may_be_victim(drawn, wants(1), "b")
