"""Looking ahead: no gang takes the only rack or zone of another that waits, if it could go elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from spinney.api.affinity import Taint
from spinney.api.core import NodeSpec
from spinney.api.documents import InvalidConfiguration
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler import PluginOption, SchedulerConfig, parse_config
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.topology.domains import Level
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.topology.planning import DomainRoom, GangSize, SearchSteps, plan
from tests.scheduler.building import RACK, ZONE, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang

Racks = Mapping[tuple[str, str], int]
"""Hosts by zone and rack."""
IN_ZONE, IN_RACK = 0, 1
TIGHTEST = SchedulerConfig(extra_plugins=(PluginOption("topology", {"planAhead": "0"}),))


def where(
    racks: Racks, gangs: Sequence[GangSize], config: SchedulerConfig | None = None, closed: str = ""
) -> dict[int, set[str]]:
    """Return the racks of each gang that is placed; pods take a host each, and no host of a rack that is closed."""
    nodes = []
    for (zone, rack), hosts in racks.items():
        for number in range(hosts):
            node = a_node(f"{rack}-{number}", labels={ZONE: zone, RACK: rack})
            if rack == closed:
                node = replace(node, spec=NodeSpec(taints=(Taint(key="closed", effect="NoSchedule"),)))
            nodes.append(node)
    inventory = an_inventory(*nodes)
    inventory.put_topology(TopologyLevels("fabric", (ZONE, RACK)))
    for number, gang in enumerate(gangs):
        constraint = TopologyConstraintInfo("fabric", required=(ZONE, RACK)[gang.depth])
        pods = [a_pod(f"g{number}-{each}", gang=f"g{number}", gpus=8) for each in range(gang.pods)]
        put_gang(inventory, a_gang(f"g{number}", minimum=gang.pods, topology=constraint), pods)
    found: dict[int, set[str]] = {}
    for pod, node_name in placements(a_scheduler(inventory, config=config)).items():
        found.setdefault(int(pod.partition("-")[0][1:]), set()).add(node_name.rpartition("-")[0])
    return found


def test_a_gang_leaves_the_rack_that_another_needs() -> None:
    """The gang of two would fill up the zone that is fullest, but then the gang of three has no rack."""
    racks = {("z1", "a"): 3, ("z2", "b"): 2, ("z2", "c"): 2}
    gangs = [GangSize(IN_RACK, 2), GangSize(IN_RACK, 3)]

    assert where(racks, gangs) == {0: {"b"}, 1: {"a"}}
    assert where(racks, gangs, TIGHTEST) == {0: {"a"}}


def test_a_large_gang_leaves_a_rack_whole_inside_its_zone() -> None:
    """Of the zone's five hosts it takes those that the gang after it cannot use."""
    racks = {("z", "a"): 3, ("z", "b"): 1, ("z", "c"): 1}
    gangs = [GangSize(IN_ZONE, 2), GangSize(IN_RACK, 3)]

    assert where(racks, gangs) == {0: {"b", "c"}, 1: {"a"}}
    assert where(racks, gangs, TIGHTEST) == {0: {"a"}}


def test_the_first_comes_first() -> None:
    """DomainRoom is kept for those that wait only if the gang whose turn it is has room elsewhere."""
    assert where({("z", "a"): 3}, [GangSize(IN_RACK, 2), GangSize(IN_RACK, 3)]) == {0: {"a"}}


def test_a_plan_that_a_rule_forbids_keeps_nobody_from_running() -> None:
    """Nothing may run on the rack that fits best, which the plan does not know; the gang goes to the other."""
    racks = {("z", "a"): 2, ("z", "b"): 3, ("z", "c"): 4}

    assert where(racks, [GangSize(IN_RACK, 2), GangSize(IN_RACK, 4)], closed="a") == {0: {"b"}, 1: {"c"}}


@pytest.mark.parametrize("number", ["-1", "257", "all"])
def test_a_number_that_makes_no_sense_is_named(number: str) -> None:
    """The error says which argument it is, and what it may be."""
    raw = {"extraPlugins": [{"name": "topology", "arguments": {"planAhead": number}}]}

    with pytest.raises(InvalidConfiguration, match=r"planAhead.*a whole number of at least 0 and at most 256"):
        parse_config(raw, default_registry())


# -- beside brute force ----------------------------------------------------------------------------------------------


def in_order(racks: Racks, gangs: Sequence[GangSize]) -> list[int]:
    """Return the gangs that have room beside those before them, wherever these are put: all ways are tried."""
    zones = [zone for zone, _ in racks]
    found: list[int] = []
    for number in range(len(gangs)):
        chosen = sorted((gangs[each] for each in [*found, number]), reverse=True)
        if _have_room(tuple(racks.values()), tuple(chosen), tuple(zones)):
            found.append(number)
    return found


@cache
def _have_room(free: tuple[int, ...], gangs: tuple[GangSize, ...], zones: tuple[str, ...]) -> bool:
    if not gangs:
        return True
    first, *others = gangs
    return any(_have_room(left, tuple(others), zones) for left in set(_ways(free, first, zones)))


def _ways(free: tuple[int, ...], gang: GangSize, zones: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Yield what is left of each rack for each way to choose the hosts of a gang."""
    homes = [[rack] for rack in range(len(free))]
    if gang.depth == IN_ZONE:
        homes = [[rack for rack in range(len(free)) if zones[rack] == zone] for zone in dict.fromkeys(zones)]
    for home in homes:
        for taken in product(*[range(free[rack] + 1) if rack in home else (0,) for rack in range(len(free))]):
            if sum(taken) == gang.pods:
                yield tuple(np.subtract(free, taken).tolist())


@dataclass(frozen=True)
class World:
    """A small, uneven tree, and gangs that ask for more or less of it."""

    racks: Racks
    gangs: list[GangSize]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    racks = {(f"z{draw(st.integers(0, 1))}", f"r{number}"): hosts for number, hosts in enumerate(sizes)}
    gangs = st.builds(GangSize, st.sampled_from([IN_ZONE, IN_RACK]), st.integers(1, 5))
    return World(dict(sorted(racks.items())), draw(st.lists(gangs, min_size=1, max_size=5)))


def _room(racks: Racks) -> DomainRoom:
    zones = sorted({zone for zone, _ in racks})
    parents = np.array([zones.index(zone) for zone, _ in racks])
    hosts = np.array(list(racks.values()))
    nothing = np.zeros(0, dtype=np.int64)
    levels = [
        Level(key, [], nothing, parent, nothing, nothing)
        for key, parent in ((ZONE, np.zeros(len(zones), dtype=np.int64)), (RACK, parents))
    ]
    return DomainRoom(levels, [np.bincount(parents, hosts).astype(np.int64), hosts])


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_a_plan_holds_whom_brute_force_finds_room_for(world: World) -> None:
    """The same gangs, and no domain is promised more than it has."""
    room = _room(world.racks)
    given_domains = plan(room, world.gangs, SearchSteps(100_000))

    assert sorted(given_domains) == in_order(world.racks, world.gangs)
    left = _room(world.racks)
    for number, domain in given_domains.items():
        left.take(world.gangs[number].depth, domain, world.gangs[number].pods)
    assert all((each >= 0).all() for each in left.left)
    assert all((mine == planned).all() for mine, planned in zip(left.left, room.left, strict=True))


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_gangs_find_a_domain_as_often_as_brute_force_finds_one(world: World) -> None:
    """Placed one after the other by the scheduler, each where it must be."""
    found = where(world.racks, world.gangs)

    assert sorted(found) == in_order(world.racks, world.gangs)
    zone_of = {rack: zone for zone, rack in world.racks}
    for number, racks in found.items():
        together = racks if world.gangs[number].depth == IN_RACK else {zone_of[rack] for rack in racks}
        assert len(together) == 1


def test_a_search_without_steps_left_plans_as_if_it_had_found_nothing() -> None:
    """The last gang goes without, and those before it keep their places."""
    racks = {("z", "a"): 4, ("z", "b"): 3}
    gangs = [GangSize(IN_RACK, 2), GangSize(IN_RACK, 2), GangSize(IN_RACK, 3)]

    assert set(plan(_room(racks), gangs, SearchSteps(100))) == {0, 1, 2}
    assert set(plan(_room(racks), gangs, SearchSteps(0))) == {0, 1}
