"""The cases scheduler-plugins tests its plugin with, one by one: order, PreFilter, Permit, back-off."""

from collections.abc import Mapping
from typing import Any

import pytest

from spinney.coscheduling.framework import Code, CycleState, QueuedPod

from .bench import Bench, a_group, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

EARLY, LATE = 1.0, 2.0
FIRST, SECOND = {"group": "g1"}, {"group": "g2"}


@pytest.mark.parametrize(
    ("one", "other", "one_is_first"),
    [
        # no groups: lower priority, higher, equal and earlier, equal and later
        ({"priority": 1, "created": EARLY}, {"priority": 9, "created": LATE}, False),
        ({"priority": 9, "created": LATE}, {"priority": 1, "created": EARLY}, True),
        ({"created": EARLY}, {"created": LATE}, True),
        ({"created": LATE}, {"created": EARLY}, False),
        # the first in a group, the other not: priority decides, else the one without a group
        ({**FIRST, "priority": 1}, {"priority": 9}, False),
        ({**FIRST, "priority": 9}, {"priority": 1}, True),
        ({**FIRST, "created": EARLY}, {"created": LATE}, False),
        ({"created": LATE}, {**FIRST, "created": EARLY}, True),
        # both in groups, of which g1 is older: priority decides, else the age of the group, not of the pod
        ({**FIRST, "priority": 1}, {**SECOND, "priority": 9}, False),
        ({**FIRST, "priority": 9}, {**SECOND, "priority": 1}, True),
        ({**FIRST, "created": EARLY}, {**SECOND, "created": LATE}, True),
        ({**FIRST, "created": LATE}, {**SECOND, "created": EARLY}, True),
        # alike in everything: groups by identity, pods by name
        ({"group": "same-a", "created": EARLY}, {"group": "same-b", "created": EARLY}, True),
        ({"created": EARLY}, {"created": EARLY}, True),
    ],
)
async def test_order_of_two_pods(
    bench: Bench, one: Mapping[str, Any], other: Mapping[str, Any], one_is_first: bool
) -> None:
    """Of two pods the one with the higher priority is first, then the one without a group, then the older group."""
    bench.put(a_group("g1", 1, created=1), a_group("g2", 1, created=2))
    bench.put(a_group("same-a", 1, created=3), a_group("same-b", 1, created=3))
    pods = (a_pod("a", **one), a_pod("b", **other))
    bench.put(*pods)
    first, second = (bench.plugin.sort_key(QueuedPod(pod=pod, first_queued=0, queued=0)) for pod in pods)
    assert (first < second) is one_is_first


@pytest.mark.parametrize(
    ("members", "gated", "spec", "said"),
    [
        (1, 0, {}, "current pods number: 1, minMember of group: 3"),
        (3, 0, {}, ""),
        (5, 0, {}, ""),
        (4, 1, {}, ""),
        (3, 1, {}, "current pods number: 3, 1 of them gated, minMember of group: 3"),
        (3, 3, {}, "3 of them gated"),
        (3, 0, {"min_resources": {"cpu": "8"}}, ""),
        (3, 0, {"min_resources": {"cpu": "9"}}, "resource gap of pod group ns/g: 1 CPU core"),
        (3, 0, {"min_resources": {"example.com/fpga": "1"}}, "resource gap of pod group ns/g"),
    ],
)
async def test_pre_filter_of_a_group(
    bench: Bench, members: int, gated: int, spec: Mapping[str, Any], said: str
) -> None:
    """A member is refused while siblings are missing or gated, or the cluster lacks what the group needs in total."""
    bench.put(a_node("n1", cpu=8), a_group("g", 3, **spec))
    for number in range(members):
        bench.put(a_pod(f"g-{number}", group="g", gates=("later",) if number < gated else ()))
    status = bench.plugin.pre_filter(CycleState(), bench.record(f"g-{members - 1}").pod)
    assert status.ok is not bool(said)
    assert said in status.message
    assert status.ok or status.code is Code.UNRESOLVABLE


async def test_pre_filter_without_a_group_object(bench: Bench) -> None:
    """A member whose group is not there is refused, with the name of what is missing."""
    bench.put(a_pod("orphan", group="nowhere"))
    assert "ns/nowhere not found" in bench.plugin.pre_filter(CycleState(), bench.record("orphan").pod).message


@pytest.mark.parametrize(("free", "own", "fits"), [(3, 0, True), (2, 0, False), (2, 1, True)])
async def test_cluster_resources(bench: Bench, free: int, own: int, fits: bool) -> None:
    """What the group's own pods hold counts as available to it."""
    bench.put(a_node("n1", cpu=free + own), a_group("g", 3, min_resources={"cpu": "3"}))
    bench.put(*(a_pod(f"g-{number}", group="g", node="n1" if number < own else "") for number in range(3)))
    assert bench.plugin.pre_filter(CycleState(), bench.record("g-2").pod).ok is fits


async def test_the_first_member_at_permit_brings_its_siblings(bench: Bench) -> None:
    """A member that waits makes its siblings active at once, so that the group is not held up by their rests."""
    bench.put(a_node("n1", cpu=1))
    bench.gang("trio", 3)
    await bench.run()
    assert bench.queue.counts["active"] == 0
    bench.put(a_node("n2", cpu=2))
    await bench.run(seconds=20)
    assert sorted(bench.binds) == ["trio-0", "trio-1", "trio-2"]


async def test_back_off_prevents_an_endless_loop(bench: Bench) -> None:
    """A group that was rejected is refused while it rests, although its pods are made active again and again."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("trio", 3)
    await bench.run()
    tried = bench.attempts
    for _ in range(10):
        bench.queue.activate(bench.queue._unschedulable.copy())
        await bench.run()
    assert bench.attempts == tried
    assert "failed recently" in bench.plugin.pre_filter(CycleState(), bench.record("trio-0").pod).message


async def test_a_failed_group_does_not_stand_before_a_newer_one(bench: Bench) -> None:
    """While the older group rests, a newer one that fits is served; the older one is first again when it comes back."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("older", 3, created=0)
    await bench.run()
    bench.gang("newer", 2, created=1)
    await bench.run(seconds=1)
    assert sorted(bench.binds) == ["newer-0", "newer-1"]
    await bench.run(seconds=15)
    bench.gang("newest", 3, created=2)
    bench.put(a_node("n2", cpu=3))
    await bench.run(seconds=30)
    assert sorted(name for name in bench.binds if name.startswith("older")) == ["older-0", "older-1", "older-2"]
    assert not bench.groups.is_resting(bench.group("older"))


async def test_an_interrupted_group_is_completed_first(bench: Bench) -> None:
    """Controller 3: a gang found half-bound comes before pods without a group and older groups, so it is completed."""
    bench.put(a_node("n1", cpu=4))
    bench.gang("older", 2, created=0)
    bench.put(a_group("torn", 4, created=5))
    bench.put(*(a_pod(f"torn-{number}", group="torn", node="n1" if number < 2 else "") for number in range(4)))
    bench.put(a_pod("single"))
    await bench.run(seconds=30)
    assert sorted(bench.binds) == ["torn-2", "torn-3"]


async def test_an_old_group_is_served_like_a_new_one(bench: Bench) -> None:
    """A group whose pods come days after it is placed all the same."""
    bench.put(a_node("n1"), a_group("old", 2, created=0))
    bench.put(*(a_pod(f"old-{number}", group="old", created=7 * 24 * 3600) for number in range(2)))
    await bench.run()
    assert sorted(bench.binds) == ["old-0", "old-1"]
