"""For which pods of the coscheduler an autoscaler adds nodes: whole gangs that wait for nodes, and no others."""

import pytest

from .world import World, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def reasons(world: World) -> dict[str, str]:
    """Return the reason that each pod without a node gives."""
    waiting = {name: pod.condition("PodScheduled") for name, pod in world.pods.items() if not pod.spec.node_name}
    return {name: found.reason if found is not None else "" for name, found in waiting.items()}


async def test_a_gang_that_waits_for_nodes_asks_whole(world: World) -> None:
    """Every pod of a gang asks, also those that were placed until the gang was given up, and those never tried."""
    await world.nodes(a_node("n1", cpu="2"))
    await world.gang("g", 6)
    await world.until(lambda: set(reasons(world).values()) == {"Unschedulable"} and len(reasons(world)) == 6)
    await world.nodes(a_node("n2", cpu="4"))
    await world.until(lambda: len(world.bound()) == 6)


async def test_what_no_node_puts_right_asks_for_none(world: World) -> None:
    """A gang waits for a volume that does not exist, another for its own pods: neither asks for nodes."""
    await world.nodes(a_node("n1", cpu="8"))
    await world.group("volumes", 2)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    await world.create(a_pod("volumes-0", group="volumes"), a_pod("volumes-1", group="volumes", volumes=[volume]))
    await world.group("short", 3)
    await world.create(a_pod("short-0", group="short"), a_pod("short-1", group="short"))
    expected = {"volumes-0": "Inadmissible", "volumes-1": "Inadmissible"} | {
        "short-0": "WaitingForPods",
        "short-1": "WaitingForPods",
    }
    await world.until(lambda: reasons(world) == expected)
