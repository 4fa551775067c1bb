"""Preemption for composites whose groups have topology keys of their own, against every placement there is."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pytest

from spinney.api.core import PodSchedulingGroup
from spinney.api.struct import JSON, convert
from spinney.api.workload_v1beta1 import CompositePodGroup, PodGroup
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.runtime import run_virtual

from .bench import NAMESPACE, Bench, a_node, a_pod
from .test_composites import BLOCK, a_composite, a_part, a_tree
from .test_native_gangs import RACK, a_native_pod, until_condition
from .world import World
from .world import a_node as a_cluster_node
from .world import a_pod as a_cluster_pod

HOST = "kubernetes.io/hostname"
WORLDS = int(os.environ.get("SPINNEY_WORLDS", "40"))
"""How many random clusters are gone through; more find what is rare."""
embedded = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def in_one(key: str) -> JSON:
    """Return the constraint to lie in one domain of a key."""
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


# -- small worlds -----------------------------------------------------------------------------------------------------


async def a_job_in_a_block(world: World) -> None:
    """Create a job of high priority in one block, with two groups of two pods in one rack each."""
    high = {"priorityClassName": "high"}
    parts = (a_part(name, 2, "job", **high, **in_one(RACK)) for name in ("left", "right"))
    await a_tree(world, a_composite("job", 2, **high, **in_one(BLOCK)), *parts)
    for group in ("left", "right"):
        await world.create(*(a_native_pod(f"{group}-{n}", group, **high) for n in range(2)))


async def full_racks(world: World, *racks: tuple[str, str, int, str]) -> None:
    """Create a node per rack, filled with pods of a priority class."""
    await world.priority("high", 1000)
    for block, rack, cpu, priority in racks:
        await world.nodes(a_cluster_node(rack, cpu=str(cpu), labels={BLOCK: block, RACK: rack}))
        for number in range(cpu if priority != "-" else 0):
            pod = a_cluster_pod(f"on-{rack}-{number}", priority_class=priority, nodeSelector={HOST: rack})
            await world.create(pod)
    await world.until(lambda: all(world.node_of(name) for name in world.pods))


@embedded
async def test_room_is_made_where_every_level_fits(world: World) -> None:
    """Of two blocks with as many pods the one is cut right whose racks hold a group each; only there pods are taken."""
    await full_racks(world, ("a", "r1", 1, ""), ("a", "r2", 3, ""), ("b", "r3", 2, ""), ("b", "r4", 2, ""))
    await a_job_in_a_block(world)
    await world.until(lambda: len(world.bound("left")) + len(world.bound("right")) == 4)
    for group in ("left", "right"):
        assert len({world.node_of(name) for name in world.bound(group)}) == 1
    assert {world.node_of(name) for name in world.bound("left") + world.bound("right")} == {"r3", "r4"}
    assert sorted(name for name in world.pods if name.startswith("on-")) == [
        "on-r1-0",
        "on-r2-0",
        "on-r2-1",
        "on-r2-2",
    ]


@embedded
async def test_nobody_is_taken_when_no_victims_help(world: World) -> None:
    """With four pods' worth of room in each block, but no two racks for two, nobody is taken and the group says so."""
    await full_racks(world, ("a", "r1", 1, ""), ("a", "r2", 3, ""), ("b", "r3", 2, ""), ("b", "r4", 2, "high"))
    await a_job_in_a_block(world)
    message = await until_condition(world, "left", "False")
    assert "no victims would make room for all that pod group test/job lacks in its topology domains" in message
    await world.settle(60)
    assert len([name for name in world.pods if name.startswith("on-")]) == 8
    assert world.bound("left") == world.bound("right") == []


@embedded
async def test_members_that_wait_elsewhere_come_along(world: World) -> None:
    """A block with free room for one group holds it back no more than it must: both go where victims make room."""
    await full_racks(world, ("a", "r1", 2, "-"), ("a", "r2", 1, ""), ("b", "r3", 2, ""), ("b", "r4", 2, ""))
    await a_job_in_a_block(world)
    await world.until(lambda: len(world.bound("left")) + len(world.bound("right")) == 4)
    assert {world.node_of(name) for name in world.bound("left") + world.bound("right")} == {"r3", "r4"}
    assert "on-r2-0" in world.pods


@embedded
async def test_the_group_that_fits_is_found_among_those_that_suffice(world: World) -> None:
    """A composite that needs one of two groups runs with the one that fits, though the other was tried first."""
    await world.nodes(a_cluster_node("n1", cpu="2"))
    await a_tree(world, a_composite("job", 1), a_part("large", 3, "job"), a_part("small", 2, "job"), large=3, small=2)
    await world.until(lambda: world.bound() == ["small-0", "small-1"])


# -- random clusters --------------------------------------------------------------------------------------------------


@dataclass
class Part:
    """A group of a tree: its pods, its minimum, its topology key."""

    name: str
    minimum: int
    size: int
    key: str


@dataclass
class Tree:
    """A composite, or one inside another."""

    name: str
    needed: int
    key: str
    members: list["Tree | Part"] = field(default_factory=list)

    def parts(self) -> Iterator[Part]:
        for member in self.members:
            yield from member.parts() if isinstance(member, Tree) else (member,)


Nodes = dict[str, tuple[int, dict[str, str]]]


def a_random_cluster(chance: random.Random) -> tuple[Nodes, list[tuple[str, str, int, int]]]:
    """Return up to five nodes in racks and blocks, and pods on them: name, node, cpus, priority."""
    racks = {f"r{number}": chance.choice("ab") for number in range(3)}
    nodes: Nodes = {}
    pods: list[tuple[str, str, int, int]] = []
    for number in range(chance.randint(2, 5)):
        rack = chance.choice(sorted(racks))
        name, free = f"n{number}", chance.randint(1, 3)
        nodes[name] = free, {RACK: rack, BLOCK: racks[rack], HOST: name}
        while free and chance.random() < 0.8:
            cpu = chance.randint(1, free)
            free -= cpu
            pods.append((f"on-{len(pods)}", name, cpu, chance.choice([0, 0, 5, 20])))
    return nodes, pods


def a_random_tree(chance: random.Random) -> Tree:
    """Return a composite of two or three groups, two of them maybe in a composite of their own."""

    def part(name: str) -> Part:
        minimum = chance.randint(1, 2)
        return Part(name, minimum, minimum + chance.choice([0, 0, 1]), chance.choice(["", RACK, HOST]))

    members: list[Tree | Part] = [part("a"), part("b")]
    if chance.random() < 0.3:
        members = [part("c"), Tree("inner", chance.randint(1, 2), chance.choice(["", RACK]), members)]
    return Tree("job", chance.randint(1, 2), chance.choice(["", BLOCK, RACK]), members)


def ways(member: Tree | Part) -> Iterator[dict[str, int]]:
    """Return the pods of each group that satisfy a tree."""
    if isinstance(member, Part):
        yield {member.name: member.minimum}
        return
    for some in combinations(member.members, member.needed):
        for way in product(*map(ways, some)):
            yield {name: count for each in way for name, count in each.items()}


def holds(member: Tree | Part, places: dict[str, list[str]], nodes: Nodes) -> bool:
    """Tell whether the topology keys of a tree hold for where pods are."""
    names = [member] if isinstance(member, Part) else list(member.parts())
    where = (
        {nodes[node][1][member.key] for part in names for node in places.get(part.name, [])} if member.key else set()
    )
    return len(where) <= 1 and (isinstance(member, Part) or all(holds(each, places, nodes) for each in member.members))


def fits(tree: Tree, nodes: Nodes, pods: list[tuple[str, str, int, int]], *, below: int) -> bool:
    """Tell whether some quorum has some placement when all pods of a lower priority than ``below`` are gone."""
    free = {name: cpu for name, (cpu, _) in nodes.items()}
    for _, node, cpu, priority in pods:
        free[node] -= cpu if priority >= below else 0
    for way in ways(tree):
        members = [name for name, count in way.items() for _ in range(count)]
        for chosen in product(nodes, repeat=len(members)):
            if any(count > free[node] for node, count in Counter(chosen).items()):
                continue
            places: dict[str, list[str]] = {}
            for name, node in zip(members, chosen, strict=True):
                places.setdefault(name, []).append(node)
            if holds(tree, places, nodes):
                return True
    return False


def put_tree(bench: Bench, tree: Tree, parent: str = "", *, with_pods: bool = True) -> None:
    """Have the objects of a tree appear, and its pods."""

    def changed(kind: Any, each: JSON) -> Any:
        each["metadata"]["namespace"] = NAMESPACE
        return Change(Key(NAMESPACE, each["metadata"]["name"]), None, convert(kind, each), "1")

    composite = a_composite(tree.name, tree.needed, parent=parent, **in_one(tree.key))
    bench.intake.take_in(changed(CompositePodGroup, composite))
    for member in tree.members:
        if isinstance(member, Tree):
            put_tree(bench, member, tree.name, with_pods=with_pods)
            continue
        part = a_part(member.name, member.minimum, tree.name, **in_one(member.key))
        bench.intake.take_in(changed(PodGroup, part))
        membership = PodSchedulingGroup(pod_group_name=member.name)
        size = member.size if with_pods else 0
        bench.put(*(a_pod(f"{member.name}-{n}", priority=10, scheduling_group=membership) for n in range(size)))


async def go_through(seed: int) -> str:
    """Have a random composite scheduled on a random cluster, and compare with all there is to choose from."""
    chance = random.Random(seed)
    nodes, pods = a_random_cluster(chance)
    tree = a_random_tree(chance)
    story = f"seed {seed}: {nodes} {pods} {tree}"
    bench = Bench()
    bench.put(*(a_node(name, cpu, labels=labels) for name, (cpu, labels) in nodes.items()))
    bench.put(*(a_pod(name, node=node, cpu=str(cpu), priority=priority) for name, node, cpu, priority in pods))
    put_tree(bench, tree)
    await bench.run(20)
    victims = [name for name, _ in bench.preempted]
    if fits(tree, nodes, pods, below=-1):
        expected = "free room"
        assert not victims, f"{victims} were taken though there is room: {story}"
    elif fits(tree, nodes, pods, below=10):
        expected = "victims"
        assert victims, f"nobody was taken though that would help: {story}"
        assert len(set(victims)) == len(victims), f"{victims} were taken twice: {story}"
        assert all(priority < 10 for name, _, _, priority in pods if name in victims), story
        assert not bench.binds, f"bound before there is room for all: {story}"
        bench.delete(*victims)
        await bench.run(20)
        assert len(bench.preempted) == len(victims), f"victims were taken in vain: {bench.preempted} {story}"
    else:
        expected = "nothing"
        assert not victims, f"{victims} were taken for nothing: {story}"
    places: dict[str, list[str]] = {}
    for name, node in bench.binds.items():
        places.setdefault(name.split("-")[0], []).append(node)
    assert holds(tree, places, nodes), f"{bench.binds} breaks a topology key: {story}"
    if expected == "nothing":
        assert not bench.binds, story
        if any(priority < 10 for *_, priority in pods):
            assert "no victims would make room" in bench.rejected[0][1], story
    else:
        enough = any(all(len(places.get(part, [])) >= count for part, count in way.items()) for way in ways(tree))
        assert enough, f"only {bench.binds} were bound: {story}"
    return expected


def test_victims_are_taken_if_and_only_if_they_help() -> None:
    """On random clusters: free room is found, else victims that suffice are taken, else nobody, and it is said."""
    seen = Counter(run_virtual(go_through(seed)) for seed in range(WORLDS))
    assert min(seen[each] for each in ("free room", "victims", "nothing")) > WORLDS // 10
