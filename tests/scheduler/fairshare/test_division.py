"""Fair shares: quota first, surplus by weight within priority bands, rounding to whole units."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.fairshare import GPU, Amounts, QueueBooks, QueueInfo, QueueTree, Weights
from spinney.scheduler.fairshare.amounts import UNITS
from tests.examples import examples
from tests.scheduler.fairshare.strategies import a_queue, books, books_of


def gpu_shares(drawn: QueueBooks) -> dict[str, float]:
    return {page.queue.name: page.fair_share.gpu / GPU for page in drawn.pages}


def test_quota_comes_before_surplus() -> None:
    """A queue receives its quota whatever its siblings weigh."""
    divided = books_of(a_queue("a", quota=3, weight=0), a_queue("b", weight=9), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 3, "b": 5}


def test_surplus_goes_by_weight() -> None:
    """What no quota claims is divided in proportion to the weights."""
    divided = books_of(a_queue("a", weight=1), a_queue("b", weight=3), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 2, "b": 6}


def test_who_wants_less_leaves_the_rest_to_others() -> None:
    """A queue that wants less than its part takes just that, and the others divide what it leaves."""
    divided = books_of(a_queue("a"), a_queue("b"), a_queue("c"), total=9, requested={"a": 1, "b": 9, "c": 9})
    assert gpu_shares(divided) == {"a": 1, "b": 4, "c": 4}


def test_limit_caps_the_share() -> None:
    """A queue is never given more than its limit, however much it requests."""
    divided = books_of(a_queue("a", quota=4, limit=2), a_queue("b"), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 2, "b": 6}


def test_higher_band_takes_surplus_first() -> None:
    """A higher queue priority is served all the surplus it wants, but never another queue's quota."""
    divided = books_of(a_queue("a", quota=1), a_queue("b", priority=101), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 1, "b": 7}


def test_rounding_gives_whole_devices_to_the_older_of_equals() -> None:
    """A device that cannot be split goes to the largest remainder, among equals to the older queue."""
    divided = books_of(
        a_queue("young", created=2), a_queue("old", created=1), total=3, requested={"young": 3, "old": 3}
    )
    assert gpu_shares(divided) == {"old": 2, "young": 1}


def test_rounding_may_exceed_a_fractional_want() -> None:
    """The leftover of rounding is a whole device even where only part of it is wanted."""
    divided = books_of(a_queue("a", created=1), a_queue("b", created=2), total=1, requested={"a": 0.7, "b": 0.7})
    assert gpu_shares(divided) == {"a": 1, "b": 0}


def test_overcommitted_quotas_are_not_scaled() -> None:
    """Quotas that add up to more than the cluster are all believed."""
    divided = books_of(a_queue("a", quota=6), a_queue("b", quota=6), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 6, "b": 6}


def test_children_divide_what_their_parent_has() -> None:
    """The children of a queue divide the queue's own fair share, not the cluster."""
    divided = books_of(
        a_queue("d1", quota=2, weight=0),
        a_queue("d2", weight=1),
        a_queue("d1-a", parent="d1"),
        a_queue("d1-b", parent="d1"),
        a_queue("d2-a", parent="d2"),
        total=8,
        requested={"d1-a": 8, "d1-b": 8, "d2-a": 8},
    )
    assert gpu_shares(divided) == {"d1": 2, "d2": 6, "d1-a": 1, "d1-b": 1, "d2-a": 6}


def test_negative_weight_counts_as_one() -> None:
    """An unlimited department with weight -1 takes part in the surplus like one of weight 1."""
    divided = books_of(a_queue("a", weight=-1), a_queue("b", weight=1), total=8, requested={"a": 8, "b": 8})
    assert gpu_shares(divided) == {"a": 4, "b": 4}


def test_very_large_figures_do_not_overflow() -> None:
    """Exabytes and weights in the billions divide as small figures do."""
    total = Amounts(memory=9 * 10**18 // 4)
    queues = [QueueInfo(name=name, weight=Weights(memory=weight)) for name, weight in (("a", 1e9), ("b", 3e9))]
    divided = QueueBooks(QueueTree(queues), total)
    for name in "ab":
        divided.request(name, total)
    divided.set_fair_shares()
    assert divided["b"].fair_share.memory == pytest.approx(3 * divided["a"].fair_share.memory, rel=1e-6)
    assert divided["a"].fair_share.memory + divided["b"].fair_share.memory <= total.memory


@given(books(), st.data())
@settings(max_examples=examples(40))
def test_the_order_in_which_queues_are_listed_does_not_matter(drawn: QueueBooks, data: st.DataObject) -> None:
    """The shares of a tree are the same however its queues are listed."""
    listed = QueueBooks(QueueTree(data.draw(st.permutations(drawn.tree.queues))), drawn.total)
    for position, page in enumerate(drawn.pages):
        if drawn.tree.is_leaf(position):
            listed.request(page.queue.name, page.requested)
    listed.set_fair_shares()
    for page in drawn.pages:
        assert listed[page.queue.name].fair_share == page.fair_share


@given(books())
def test_shares_agree_with_the_rule_written_plainly(drawn: QueueBooks) -> None:
    """The division in arrays is the division described queue by queue."""
    assert [page.fair_share.astuple() for page in drawn.pages] == plainly(drawn)


@given(books())
@settings(max_examples=examples(40))
def test_siblings_never_get_more_than_there_is(drawn: QueueBooks) -> None:
    """The shares of siblings add up to what their parent has at most, unless quotas alone promise more."""
    tree = drawn.tree
    for parent in range(-1, len(tree)):
        siblings = tree.roots if parent < 0 else tree.children[parent]
        total = drawn.total if parent < 0 else drawn.pages[parent].fair_share
        for resource in range(3):
            whole = total.astuple()[resource]
            promised = sum(_promised(drawn, queue, resource, whole) for queue in siblings)
            given_away = sum(drawn.pages[queue].fair_share.astuple()[resource] for queue in siblings)
            assert given_away <= max(whole, promised)


@given(books())
@settings(max_examples=examples(40))
def test_no_queue_gets_a_unit_more_than_it_can_use(drawn: QueueBooks) -> None:
    """A share exceeds what a queue requests within its limit by less than one unit."""
    for page in drawn.pages:
        figures = zip(
            page.fair_share.astuple(), page.requested.astuple(), page.queue.limit.astuple(), UNITS, strict=True
        )
        for share, requested, limit, unit in figures:
            requestable = requested if limit < 0 else min(requested, limit)
            assert share < requestable + unit


@given(books())
@settings(max_examples=examples(40))
def test_quota_is_guaranteed(drawn: QueueBooks) -> None:
    """Every queue gets what it requests up to its quota, in whichever band it is."""
    for position, page in enumerate(drawn.pages):
        parent = drawn.tree.parent[position]
        total = drawn.total if parent < 0 else drawn.pages[parent].fair_share
        for resource in range(3):
            promised = _promised(drawn, position, resource, total.astuple()[resource])
            assert page.fair_share.astuple()[resource] >= promised


def _promised(drawn: QueueBooks, position: int, resource: int, whole: int) -> int:
    page = drawn.pages[position]
    quota, limit = page.queue.quota.astuple()[resource], page.queue.limit.astuple()[resource]
    requested = page.requested.astuple()[resource]
    requestable = requested if limit < 0 else min(requested, limit)
    return min(whole if quota < 0 else quota, requestable)


def plainly(drawn: QueueBooks) -> list[tuple[int, ...]]:
    """Divide resource by resource, parent by parent, in exact fractions."""
    tree = drawn.tree
    shares = [[0, 0, 0] for _ in tree.queues]
    for resource, unit in enumerate(UNITS):
        pending = [(drawn.total.astuple()[resource], tree.roots)]
        while pending:
            whole, siblings = pending.pop()
            divided = _siblings(drawn, siblings, resource, whole, unit)
            for queue, share in divided.items():
                shares[queue][resource] = share
                pending.append((share, tree.children[queue]))
    return [tuple(row) for row in shares]


def _siblings(drawn: QueueBooks, siblings: tuple[int, ...], resource: int, whole: int, unit: int) -> dict[int, int]:
    share = {queue: _promised(drawn, queue, resource, whole) for queue in siblings}
    left = max(0, whole - sum(share.values()))
    cut_off: dict[int, Fraction] = {}
    queues = drawn.tree.queues
    bands = sorted({queues[queue].priority for queue in siblings}, reverse=True)
    for band in bands:
        while left > 0:
            wants = {
                queue: want
                for queue in siblings
                if queues[queue].priority == band and queues[queue].weight[resource] > 0
                if (want := _requestable(drawn, queue, resource) - share[queue]) > 0
            }
            weights = sum(Fraction(queues[queue].weight[resource]) for queue in wants)
            if not weights:
                break
            at_start, eased = left, False
            for queue, want in wants.items():
                part = at_start * Fraction(queues[queue].weight[resource]) / weights
                if want <= part:
                    share[queue] += want
                    left -= want
                    cut_off.pop(queue, None)
                    eased = eased or want < part
                else:
                    units = int(part / unit) * unit
                    share[queue] += units
                    left -= units
                    cut_off[queue] = (part - units) / unit
            if not eased:
                break
    for queue in sorted(cut_off, key=lambda each: (-queues[each].priority, -cut_off[each], queues[each].age_key)):
        if cut_off[queue] > 0:
            extra = min(unit, left)
            share[queue] += extra
            left -= extra
    return share


def _requestable(drawn: QueueBooks, queue: int, resource: int) -> int:
    requested = drawn.pages[queue].requested.astuple()[resource]
    limit = drawn.pages[queue].queue.limit.astuple()[resource]
    return requested if limit < 0 else min(requested, limit)
