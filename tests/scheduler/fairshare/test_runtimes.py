"""Min-runtime and preemption delay: who speaks for a victim, and for how long."""

from datetime import UTC, datetime, timedelta

from spinney.scheduler.fairshare import QueueInfo, QueueTree
from spinney.scheduler.fairshare.runtimes import MinRuntimes, ReclaimMethod, is_delay_over, is_protected

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


TREE = QueueTree(
    [
        QueueInfo(name="d1", reclaim_min_runtime=minutes(1), preempt_min_runtime=minutes(10)),
        QueueInfo(name="d2", reclaim_min_runtime=minutes(2)),
        QueueInfo(name="a", parent="d1"),
        QueueInfo(name="b", parent="d1", reclaim_min_runtime=minutes(3), preempt_min_runtime=minutes(30)),
        QueueInfo(name="c", parent="d2", reclaim_min_runtime=minutes(4)),
    ]
)


def test_preempt_inherits_from_the_nearest_ancestor() -> None:
    """A queue's own preempt min-runtime counts, else its nearest ancestor's, else the process default."""
    runtimes = MinRuntimes(tree=TREE, preempt=minutes(5))
    assert [runtimes.for_preempt(name) for name in ("b", "a", "c")] == [minutes(30), minutes(10), minutes(5)]


def test_reclaim_asks_the_queue_where_the_paths_part() -> None:
    """Between neighbours the victim's own queue speaks, between departments the victim's department."""
    runtimes = MinRuntimes(tree=TREE, reclaim=minutes(9))
    assert runtimes.for_reclaim("a", "b") == minutes(3)
    assert runtimes.for_reclaim("c", "b") == minutes(1)
    assert runtimes.for_reclaim("b", "a") == minutes(1)


def test_reclaim_by_queue_asks_the_victims_queue() -> None:
    """With the method `queue` the victim's own queue always speaks."""
    runtimes = MinRuntimes(tree=TREE, method=ReclaimMethod.QUEUE)
    assert runtimes.for_reclaim("a", "c") == minutes(4)


def test_a_victim_is_protected_until_its_min_runtime_has_passed() -> None:
    """A job that has run for its min-runtime, or never started, is not protected."""
    assert is_protected(NOW - minutes(2), minutes(3), NOW)
    assert not is_protected(NOW - minutes(3), minutes(3), NOW)
    assert not is_protected(None, minutes(3), NOW)


def test_a_delay_counts_from_creation_or_the_last_eviction() -> None:
    """A job may disturb others once its delay has passed since it was created or last evicted."""
    created = NOW - minutes(10)
    assert is_delay_over(created, None, minutes(5), NOW)
    assert not is_delay_over(created, NOW - minutes(1), minutes(5), NOW)
    assert is_delay_over(NOW, None, None, NOW)
