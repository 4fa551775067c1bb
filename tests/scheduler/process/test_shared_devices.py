"""Parts of GPUs on a cluster: refused where nothing would give them, and otherwise written on the pods."""

from spinney.api.core import POD, Pod
from tests.scheduler.process.world import NS, World, given_a_world


async def a_part(world: World, name: str) -> None:
    """Create a pod that asks for half a GPU."""
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": NS, "annotations": {"gpu-fraction": "0.5"}}
    await world.client.create(
        POD, {"metadata": metadata, "spec": {"schedulerName": "spinney-scheduler", "containers": [container]}}
    )


async def pod(world: World, name: str) -> Pod:
    return await world.client.get(POD, name, NS, type=Pod)


@given_a_world
async def test_a_part_of_a_gpu_is_refused_where_nothing_reserves_devices(world: World) -> None:
    """The pod waits, and its condition says what the cluster lacks and which setting says otherwise."""
    await world.add_node("n1", gpus=1)
    async with world.scheduler():
        await a_part(world, "half")
        await world.settle(3)
        found = await pod(world, "half")
        assert found.spec.node_name == ""
        said = [condition.message for condition in found.status.conditions]
        assert any("reserves shared devices" in message for message in said), said


@given_a_world
async def test_pods_carry_the_device_they_share(world: World) -> None:
    """Two halves get one device, and a scheduler that starts later knows: the third half does not fit."""
    await world.add_node("n1", gpus=1)
    async with world.scheduler(device_reservation=True):
        for name in ("one", "two"):
            await a_part(world, name)
        await world.settle(3)
        groups = {(await pod(world, name)).metadata.labels["runai-gpu-group"] for name in ("one", "two")}
        assert len(groups) == 1
    async with world.scheduler(device_reservation=True):
        await a_part(world, "three")
        await world.settle(3)
        assert await world.places() == {"one": "n1", "two": "n1", "three": ""}
