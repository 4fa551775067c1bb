"""Composites and their groups come and go in any order: what they come to is the same as if they were read at once."""

import random
import sys
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from spinney.api import workload_v1beta1 as native
from spinney.api.core import Pod
from spinney.api.struct import JSON, convert
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.keys import Key, key_of
from spinney.scheduler import Inventory

GROUP, COMPOSITE = native.PodGroup, native.CompositePodGroup


def a_group(name: str, parent: str, least: int = 1) -> native.PodGroup:
    """Return a PodGroup below a composite."""
    return convert(GROUP, _manifest(name, parent, {"gang": {"minCount": least}}))


def a_composite(name: str, parent: str = "", least: int = 1) -> native.CompositePodGroup:
    """Return a composite that needs so many of its groups."""
    return convert(COMPOSITE, _manifest(name, parent, {"gang": {"minGroupCount": least}}))


def a_pod(name: str, group: str) -> Pod:
    """Return a pod of a PodGroup."""
    spec = {"schedulerName": "spinney-scheduler", "schedulingGroup": {"podGroupName": group}, "containers": []}
    return convert(Pod, {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec})


def _manifest(name: str, parent: str, policy: JSON) -> JSON:
    above = {"parentCompositePodGroupName": parent} if parent else {}
    reference = {"workloadName": "work", "templateName": "any"}
    spec = {"workloadRef": reference, "schedulingPolicy": policy, **above}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


class Listing:
    """The gangs as a listener hears of them. Mutable."""

    def __init__(self) -> None:
        self.gangs: dict[GangKey, Gang] = {}

    def put_gang(self, gang: Gang) -> None:
        self.gangs[gang.key] = gang

    def remove_gang(self, key: GangKey) -> None:
        self.gangs.pop(key, None)

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        pass

    def derive_again(self, workload: Key | None) -> None:
        pass


def read(*found: native.PodGroup | native.CompositePodGroup) -> tuple[GangDefinitions, Listing]:
    """Return what objects define that come in this order."""
    definitions, listing = GangDefinitions(), Listing()
    definitions.subscribe(listing)
    for each in found:
        definitions.put(type(each), key_of(each), each)
    return definitions, listing


def test_what_composites_come_to_does_not_depend_on_how_it_came_about() -> None:
    """Groups and composites appear, change their parent and their minimum, and go, also while others are missing."""
    for seed in range(100):
        chance = random.Random(seed)
        definitions, listing = read()
        there: dict[tuple[type[Any], str], Any] = {}
        for _ in range(30):
            level = chance.randrange(4)  # a composite names one of a level above, so none is inside itself
            parent = f"c{chance.randrange(level)}" if level and chance.random() < 0.8 else ""
            least = chance.randrange(1, 4)
            made: native.PodGroup | native.CompositePodGroup
            if chance.random() < 0.5:
                made = a_group(f"g{chance.randrange(6)}", f"c{chance.randrange(4)}" if parent else "", least)
            else:
                made = a_composite(f"c{level}", parent, least)
            key = type(made), made.metadata.name
            if key in there and chance.random() < 0.4:
                del there[key]
                definitions.put(key[0], key_of(made), None)
            else:
                there[key] = made
                definitions.put(key[0], key_of(made), made)
        fresh, listed = read(*there.values())
        assert listing.gangs == listed.gangs, seed
        groups = [GangKey("native", "ns", name) for kind, name in there if kind is GROUP]
        assert [definitions.home(each) for each in groups] == [fresh.home(each) for each in groups], seed


def _in_one(count: int) -> list[Any]:
    return [a_composite("job", least=count), *(a_group(f"g{each}", "job") for each in range(count))]


def _each_in_its_own(count: int) -> list[Any]:
    parts = [(a_composite(f"c{each}", "job"), a_group(f"g{each}", f"c{each}")) for each in range(count)]
    return [a_composite("job", least=count), *(each for pair in parts for each in pair)]


def _with_pods(count: int) -> list[Any]:
    return [*(a_pod(f"p{each}", f"g{each}") for each in range(count)), *_each_in_its_own(count)]


def _taken_apart(count: int) -> list[Any]:
    return [*_with_pods(count), *(a_composite(f"c{each}") for each in range(count))]


@pytest.mark.parametrize("come", [_in_one, _each_in_its_own, _with_pods, _taken_apart])
def test_a_composite_of_twice_the_groups_is_read_with_twice_the_work(come: Callable[[int], list[Any]]) -> None:
    """Whoever may write groups writes any number, one inside the other, and each of them is read once."""

    def calls_for(groups: int) -> int:
        objects, inventory, calls = come(groups), Inventory(), 0

        def count(frame: object, event: str, arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            for each in objects:
                inventory.apply(each)
        finally:
            sys.setprofile(None)
        gangs = inventory.snapshot().gangs.gangs.values()
        assert sum(len(members.gang.pod_sets) for members in gangs) == groups
        return calls

    assert calls_for(400) < 3 * calls_for(200)


def test_composites_inside_each_other_are_no_gang() -> None:
    """Whoever names two composites as each other's parent has no gang, in whatever order they came, until one goes."""
    rounds: list[native.PodGroup | native.CompositePodGroup]
    rounds = [a_composite("a", "b"), a_composite("b", "a"), a_group("g", "a")]
    for order in permutations(rounds):
        definitions, listing = read(*order)
        assert listing.gangs == {}
        definitions.put(COMPOSITE, Key("ns", "b"), None)
        definitions.put(COMPOSITE, Key("ns", "b"), a_composite("b"))
        assert [key.name for key in listing.gangs] == ["b"]
        assert list(listing.gangs[GangKey("composite", "ns", "b")].pod_sets) == ["g"]
        assert definitions.home(GangKey("native", "ns", "g")) == GangKey("composite", "ns", "b")
