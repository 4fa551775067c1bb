"""What pods need before they are bound: volumes that wait for their consumer, and devices; for a gang all or none."""

import pytest

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.api.storage import SELECTED_NODE, STORAGE_CLASS
from spinney.api.struct import JSON

from .world import World, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

DRIVER = "gpu.example.com"


async def a_class(world: World, name: str, provisioner: str) -> None:
    """Create a storage class whose volumes wait for their first consumer."""
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    await world.client.create(STORAGE_CLASS, body)


async def a_claim(world: World, name: str, storage_class: str) -> None:
    """Create a claim for a volume of a class."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": resources}
    await world.client.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec}, world.namespace)


async def a_local_volume(world: World, node: str) -> None:
    """Create a volume that is on one node."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    name = f"disk-of-{node}"
    await world.client.create(PERSISTENT_VOLUME, {"metadata": {"name": name}, "spec": spec})
    await world.client.patch(PERSISTENT_VOLUME, name, {"status": {"phase": "Available"}}, subresource="status")


async def complete(world: World, claim: str, volume: str) -> None:
    """Do what the volume controller does once claim and volume have found each other."""
    patch = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}}
    await world.client.patch(PERSISTENT_VOLUME_CLAIM, claim, patch, world.namespace)


async def selected(world: World, claim: str) -> str:
    """Return the node that was selected for a claim."""
    found = await world.client.get(PERSISTENT_VOLUME_CLAIM, claim, world.namespace)
    return str(found["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))


def a_mounting_pod(name: str, claim: str, **more: object) -> JSON:
    return a_pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}], **more)  # type: ignore[arg-type]


async def test_a_pod_is_bound_once_its_volume_was_made(world: World) -> None:
    """The claim is told the node, the pod waits for the volume, and is then bound there."""
    await world.nodes(a_node("n1"))
    await a_class(world, "made", "csi.example.com")
    await a_claim(world, "data", "made")
    await world.create(a_mounting_pod("p", "data"))
    await world.settle(2)
    assert await selected(world, "data") == "n1"
    assert world.node_of("p") == ""
    await complete(world, "data", "made-for-it")
    await world.until(lambda: world.node_of("p") == "n1")


async def test_two_pods_never_count_on_the_same_volume(world: World) -> None:
    """Each member of a gang gets a node whose local volume no other one takes, though one node had room for all."""
    await world.nodes(a_node("n1", cpu="64"), a_node("n2", cpu="1"), a_node("n3", cpu="1"))
    await a_class(world, "local", "kubernetes.io/no-provisioner")
    for node in ("n1", "n2", "n3"):
        await a_local_volume(world, node)
    await world.group("gang", 3)
    for number in range(3):
        await a_claim(world, f"data-{number}", "local")
        await world.create(a_mounting_pod(f"gang-{number}", f"data-{number}", group="gang"))
    await world.settle(2)
    volumes = (await world.client.list(PERSISTENT_VOLUME)).items
    owners = {volume["spec"]["claimRef"]["name"]: volume["metadata"]["name"] for volume in volumes}
    assert sorted(owners) == ["data-0", "data-1", "data-2"]
    assert world.bound() == []
    for claim, volume in owners.items():
        await complete(world, claim, volume)
    await world.until(lambda: len(world.bound("gang")) == 3)
    assert {f"disk-of-{world.node_of(f'gang-{number}')}" for number in range(3)} == set(owners.values())


async def test_a_gang_is_not_torn_by_a_volume(world: World) -> None:
    """While one member's volume is being made nobody of its gang is bound; if it cannot be made, nobody is."""
    await world.nodes(a_node("n1"))
    await a_class(world, "made", "csi.example.com")
    await a_claim(world, "data", "made")
    await world.group("gang", 2)
    await world.create(a_mounting_pod("gang-0", "data", group="gang"), a_pod("gang-1", group="gang"))
    await world.settle(2)
    assert await selected(world, "data") == "n1"
    assert world.bound() == []
    refuse = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    await world.client.patch(PERSISTENT_VOLUME_CLAIM, "data", refuse, world.namespace)
    await world.until(lambda: "cannot be provisioned on node n1" in world.message("gang-0"))
    assert world.pods["gang-0"].condition("PodScheduled").reason == "SchedulerError"  # type: ignore[union-attr]
    assert world.bound() == []
    await world.settle(20)
    assert await selected(world, "data") == "n1", "it is tried again"
    await complete(world, "data", "made-for-it")
    await world.until(lambda: len(world.bound("gang")) == 2)


async def test_claims_hold_their_devices_before_pods_are_bound(world: World) -> None:
    """Each member of a gang gets a device of its own, which its claim holds for it; one too many waits."""
    await world.nodes(a_node("n1", cpu="64"), a_node("n2", cpu="1"))
    await world.client.create(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})
    for node in ("n1", "n2"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": "gpu-0"}]}
        await world.client.create(RESOURCE_SLICE, {"metadata": {"name": node}, "spec": spec})
    await world.group("gang", 2)
    for number in range(3):
        request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
        claim = {"metadata": {"name": f"gpu-{number}"}, "spec": {"devices": {"requests": [request]}}}
        await world.client.create(RESOURCE_CLAIM, claim, world.namespace)
        uses = [{"name": "gpu", "resourceClaimName": f"gpu-{number}"}]
        await world.create(a_pod(f"gang-{number}", group="gang", resourceClaims=uses))
    await world.until(lambda: len(world.bound("gang")) == 2)
    await world.until(lambda: "cannot allocate all claims" in world.message("gang-2"))
    assert {world.node_of(name) for name in world.bound("gang")} == {"n1", "n2"}
    claims = (await world.client.list(RESOURCE_CLAIM, world.namespace)).items
    held = {
        claim["metadata"]["name"]: claim["status"]["allocation"]["devices"]["results"][0]["pool"]
        for claim in claims
        if claim.get("status", {}).get("allocation")
    }
    assert held == {f"gpu-{number}": world.node_of(f"gang-{number}") for number in range(2)}
    assert [claim["status"]["reservedFor"][0]["name"] for claim in claims[:2]] == ["gang-0", "gang-1"]


async def test_a_pod_whose_claim_is_missing_says_so(world: World) -> None:
    """A pod that names a device claim which is not there waits for it, with the reason."""
    await world.nodes(a_node("n1"))
    await world.create(a_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "nowhere"}]))
    await world.until(lambda: 'resourceclaim "nowhere" not found' in world.message("p"))
