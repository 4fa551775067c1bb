"""The bound on what reclaim may take covers everything that the rules of reclaim let pass."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.fairshare.amounts import Amounts, total_of
from spinney.scheduler.fairshare.books import QueueBooks
from spinney.scheduler.fairshare.bounds import Lot, least_of, most_reclaimable
from spinney.scheduler.fairshare.queues import QueueInfo, QueueTree
from spinney.scheduler.fairshare.reclaim import Reclaimer, Victims, judge
from tests.examples import examples

amounts = st.builds(Amounts, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
bounds = st.builds(Amounts, *[st.integers(-1, 8)] * 3)
chunks = st.lists(amounts, min_size=1, max_size=6)


@settings(max_examples=examples(400), deadline=None)
@given(
    quotas=st.tuples(bounds, bounds, bounds, bounds),
    shares=st.tuples(bounds, bounds),
    given_up=st.tuples(chunks, chunks),
    asked=amounts,
)
def test_the_bound_covers_every_just_scenario(
    quotas: tuple[Amounts, ...],
    shares: tuple[Amounts, Amounts],
    given_up: tuple[list[Amounts], list[Amounts]],
    asked: Amounts,
) -> None:
    """Whatever set of chunks is judged just, no resource of it exceeds the bound."""
    tree = QueueTree(
        [
            QueueInfo(name="taker", quota=quotas[0]),
            QueueInfo(name="giver", quota=quotas[1]),
            QueueInfo(name="one", parent="giver", quota=quotas[2]),
            QueueInfo(name="two", parent="giver", quota=quotas[3]),
        ]
    )
    books = QueueBooks(tree, Amounts(100, 100, 100))
    books["giver"].fair_share, books["taker"].fair_share = shares
    for name, all_of_it in zip(("one", "two"), given_up, strict=True):
        books.charge(name, total_of(all_of_it), preemptible=True)
    lots = {name: lot_of(all_of_it) for name, all_of_it in zip(("one", "two"), given_up, strict=True)}
    reclaimer = Reclaimer(queue="taker", request=asked)

    bound = most_reclaimable(books, reclaimer, lots)

    for first in range(len(given_up[0]) + 1):
        for second in range(len(given_up[1]) + 1):
            taken = [
                Victims(queue="one", chunks=tuple(given_up[0][:first])),
                Victims(queue="two", chunks=tuple(given_up[1][:second])),
            ]
            if judge(books, reclaimer, [each for each in taken if each.chunks]) is None:
                lost = total_of([*given_up[0][:first], *given_up[1][:second]])
                assert all(part <= most for part, most in zip(lost.astuple(), bound.astuple(), strict=True))


def test_one_resource_above_its_bound_bounds_exactly() -> None:
    """A queue with 5 devices and a share of 3 gives at most 2 one-device jobs."""
    tree = QueueTree(
        [QueueInfo(name="taker", quota=Amounts(-1, -1, 10)), QueueInfo(name="giver", quota=Amounts(-1, -1, 3))]
    )
    books = QueueBooks(tree, Amounts(100, 100, 100))
    books.charge("giver", Amounts(gpu=5), preemptible=True)
    one = Amounts(gpu=1)

    bound = most_reclaimable(
        books,
        Reclaimer(queue="taker", request=Amounts(gpu=4)),
        {"giver": Lot(total=Amounts(gpu=5), smallest=one, largest=one)},
    )

    assert bound == Amounts(gpu=2)


def test_the_smallest_of_several_bounds_holds() -> None:
    """Bounds are combined resource by resource."""
    assert least_of([Amounts(1, 5, 3), Amounts(2, 4, 3)]) == Amounts(1, 4, 3)
    assert least_of([]) is None


def lot_of(chunks: list[Amounts]) -> Lot:
    """Return the lot of chunks, each a job of one pod."""
    figures = [chunk.astuple() for chunk in chunks]
    return Lot(
        total=total_of(chunks),
        smallest=Amounts(*map(min, zip(*figures, strict=True))),
        largest=Amounts(*map(max, zip(*figures, strict=True))),
    )
