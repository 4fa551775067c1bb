"""Who is looked at of those that wait: the first of each queue, by priority and then age."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from spinney.queueing.backlog import Backlog, QueuePlace, WorkloadKey

START = datetime(2026, 1, 1, tzinfo=UTC)

places = st.builds(
    QueuePlace,
    queue=st.sampled_from(["a", "b"]),
    priority=st.integers(0, 2),
    created=st.integers(0, 3).map(lambda seconds: START + timedelta(seconds=seconds)),
)
steps = st.lists(st.tuples(st.integers(0, 9), st.none() | places), max_size=40)


@given(steps, st.integers(1, 4))
def test_the_first_of_each_queue_are_those_that_sorting_gives(
    steps: list[tuple[int, QueuePlace | None]], of_each: int
) -> None:
    """Whatever came, moved and went, the answer is that of sorting what is left."""
    backlog, kept = Backlog(), dict[WorkloadKey, QueuePlace]()
    for number, place in steps:
        key = WorkloadKey("Job", "ns", f"j{number}")
        if place is None:
            backlog.remove(key)
            kept.pop(key, None)
        else:
            backlog.put(key, place)
            kept[key] = place
    expected = set()
    for queue in ("a", "b"):
        waiting = [key for key, place in kept.items() if place.queue == queue]
        waiting.sort(key=lambda key: (-kept[key].priority, kept[key].created, key))
        expected |= set(waiting[:of_each])
        assert backlog.lengths().get(queue, 0) == len(waiting)
    assert set(backlog.first(of_each)) == expected
    assert len(backlog) == len(kept)
