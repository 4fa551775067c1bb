"""Moving on a cluster: who is moved comes to its new place though its pods are others by then."""

from spinney.api.core import POD, Pod
from tests.scheduler.process.world import NS, World, given_a_world

SIZES = {"right": 2, "left": 3, "large": 5, "small": 2}
"""GPUs of the only pod of each gang."""


async def replace_terminating(world: World) -> int:
    """Do what controllers and kubelets do: successors come at once, and what terminates ends then."""
    pods = (await world.client.list(POD, NS, type=Pod)).items
    going = [pod for pod in pods if pod.metadata.deletion_timestamp is not None]
    for pod in going:
        gang, generation = pod.metadata.name.rsplit("-", 1)
        await add(world, gang, int(generation) + 1)
    await world.settle(2)
    for pod in going:
        await world.client.delete(POD, pod.metadata.name, NS, grace_period_seconds=0)
    await world.settle(2)
    return len(going)


async def add(world: World, gang: str, generation: int, node: str = "") -> None:
    """Create the pod of a gang, on a node if one is given."""
    await world.add_pod(
        f"{gang}-{generation}",
        gang=gang,
        gpus=SIZES[gang],
        terminationGracePeriodSeconds=30,
        **({"nodeName": node} if node else {}),
    )


@given_a_world
async def test_two_gangs_change_places_once(world: World) -> None:
    """Each moved gang takes the node it was promised, so a third fits and nobody is moved again."""
    await world.add_node("n0", gpus=4)
    await world.add_node("n1", gpus=8)
    for gang, node in {"right": "n1", "left": "n0", "large": "n1", "small": ""}.items():
        await world.add_group(gang, 1)
        await add(world, gang, 0, node)
        await world.settle(1)
    async with world.scheduler():
        await world.settle(2)
        assert [await replace_terminating(world) for _ in range(4)] == [2, 0, 0, 0]
        assert await world.places() == {"large-0": "n1", "left-1": "n1", "right-1": "n0", "small-0": "n0"}
