"""Queue order: which rule decides, and that it is a strict order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.fairshare import GPU, Amounts, QueueBooks, QueueInfo, QueueTree, Weights
from spinney.scheduler.fairshare.order import compare_standings, standing_of
from tests.scheduler.fairshare.strategies import a_queue, amounts, books, books_of, gpus


def first(drawn: QueueBooks, *, a_next: float = 0, b_next: float = 0, a_out: float = 0, b_out: float = 0) -> str:
    left = standing_of(drawn["a"], drawn.total, following=gpus(a_next), victims=gpus(a_out))
    right = standing_of(drawn["b"], drawn.total, following=gpus(b_next), victims=gpus(b_out))
    verdict = compare_standings(left, right)
    assert compare_standings(right, left) == -verdict
    return "a" if verdict < 0 else "b"


def test_a_queue_above_its_share_in_everything_goes_last() -> None:
    """A queue above its fair share in every resource goes after one that is not, whatever its priority."""
    one = Amounts(1000, 1000, GPU)
    greedy = QueueInfo(name="a", weight=Weights(0, 0, 0), priority=200)
    modest = QueueInfo(name="b", weight=Weights(1, 1, 1))
    drawn = QueueBooks(QueueTree([greedy, modest]), Amounts(4000, 4000, 4 * GPU))
    drawn.charge("a", one, preemptible=True)
    drawn.set_fair_shares()
    assert first(drawn) == "b"


def test_the_queue_that_stays_within_quota_goes_first() -> None:
    """A queue whose next job fits its quota goes before one that would exceed it, even with higher priority."""
    drawn = books_of(a_queue("a", quota=2), a_queue("b", quota=1, priority=200), total=8)
    assert first(drawn, a_next=2, b_next=2) == "a"


def test_priority_decides_between_queues_within_quota() -> None:
    """Of two queues within their quota the one of higher priority goes first."""
    drawn = books_of(a_queue("a", quota=2), a_queue("b", quota=2, priority=101), total=8)
    assert first(drawn, a_next=1, b_next=1) == "b"


def test_a_queue_that_may_claim_nothing_goes_after() -> None:
    """A queue that would use GPUs of which it may claim none goes after one that may."""
    drawn = books_of(a_queue("a", weight=0), a_queue("b", weight=1), total=2, requested={"a": 2, "b": 2})
    drawn.charge("b", gpus(2), preemptible=True)
    assert first(drawn, a_next=1, b_next=1) == "b"


def test_the_smaller_dominant_share_goes_first() -> None:
    """Beyond quota, the queue that uses less of what it may claim goes first, its next job counted in."""
    drawn = books_of(a_queue("a"), a_queue("b"), total=8, requested={"a": 8, "b": 8}, allocated={"a": 2, "b": 1})
    assert first(drawn, a_next=1, b_next=1) == "b"
    assert first(drawn, a_next=1, b_next=4) == "a"


def test_victims_are_counted_out() -> None:
    """When victims are chosen, the queue that keeps more after losing those already chosen is the fuller one."""
    drawn = books_of(a_queue("a"), a_queue("b"), total=8, requested={"a": 8, "b": 8}, allocated={"a": 3, "b": 3})
    assert first(drawn, a_out=1) == "a"


def test_a_queue_that_may_claim_nothing_gives_first() -> None:
    """A queue that uses what it may not claim is the first to give, though it would keep nothing."""
    drawn = books_of(a_queue("a", weight=1), a_queue("b", weight=0), total=4, allocated={"a": 3, "b": 1})
    assert first(drawn, a_out=1, b_out=1) == "a"


def test_the_older_of_equals_goes_first() -> None:
    """Queues equal in everything go by age, then by name."""
    drawn = books_of(a_queue("a", created=2), a_queue("b", created=1), total=8)
    assert first(drawn) == "b"
    assert first(books_of(a_queue("b"), a_queue("a"), total=8)) == "a"


def test_the_smaller_claim_goes_first_among_equally_full() -> None:
    """Of two equally full queues the one with the smaller claim goes first, though younger."""
    drawn = books_of(a_queue("a", quota=4, created=1), a_queue("b", quota=2, created=2), total=8)
    assert first(drawn) == "b"


@given(books(), st.data())
@settings(max_examples=40)
def test_any_queues_can_be_sorted(drawn: QueueBooks, data: st.DataObject) -> None:
    """Comparing two queues gives opposite answers from both sides, and never a tie between different queues."""
    for page in drawn.pages:
        drawn.charge(page.queue.name, data.draw(amounts(5)), preemptible=True)
    standings = [standing_of(page, drawn.total) for page in drawn.pages]
    for left in standings:
        for right in standings:
            verdict = compare_standings(left, right)
            assert verdict == -compare_standings(right, left)
            assert (verdict == 0) == (left is right)
