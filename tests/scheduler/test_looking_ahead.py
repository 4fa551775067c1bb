"""Looking ahead: no gang takes the only rack or zone of another that waits, if it could go elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from spinney.api.affinity import Taint
from spinney.api.core import Node, NodeSpec
from spinney.api.documents import InvalidConfiguration
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler import PluginOption, SchedulerConfig, parse_config
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.topology.domains import Level
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.topology.planning import DomainRoom, GangSize, Planned, SearchSteps, plan
from tests.examples import examples
from tests.scheduler.building import (
    QUEUE,
    RACK,
    ZONE,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    placements,
    put_gang,
)

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


def test_zones_with_as_much_room_are_not_alike_if_their_racks_differ() -> None:
    """Either zone holds the first gang; only in one of them it leaves a rack for the second."""
    racks = {("z1", "a"): 4, ("z2", "b"): 2, ("z2", "c"): 2}
    gangs = [GangSize(IN_ZONE, 4), GangSize(IN_RACK, 4)]

    assert where(racks, gangs) == {0: {"b", "c"}, 1: {"a"}}
    assert where(racks, gangs, TIGHTEST) == {0: {"a"}}


def test_the_first_comes_first() -> None:
    """DomainRoom is kept for those that wait only if the gang whose turn it is has room elsewhere."""
    assert where({("z", "a"): 3}, [GangSize(IN_RACK, 2), GangSize(IN_RACK, 3)]) == {0: {"a"}}


def test_a_rack_that_a_rule_forbids_keeps_nobody_from_running() -> None:
    """Nothing may run on the rack that fits best; the gang goes to the other."""
    racks = {("z", "a"): 2, ("z", "b"): 3, ("z", "c"): 4}

    assert where(racks, [GangSize(IN_RACK, 2), GangSize(IN_RACK, 4)], closed="a") == {0: {"b"}, 1: {"c"}}


@pytest.mark.parametrize("number", ["-1", "257", "all"])
def test_a_number_that_makes_no_sense_is_named(number: str) -> None:
    """The error says which argument it is, and what it may be."""
    raw = {"extraPlugins": [{"name": "topology", "arguments": {"planAhead": number}}]}

    with pytest.raises(InvalidConfiguration, match=r"planAhead.*a whole number of at least 0 and at most 256"):
        parse_config(raw, default_registry())


# -- nobody is worse off ---------------------------------------------------------------------------------------------


class HostState(Enum):
    """What may run on a host."""

    FREE = "free"
    TAINTED = "tainted"
    CORDONED = "cordoned"
    ELSEWHERE = "elsewhere"
    """It lacks a label that the gangs ask for."""
    LEAVING = "leaving"
    """A pod takes all of it, and is terminating."""


@dataclass(frozen=True)
class Asks:
    """A gang: where it must be and how many pods it has, and what is particular about it."""

    size: GangSize
    cpu: int = 1
    priority: int = 50
    queue: str = QUEUE
    anywhere: bool = False
    """It requires no domain."""
    minimum: int | None = None


Hosts = Mapping[tuple[str, str], Sequence[HostState]]
"""By zone and rack."""
LIMITED = "limited"
"""A queue that may hold three hosts."""
FREE, LEAVING = HostState.FREE, HostState.LEAVING


def turned_away(node: Node, state: HostState) -> Node:
    """Return a node in that state."""
    labels = {**node.metadata.labels, "pool": "other" if state is HostState.ELSEWHERE else "own"}
    taints = (Taint(key="closed", effect="NoSchedule"),) if state is HostState.TAINTED else ()
    spec = NodeSpec(taints=taints, unschedulable=state is HostState.CORDONED)
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=spec)


def started(
    hosts: Hosts, gangs: Sequence[Asks], config: SchedulerConfig | None = None, *plugins: type[Plugin]
) -> list[str]:
    """Return the gangs that start now, by turn."""
    inventory = an_inventory()
    inventory.put_topology(TopologyLevels("fabric", (ZONE, RACK)))
    for queue in sorted({gang.queue for gang in gangs} - {QUEUE}):
        limited = QueueInfo(name=queue, limit=Amounts(gpu=24 * GPU))
        inventory.put_queue(limited if queue == LIMITED else QueueInfo(name=queue))
    for (zone, rack), states in hosts.items():
        for number, state in enumerate(states):
            inventory.apply(turned_away(a_node(f"{rack}-{number}", labels={ZONE: zone, RACK: rack}), state))
            if state is LEAVING:
                inventory.apply(a_pod(f"old-{rack}-{number}", gpus=8, node=f"{rack}-{number}", terminating=True))
    for number, gang in enumerate(gangs):
        name, (depth, pods) = f"g{number}", gang.size
        constraint = None if gang.anywhere else TopologyConstraintInfo("fabric", required=(ZONE, RACK)[depth])
        put_gang(
            inventory,
            a_gang(
                name,
                minimum=pods if gang.minimum is None else min(gang.minimum, pods),
                topology=constraint,
                priority=gang.priority,
                queue=gang.queue,
            ),
            [
                a_pod(f"{name}-{each}", gang=name, gpus=8, cpu=str(gang.cpu), node_selector={"pool": "own"})
                for each in range(pods)
            ],
        )
    binds = a_scheduler(inventory, *plugins, config=config).run_cycle().binds
    by_turn = sorted(range(len(gangs)), key=lambda number: (-gangs[number].priority, number))
    names = {bind.pod.name.partition("-")[0] for bind in binds}
    return [f"g{number}" for number in by_turn if f"g{number}" in names]


def test_the_first_does_not_wait_for_a_pod_that_ends_so_that_another_starts() -> None:
    """Two hosts are free together, and one beside one that will be: the first gang takes the two."""
    hosts = {("z", "a"): [FREE, FREE], ("z", "b"): [FREE], ("z", "c"): [LEAVING]}
    gangs = [Asks(GangSize(IN_ZONE, 2), priority=125), Asks(GangSize(IN_RACK, 2))]

    assert started(hosts, gangs, TIGHTEST) == ["g0"]
    assert started(hosts, gangs) == ["g0"]


def test_no_place_of_another_kind_of_gang_that_comes_before_is_planned_away() -> None:
    """The last gang would find a rack if the first took one that the second, whose pods ask for more, needs."""
    hosts = {("y", "a"): [FREE] * 3, ("z", "b"): [FREE] * 2, ("z", "c"): [FREE] * 2}
    gangs = [Asks(GangSize(IN_RACK, 2)), Asks(GangSize(IN_ZONE, 4), cpu=2), Asks(GangSize(IN_RACK, 3))]

    assert started(hosts, gangs, TIGHTEST) == ["g0", "g1"]
    assert started(hosts, gangs) == ["g0", "g1"]


def test_a_gang_of_another_kind_that_finds_no_room_keeps_nobody_from_planning() -> None:
    """The second gang fits nowhere, so the first may leave the rack that the third needs."""
    hosts = {("y", "a"): [FREE] * 3, ("z", "b"): [FREE] * 2, ("z", "c"): [FREE] * 2}
    gangs = [Asks(GangSize(IN_RACK, 2)), Asks(GangSize(IN_ZONE, 5), cpu=2), Asks(GangSize(IN_RACK, 3))]

    assert started(hosts, gangs, TIGHTEST) == ["g0"]
    assert started(hosts, gangs) == ["g0", "g2"]


class RackForTheSecond(Plugin):
    """Lets only the second gang use rack d."""

    name = "rack-for-the-second"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate_columns(
            lambda task, job, nodes: np.array([node.labels[RACK] != "d" for node in nodes]),
            per_job=False,
            reads_usage=False,
            applies_to=lambda task: task.job.key.name != "g1",
        )


def test_a_gang_is_not_passed_over_because_others_may_not_use_its_room() -> None:
    """The second gang has its zone if the first leaves it alone; the first would not find as much room there."""
    hosts = {("y", "a"): [FREE] * 3, ("z", "b"): [FREE] * 2, ("z", "d"): [FREE] * 2}
    gangs = [Asks(GangSize(IN_RACK, 2)), Asks(GangSize(IN_ZONE, 4)), Asks(GangSize(IN_RACK, 3))]

    assert started(hosts, gangs, TIGHTEST, RackForTheSecond) == ["g0", "g1"]
    assert started(hosts, gangs, None, RackForTheSecond) == ["g0", "g1"]


@pytest.mark.parametrize("state", [HostState.TAINTED, HostState.CORDONED, HostState.ELSEWHERE])
def test_nothing_is_planned_where_a_gang_may_not_run(state: HostState) -> None:
    """The hosts that are closed to a gang look like room for it, and are none."""
    hosts = {("z0", "a"): [FREE, FREE, FREE, state, state], ("z1", "b"): [FREE, FREE, state, state]}
    gangs = [Asks(GangSize(IN_RACK, 2)), Asks(GangSize(IN_ZONE, 3)), Asks(GangSize(IN_RACK, 3))]

    assert started(hosts, gangs, TIGHTEST) == ["g0", "g1"]
    assert started(hosts, gangs) == ["g0", "g1"]


def test_queues_that_take_turns_are_planned_for_if_all_find_room() -> None:
    """Whoever comes first, everybody has a rack."""
    hosts = {("y", "a"): [FREE] * 3, ("z", "b"): [FREE] * 2, ("z", "c"): [FREE] * 2}
    small, large = GangSize(IN_RACK, 2), GangSize(IN_RACK, 3)
    gangs = [Asks(small, queue="one"), Asks(large, queue="two"), Asks(small, queue="one")]

    assert len(started(hosts, gangs, TIGHTEST)) == 2
    assert started(hosts, gangs) == ["g0", "g1", "g2"]


@st.composite
def mixed_worlds(draw: st.DrawFn) -> tuple[Hosts, list[Asks]]:
    """Return hosts of which some are closed or being left, and gangs of two kinds and more."""
    states = st.sampled_from([FREE, FREE, FREE, *HostState])
    racks = draw(st.lists(st.tuples(st.integers(0, 2), st.lists(states, min_size=1, max_size=4)), max_size=8))
    hosts = {(f"z{zone}", f"r{number}"): rack for number, (zone, rack) in enumerate(racks)}
    size = st.builds(GangSize, st.sampled_from([IN_ZONE, IN_RACK]), st.integers(1, 6))
    asks = st.builds(
        Asks,
        size,
        cpu=st.sampled_from([1, 1, 1, 2]),
        priority=st.sampled_from([50, 50, 50, 60]),
        anywhere=st.sampled_from([False] * 9 + [True]),
        minimum=st.sampled_from([None] * 9 + [2]),
        queue=st.just(draw(st.sampled_from([QUEUE, QUEUE, LIMITED]))),
    )
    return hosts, draw(st.lists(asks, min_size=2, max_size=8))


@given(mixed_worlds())
@settings(max_examples=examples(100), deadline=None)
def test_by_turn_the_first_who_fares_otherwise_than_without_plans_fares_better(world: tuple[Hosts, list[Asks]]) -> None:
    """Gangs of other kinds, closed nodes, pods that end and queues with a limit change nothing about that."""
    hosts, gangs = world
    alone, planned = started(hosts, gangs, TIGHTEST), started(hosts, gangs)

    by_turn = sorted(range(len(gangs)), key=lambda number: (-gangs[number].priority, number))
    differs = next((each for each in by_turn if (f"g{each}" in alone) != (f"g{each}" in planned)), None)
    assert differs is None or f"g{differs}" in planned


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
    """Zones are drawn rack by rack, or have as much room each in racks of other sizes."""
    if draw(st.booleans()):
        zones = draw(st.lists(st.sampled_from([(4,), (3, 1), (2, 2), (2, 1, 1)]), min_size=2, max_size=2))
    else:
        zones = [tuple(draw(st.lists(st.integers(1, 4), max_size=2))) or (1,) for _ in range(2)]
    racks = {
        (f"z{zone}", f"r{zone}{each}"): hosts for zone, racks in enumerate(zones) for each, hosts in enumerate(racks)
    }
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
@settings(max_examples=examples(200), deadline=None)
def test_a_plan_holds_whom_brute_force_finds_room_for(world: World) -> None:
    """The same gangs, and no domain is promised more than it has."""
    room = _room(world.racks)
    given_domains = plan(room, world.gangs, SearchSteps(100_000, 100_000)).given

    assert sorted(given_domains) == in_order(world.racks, world.gangs)
    left = _room(world.racks)
    for number, domain in given_domains.items():
        left.take(world.gangs[number].depth, domain, world.gangs[number].pods)
    assert all((each >= 0).all() for each in left.left)
    assert all((mine == planned).all() for mine, planned in zip(left.left, room.left, strict=True))


@given(worlds())
@settings(max_examples=examples(60), deadline=None)
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

    assert set(plan(_room(racks), gangs, SearchSteps(100, 100)).given) == {0, 1, 2}
    assert plan(_room(racks), gangs, SearchSteps(100, 0)) == Planned({0: 1, 1: 0}, frozenset({2}))
    assert not plan(_room(racks), [*gangs, GangSize(IN_RACK, 5)], SearchSteps(100, 100)).open, "there is surely no room"
