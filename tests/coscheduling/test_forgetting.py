"""What is gone is forgotten: a scheduler that runs for weeks keeps nothing of the groups that came and went."""

import os
from collections.abc import Iterator, Sized
from typing import Any

import pytest
from msgspec.structs import replace

from spinney.api import workload_v1beta1
from spinney.api.coscheduling import POD_GROUP
from spinney.api.struct import convert
from spinney.kube.cache import Change
from spinney.kube.keys import key_of

from .bench import NAMESPACE, Bench, a_group, a_node, a_pod
from .test_composite_preemption import Part, Tree, put_tree
from .test_composites import a_composite, a_part
from .world import World
from .world import a_node as a_cluster_node

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
GROUPS = int(os.environ.get("SPINNEY_GROUPS", "600"))
"""How many groups come and go; ten thousand are gone through in half a minute."""


def sizes(root: object, *rooms: str) -> dict[str, int]:
    """Return the size of every container that an object of these rooms holds, by how it is reached."""
    return {path: len(each) for path, each in _containers(root, "", rooms, set()) if path}


def _containers(found: Any, path: str, rooms: tuple[str, ...], seen: set[int]) -> Iterator[tuple[str, Sized]]:
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, dict | list | set | tuple):
        yield path, found
        inside: Iterator[tuple[str, Any]] = ((f"{path}[]", each) for each in list(_values(found)))
    elif type(found).__module__.startswith(rooms):
        names = [*getattr(found, "__dict__", {}), *getattr(type(found), "__slots__", ())]
        inside = ((f"{path}.{name}", getattr(found, name)) for name in names if hasattr(found, name))
    else:
        return
    for where, each in inside:
        yield from _containers(each, where, rooms, seen)


def _values(found: Any) -> Any:
    return found.values() if isinstance(found, dict) else found


def gone(found: Any) -> Change[Any]:
    """Return the news that an object of the bench's namespace was deleted."""
    found = replace(found, metadata=replace(found.metadata, namespace=NAMESPACE))
    return Change(key_of(found), found, None, "1")


def one_life(bench: Bench, number: int) -> list[str]:
    """Have a group appear that is bound, waits, is refused, or is not wanted any more; return its pods."""
    name, kind = f"g{number}", number % 4
    size, minimum, cpu = ((1, 1, "1"), (1, 2, "1"), (2, 2, "9"), (1, 1, "1"))[kind]
    bench.put(a_group(name, minimum))
    bench.put(*(a_pod(f"{name}-{n}", group=name, cpu=cpu, priority=10 * (number % 100 == 0)) for n in range(size)))
    return [f"{name}-{n}" for n in range(size)]


async def test_groups_that_came_and_went_leave_nothing_behind(bench: Bench) -> None:
    """After many groups that ran, waited, were refused or preempted others, every dictionary is as after the first."""
    bench.put(a_node("n1", 4))
    rooms = ("spinney.coscheduling", "spinney.gangs")
    parts = (bench.scheduler, bench.intake, bench.services.groups)
    seen: list[dict[str, int]] = []
    for first in range(0, GROUPS, 100):
        pods = [pod for number in range(first, first + 100) for pod in one_life(bench, number)]
        tree = Tree("job", 2, "kubernetes.io/hostname", [Part("a", 1, 1, ""), Part("b", 1, 2, "")])
        put_tree(bench, tree)
        await bench.run(0.1)
        bench.delete(*pods, "a-0", "b-0", "b-1")
        for number in range(first, first + 100):
            bench.intake.take_in(gone(a_group(f"g{number}", 1)))
        for part in (a_part("a", 1, "job"), a_part("b", 1, "job")):
            bench.intake.take_in(gone(convert(workload_v1beta1.PodGroup, part)))
        bench.intake.take_in(gone(convert(workload_v1beta1.CompositePodGroup, a_composite("job", 2))))
        await bench.run(0.1)
        if first in (0, GROUPS - 100):
            seen.append({path: size for part in parts for path, size in sizes(part, *rooms).items()})
    assert seen[0] == seen[1]
    kept = ("._groups", "._of_pod", "._holding", "._resting")
    assert [seen[1][path] for path in kept] == [0] * len(kept)
    assert not [*bench.services.waiting, *bench.services.leaving]
    assert len(bench.services.nominations) == 0
    assert set(bench.queue.counts.values()) == {0}


async def test_a_process_forgets_what_it_said(world: World) -> None:
    """Groups that were refused, and said so, leave nothing in the process when they are deleted with their pods."""
    await world.nodes(a_cluster_node("n1", cpu="1"))
    process = world.process
    assert process is not None
    seen = []
    for number in range(3):
        for group in range(5):
            await world.gang(f"g{number}-{group}", 2)
        await world.until(lambda: all(world.message(name) for name in world.pods) and len(world.pods) == 10)
        await world.settle(30)
        await world.delete(*world.pods)
        for group in range(5):
            await world.client.delete(POD_GROUP, f"g{number}-{group}", world.namespace)
        await world.settle(30)
        seen.append(sizes(process, "spinney.coscheduling", "spinney.binding"))
    assert seen[1] == seen[2]
