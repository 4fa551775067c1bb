"""Queue books: postings reach every ancestor and cancel exactly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.fairshare import ZERO, Amounts, QueueBooks, QueueInfo, QueueTree
from spinney.scheduler.process.queue_books import queue_statuses
from tests.examples import examples
from tests.scheduler.fairshare.strategies import a_queue, amounts, books_of, gpus, trees


def pages(books: QueueBooks) -> list[tuple[Amounts, Amounts, Amounts]]:
    return [(page.allocated, page.allocated_non_preemptible, page.requested) for page in books.pages]


def test_a_charge_reaches_every_ancestor() -> None:
    """What a leaf holds, its ancestors hold too, and nobody else."""
    books = books_of(
        a_queue("top"), a_queue("middle", parent="top"), a_queue("leaf", parent="middle"), a_queue("other"), total=8
    )
    books.charge("leaf", gpus(2), preemptible=True)
    held = {page.queue.name: page.allocated for page in books.pages}
    assert held == {"top": gpus(2), "middle": gpus(2), "leaf": gpus(2), "other": ZERO}


def test_what_cannot_be_preempted_is_booked_apart() -> None:
    """Only jobs that cannot be preempted count as non-preemptible."""
    books = books_of(a_queue("a"), total=8)
    books.charge("a", gpus(2), preemptible=True)
    books.charge("a", gpus(1), preemptible=False)
    assert (books["a"].allocated, books["a"].allocated_non_preemptible) == (gpus(3), gpus(1))


@given(st.data())
@settings(max_examples=examples(40))
def test_postings_and_their_reversals_cancel_in_any_order(data: st.DataObject) -> None:
    """After any postings and their reversals, in any order, the books are as before."""
    tree = data.draw(trees())
    books = QueueBooks(tree, gpus(10))
    names = st.sampled_from([queue.name for queue in tree.queues])
    for name, amount in data.draw(st.lists(st.tuples(names, amounts()), max_size=5)):
        books.charge(name, amount, preemptible=True)
    before = pages(books)
    postings = data.draw(st.lists(st.tuples(names, amounts(), st.booleans()), max_size=8))
    for name, amount, preemptible in postings:
        books.charge(name, amount, preemptible=preemptible)
        books.request(name, amount)
    for name, amount, preemptible in data.draw(st.permutations(postings)):
        books.discharge(name, amount, preemptible=preemptible)
        books.request(name, ZERO - amount)
    assert pages(books) == before


@given(st.data())
@settings(max_examples=examples(40))
def test_an_inner_queue_holds_what_its_children_hold(data: st.DataObject) -> None:
    """Charged at leaves only, every inner queue's page is the sum of its children's."""
    tree = data.draw(trees())
    books = QueueBooks(tree, gpus(10))
    leaves = [queue.name for position, queue in enumerate(tree.queues) if tree.is_leaf(position)]
    for name, amount, preemptible in data.draw(
        st.lists(st.tuples(st.sampled_from(leaves), amounts(), st.booleans()), max_size=8)
    ):
        books.charge(name, amount, preemptible=preemptible)
    for position, children in enumerate(tree.children):
        if children:
            assert books.pages[position].allocated == sum((books.pages[child].allocated for child in children), ZERO)


def test_a_copy_does_not_follow() -> None:
    """Charging the books leaves a copy taken before as it was."""
    books = books_of(a_queue("a"), total=8)
    copy = books.copy()
    books.charge("a", gpus(2), preemptible=True)
    assert (copy["a"].allocated, books["a"].allocated) == (ZERO, gpus(2))


def test_a_queue_without_its_parent_is_left_out_with_everything_below() -> None:
    """A queue whose parent is missing is dropped with its subtree, and each says why."""
    tree = QueueTree([a_queue("a"), a_queue("b", parent="gone"), a_queue("c", parent="b")])
    assert [queue.name for queue in tree.queues] == ["a"]
    assert tree.dropped == {
        "b": "queue b: parent queue gone does not exist; create it or correct parentQueue",
        "c": "queue c: parent queue gone does not exist; create it or correct parentQueue",
    }


def test_queues_in_a_cycle_are_left_out() -> None:
    """Queues that are each other's parents are dropped and say so."""
    tree = QueueTree([a_queue("a", parent="b"), a_queue("b", parent="a")])
    assert len(tree) == 0
    assert "form a cycle" in tree.dropped["a"]


def test_queues_too_deep_to_be_walked_to_have_no_place() -> None:
    """Queues may be made in a chain, or a circle, without end; those above the limit are there."""
    tree = QueueTree(QueueInfo(name=f"q{depth}", parent=f"q{depth - 1}" if depth else None) for depth in range(1500))
    assert [queue.name for queue in tree.queues] == [f"q{depth}" for depth in range(64)]
    assert tree.dropped["q64"] == "queue q64: 64 or more queues are above it, too many; give it another parent"
    circle = QueueTree(QueueInfo(name=f"q{number}", parent=f"q{(number + 1) % 1500}") for number in range(1500))
    assert (len(circle), len(circle.dropped)) == (0, 1500)


def test_status_reports_books_and_children() -> None:
    """A Queue's status names its children and what it holds and requests, as Kubernetes quantities."""
    books = books_of(a_queue("top"), a_queue("leaf", parent="top"), total=8, allocated={"leaf": 1.5})
    status = queue_statuses(books)["top"]
    assert status.child_queues == ("leaf",)
    assert status.allocated == {"cpu": "0", "memory": "0", "nvidia.com/gpu": "1500m"}
    assert status.allocated_non_preemptible["nvidia.com/gpu"] == "0"
