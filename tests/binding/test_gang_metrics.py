"""The number of series is bounded: sizes are classes, and so many queues have series of their own."""

import pytest
from prometheus_client import CollectorRegistry

from spinney.binding.gang_metrics import MOST_QUEUES, OTHER_QUEUES, GangMetrics, size_class


@pytest.mark.parametrize(
    ("pods", "expected"),
    [(1, "1"), (2, "2-8"), (8, "2-8"), (9, "9-64"), (512, "65-512"), (513, "513+"), (10**6, "513+")],
)
def test_sizes_are_classes(pods: int, expected: str) -> None:
    """Gangs of any size fall into one of five classes."""
    assert size_class(pods) == expected


def test_queues_beyond_the_bound_are_counted_together() -> None:
    """One queue more than have series of their own is counted as other, until a queue is deleted."""
    registry = CollectorRegistry()
    metrics = GangMetrics(registry)
    for number in range(MOST_QUEUES + 2):
        metrics.evicted(1, queue=f"q{number}", reason="reclaim")

    def victims(queue: str) -> float | None:
        return registry.get_sample_value("spinney_victims_total", {"queue": queue, "reason": "reclaim"})

    assert victims(f"q{MOST_QUEUES - 1}") == 1
    assert victims(f"q{MOST_QUEUES}") is None
    assert victims(OTHER_QUEUES) == 2
    metrics.forget_queue("q0")
    metrics.evicted(1, queue=f"q{MOST_QUEUES}", reason="reclaim")
    assert victims("q0") is None
    assert victims(f"q{MOST_QUEUES}") == 1


def test_forgetting_a_queue_that_was_never_counted_changes_nothing() -> None:
    """A queue without victims and waits may be deleted like any other."""
    registry = CollectorRegistry()
    metrics = GangMetrics(registry)
    metrics.waited(3, queue="a", pods=1)
    metrics.forget_queue("b")
    assert registry.get_sample_value("spinney_gang_wait_seconds_count", {"queue": "a", "size": "1"}) == 1
