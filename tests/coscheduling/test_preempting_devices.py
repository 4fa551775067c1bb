"""Preemption for devices: pods that hold them through claims make way for pods of higher priority that need them."""

from typing import Any

import pytest

from spinney.api.core import Pod, PodResourceClaim
from spinney.api.resource_claims import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from spinney.api.struct import JSON, convert
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from tests.conftest import Cluster

from .bench import NAMESPACE, Bench, a_group, a_node, a_pod
from .world import World, a_world
from .world import a_node as a_real_node
from .world import a_pod as a_real_pod

DRIVER = "gpu.example.com"
REQUEST = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}
embedded = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def a_slice(node: str, devices: int) -> JSON:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    named = [{"name": f"gpu-{number}"} for number in range(devices)]
    return {"metadata": {"name": node}, "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": named}}


def a_user(name: str, *, claim: str = "", **more: Any) -> Pod:
    """Return a pod that uses a claim, by default its own."""
    return a_pod(name, resource_claims=(PodResourceClaim(name="gpu", resource_claim_name=claim or name),), **more)


def put_claim(bench: Bench, name: str, *, node: str = "", device: int = 0, users: tuple[str, ...] = ()) -> None:
    """Have a claim for one device; one with a node holds a device of it for its users."""
    claim: JSON = {"metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}, "spec": REQUEST}
    if node:
        result = {"request": "one", "driver": DRIVER, "pool": node, "device": f"gpu-{device}"}
        claim["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users],
        }
    bench.intake.constraint(RESOURCE_CLAIM, Change(Key(NAMESPACE, name), None, convert(ResourceClaim, claim), "1"))


def a_cluster(bench: Bench, *nodes: str) -> None:
    """Have nodes with one device each, held by a pod of low priority."""
    of_class = convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}})
    bench.intake.constraint(DEVICE_CLASS, Change(Key("", "gpu"), None, of_class, "1"))
    for node in nodes:
        published = convert(ResourceSlice, a_slice(node, 1))
        bench.intake.constraint(RESOURCE_SLICE, Change(Key("", node), None, published, "1"))
        put_claim(bench, f"low-{node}", node=node, users=(f"low-{node}",))
        bench.put(a_node(node), a_user(f"low-{node}", node=node))


@embedded
async def test_a_single_pod_takes_a_device(bench: Bench) -> None:
    """The holder of the device goes, though there is room on the node for both."""
    a_cluster(bench, "n1")
    put_claim(bench, "high")
    bench.put(a_user("high", priority=9))
    await bench.run(seconds=5)
    assert bench.preempted == [("low-n1", "high")]
    assert bench.nominated == {"high": "n1"}


@embedded
async def test_a_gang_takes_devices_for_its_whole_quorum(bench: Bench) -> None:
    """Every member gets a device of its own; holders on nodes that are not needed stay."""
    a_cluster(bench, "n1", "n2", "n3")
    bench.put(a_group("gang", 2))
    for number in range(2):
        put_claim(bench, f"gang-{number}")
        bench.put(a_user(f"gang-{number}", group="gang", priority=9))
    await bench.run(seconds=5)
    victims = [victim for victim, _ in bench.preempted]
    assert len(victims) == 2
    assert sorted(bench.nominated) == ["gang-0", "gang-1"]
    assert {f"low-{node}" for node in bench.nominated.values()} == set(victims)


@embedded
async def test_a_gang_that_would_lack_one_device_takes_none(bench: Bench) -> None:
    """Three members cannot share two devices, so nobody has to go."""
    a_cluster(bench, "n1", "n2")
    bench.put(a_group("gang", 3))
    for number in range(3):
        put_claim(bench, f"gang-{number}")
        bench.put(a_user(f"gang-{number}", group="gang", priority=9))
    await bench.run(seconds=60)
    assert bench.preempted == []
    assert "cannot allocate all claims" in bench.rejected[-1][1]


@embedded
async def test_a_device_that_another_pod_uses_too_is_not_freed(bench: Bench) -> None:
    """A claim that a pod of the same priority shares keeps its device, so its other users need not go."""
    a_cluster(bench, "n1")
    put_claim(bench, "low-n1", node="n1", users=("low-n1", "peer"))
    put_claim(bench, "high")
    bench.put(a_user("peer", claim="low-n1", node="n1", priority=9), a_user("high", priority=9))
    await bench.run(seconds=60)
    assert bench.preempted == []


async def test_devices_of_victims_reach_the_gang(cluster: Cluster) -> None:
    """On a cluster: the victims are deleted, their claims deallocated, and the gang is bound with their devices."""
    async with a_world(cluster) as world, world.scheduling():
        await world.priority("high", 1000)
        await world.client.apply(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})
        for node in ("n1", "n2"):
            await world.nodes(a_real_node(node))
            await world.client.apply(RESOURCE_SLICE, a_slice(node, 1))
        await users(world, "low-0", "low-1")
        await world.until(lambda: len(world.bound("low")) == 2)
        await world.group("gang", 2)
        await users(world, "gang-0", "gang-1", group="gang", priority_class="high")
        await world.until(lambda: not any(name.startswith("low") for name in world.pods))
        if cluster.embedded:
            for name in ("low-0", "low-1"):
                patch = {"status": {"allocation": None, "reservedFor": None}}
                await world.client.patch(RESOURCE_CLAIM, name, patch, world.namespace, subresource="status")
        await world.until(lambda: len(world.bound("gang")) == 2)
        assert {world.node_of("gang-0"), world.node_of("gang-1")} == {"n1", "n2"}
        for node in ("n1", "n2"):
            await world.client.delete(RESOURCE_SLICE, node)
        await world.client.delete(DEVICE_CLASS, "gpu")


async def users(world: World, *names: str, **more: Any) -> None:
    """Create pods with a claim each."""
    for name in names:
        await world.client.create(RESOURCE_CLAIM, {"metadata": {"name": name}, "spec": REQUEST}, world.namespace)
        await world.create(a_real_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}], **more))
