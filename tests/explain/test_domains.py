"""What topology domains lack for a gang."""

from fractions import Fraction
from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.cluster.fitting import Demand, pods_held
from spinney.explain.domains import DomainTable, domain_reports, nearest_miss

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
    miss = nearest_miss(domain_reports(level, [Demand(np.array([4]), 4)], GPU))
    assert miss is not None
    assert (miss.domain, miss.fits, miss.needed) == ("r3", 1, 4)
    assert [(short.resource, short.amount, short.nodes) for short in miss.shortages] == [("nvidia.com/gpu", 6, 3)]


def test_domain_too_small_is_not_offered_as_fixable() -> None:
    """A rack that could not hold the gang when empty has no shortage to free, and comes last."""
    level = a_level({"big": [(0, 8), (0, 8)], "small": [(8, 8)]})
    big, small = domain_reports(level, [Demand(np.array([8]), 2)], GPU)
    assert (small.possible, small.shortages) == (False, ())
    assert nearest_miss([big, small]) == big


def test_domain_that_holds_the_gang_is_no_miss() -> None:
    """A rack with room for everything is reported without a shortage and never as a miss."""
    (report,) = domain_reports(a_level({"r1": [(8, 8)]}), [Demand(np.array([4]), 2)], GPU)
    assert (report.fits, report.shortages) == (2, ())
    assert nearest_miss([report]) is None


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda n: (min(n), max(n))), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_freeing_the_shortage_is_enough_and_needed(nodes: list[tuple[int, int]], request: int, needed: int) -> None:
    """The shortage of a possible domain is the least that must be freed, found by trying every split over its nodes."""
    (report,) = domain_reports(a_level({"r": nodes}), [Demand(np.array([request]), needed)], GPU)
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
    (report,) = domain_reports(table, [Demand(np.array(request), needed)], ["cpu", "nvidia.com/gpu"])

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


def demands(*kinds: tuple[int, int]) -> list[Demand]:
    """Return kinds of pods, given as (how many, GPUs of each)."""
    return [Demand(np.array([gpus]), count) for count, gpus in kinds]


def test_a_small_leader_does_not_make_a_rack_too_small() -> None:
    """Each kind of pod counts with what it asks for itself: four whole nodes hold four workers and their leader."""
    level = a_level({"r": [(8, 8), (8, 8), (8, 8), (0, 8)]})
    (report,) = domain_reports(level, demands((1, 0), (4, 8)), GPU)
    assert (report.fits, report.needed, report.possible) == (4, 5, True)
    assert [(short.amount, short.nodes) for short in report.shortages] == [(8, 1)]


def test_a_kind_counts_only_the_nodes_it_may_use() -> None:
    """Pods that a node is closed to are not laid on it, whatever is free there."""
    closed = Demand(np.array([8]), 2, np.array([True, False]))
    (report,) = domain_reports(a_level({"r": [(8, 8), (8, 8)]}), [closed, *demands((1, 1))], GPU)
    assert (report.fits, report.possible, report.capacity) == (2, False, 2)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda n: (min(n), max(n))), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 2), st.integers(0, 8)), min_size=2, max_size=3),
)
def test_what_is_said_of_several_kinds_is_true(nodes: list[tuple[int, int]], kinds: list[tuple[int, int]]) -> None:
    """Against every way to lay the pods: never do fewer fit, never is a domain wrongly called too small."""
    (report,) = domain_reports(a_level({"r": nodes}), demands(*kinds), GPU)
    held = int(
        pods_held(np.zeros(len(nodes), dtype=np.int32), 1, np.array([[n[0]] for n in nodes]), demands(*kinds))[0]
    )
    pods = [gpus for count, gpus in kinds for _ in range(count)]

    @cache
    def most(room: tuple[int, ...], rest: tuple[int, ...]) -> int:
        if not rest:
            return 0
        best = most(room, rest[1:])
        for node, free in enumerate(room):
            if free >= rest[0]:
                best = max(best, 1 + most((*room[:node], free - rest[0], *room[node + 1 :]), rest[1:]))
        return best

    ordered = tuple(sorted(pods, reverse=True))
    assert report.fits == held <= most(tuple(free for free, _ in nodes), ordered)
    when_empty = most(tuple(whole for _, whole in nodes), ordered)
    assert report.capacity >= when_empty
    assert report.possible or when_empty < len(pods)
