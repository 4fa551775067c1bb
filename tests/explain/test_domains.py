"""What topology domains lack for a gang."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.explain import DomainTable, domain_reports, nearest_miss

GPU = ["nvidia.com/gpu"]


def a_level(domains: dict[str, list[tuple[int, int]]]) -> DomainTable:
    """Return racks of nodes given as (free GPUs, all GPUs)."""
    nodes = [(index, *node) for index, rack in enumerate(domains.values()) for node in rack]
    return DomainTable(
        level="rack",
        domains=list(domains),
        domain_of=np.array([index for index, _, _ in nodes], dtype=np.int32),
        free=np.array([[free] for _, free, _ in nodes], dtype=np.int64),
        allocatable=np.array([[whole] for _, _, whole in nodes], dtype=np.int64),
    )


def test_nearest_miss_says_what_is_lacking_and_where() -> None:
    """The rack that holds most pods is the nearest miss, with the devices missing and on how many nodes."""
    level = a_level({"r1": [(0, 8), (1, 8)], "r3": [(4, 8), (2, 8), (2, 8), (2, 8)]})
    miss = nearest_miss(domain_reports(level, np.array([4]), GPU, needed=4))
    assert miss is not None
    assert (miss.domain, miss.fits, miss.needed) == ("r3", 1, 4)
    assert [(short.resource, short.amount, short.nodes) for short in miss.shortages] == [("nvidia.com/gpu", 6, 3)]


def test_domain_too_small_is_not_offered_as_fixable() -> None:
    """A rack that could not hold the gang when empty has no shortage to free, and comes last."""
    level = a_level({"big": [(0, 8), (0, 8)], "small": [(8, 8)]})
    big, small = domain_reports(level, np.array([8]), GPU, needed=2)
    assert (small.possible, small.shortages) == (False, ())
    assert nearest_miss([big, small]) == big


def test_domain_that_holds_the_gang_is_no_miss() -> None:
    """A rack with room for everything is reported without a shortage and never as a miss."""
    (report,) = domain_reports(a_level({"r1": [(8, 8)]}), np.array([4]), GPU, needed=2)
    assert (report.fits, report.shortages) == (2, ())
    assert nearest_miss([report]) is None


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda n: (min(n), max(n))), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_freeing_the_shortage_is_enough_and_needed(nodes: list[tuple[int, int]], request: int, needed: int) -> None:
    """The shortage of a possible domain is the least that must be freed, found by trying every split over its nodes."""
    (report,) = domain_reports(a_level({"r": nodes}), np.array([request]), GPU, needed=needed)
    if not report.possible or report.fits == needed:
        assert report.shortages == ()
        return
    cheapest = {0: 0}
    for free, whole in nodes:
        step: dict[int, int] = {}
        for pods in range(whole // request + 1):
            for placed, cost in cheapest.items():
                total, price = placed + pods, cost + max(pods * request - free, 0)
                step[total] = min(step.get(total, price), price)
        cheapest = step
    least = min(cost for placed, cost in cheapest.items() if placed >= needed)
    assert sum(short.amount for short in report.shortages) == least


@given(
    st.lists(st.tuples(*[st.integers(0, 8)] * 4), min_size=1, max_size=6),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any),
    st.integers(1, 12),
)
def test_pods_are_laid_one_by_one_where_they_lack_least(
    nodes: list[tuple[int, int, int, int]], request: tuple[int, int], needed: int
) -> None:
    """With several resources, the shortage is what laying one pod after the other on the cheapest node adds up to."""
    whole = [(max(a, b), max(c, d)) for a, b, c, d in nodes]
    free = [(min(a, b), min(c, d)) for a, b, c, d in nodes]
    table = DomainTable("rack", ["r"], np.zeros(len(nodes), dtype=np.int32), np.array(free), np.array(whole))
    (report,) = domain_reports(table, np.array(request), ["cpu", "nvidia.com/gpu"], needed)

    def holds(room: tuple[int, int]) -> int:
        return min(have // want for have, want in zip(room, request, strict=True) if want)

    def lacking(node: int, pods: int) -> list[int]:
        return [max(pods * want - have, 0) if want else 0 for have, want in zip(free[node], request, strict=True)]

    def cost(node: int, pods: int) -> Fraction:
        amounts = zip(lacking(node, pods), request, strict=True)
        return sum((Fraction(short, want) for short, want in amounts if want), Fraction())

    laid = [min(holds(room), needed) for room in free]
    for _ in range(max(needed - sum(laid), 0) if report.possible else 0):
        usable = [node for node, room in enumerate(whole) if laid[node] < holds(room)]
        laid[min(usable, key=lambda node: (cost(node, laid[node] + 1) - cost(node, laid[node]), node))] += 1
    short = [lacking(node, pods) for node, pods in enumerate(laid)]
    totals = [sum(column) for column in zip(*short, strict=True)]
    assert [each.amount for each in report.shortages] == [total for total in totals if total]
