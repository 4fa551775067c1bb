"""Claims of placed pods get their devices and their consumers, on the embedded cluster and on a real one."""

import asyncio

import pytest

from spinney.api.core import POD, Pod
from spinney.api.resource_claims import RESOURCE_CLAIM, ResourceClaim
from spinney.api.struct import JSON
from spinney.binding.device_claims import DeviceClaims
from spinney.binding.placement import ClaimAllocation, Placement
from spinney.binding.prebind import PreBindRefused
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.dra.book import MAX_CONSUMERS
from spinney.kube.keys import Key
from tests.conftest import Cluster


async def a_claim(cluster: Cluster) -> None:
    """Create the claim ``gpu``."""
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}
    await cluster.client.create(RESOURCE_CLAIM, {"metadata": {"name": "gpu"}, "spec": spec}, cluster.namespace)


async def a_pod(cluster: Cluster, name: str) -> str:
    """Create a pod that nobody schedules; returns its uid."""
    containers = [{"name": "main", "image": "pause"}]
    manifest = {"metadata": {"name": name}, "spec": {"schedulerName": "nobody", "containers": containers}}
    return (await cluster.client.create(POD, manifest, cluster.namespace, type=Pod)).metadata.uid or ""


async def placed(cluster: Cluster, name: str, device: str = "gpu-0") -> Placement:
    """Create a pod that was given a device for the claim ``gpu``."""
    given = ClaimAllocation(Key(cluster.namespace, "gpu"), (GivenDevice("r", "gpu.example.com", "n1", device),))
    return Placement(Key(cluster.namespace, name), await a_pod(cluster, name), "n1", claims=(given,))


async def the_claim(cluster: Cluster) -> ResourceClaim:
    """Return the claim ``gpu``."""
    return await cluster.client.get(RESOURCE_CLAIM, "gpu", cluster.namespace, type=ResourceClaim)


async def consumers(cluster: Cluster) -> set[str]:
    """Return the pods that the claim is reserved for."""
    return {each.name for each in (await the_claim(cluster)).status.reserved_for}


async def write_status(cluster: Cluster, status: JSON) -> None:
    """Write the claim's status, as another scheduler might."""
    await cluster.client.patch(RESOURCE_CLAIM, "gpu", {"status": status}, cluster.namespace, subresource="status")


async def test_schedulers_that_reserve_a_claim_at_once_lose_no_consumer(cluster: Cluster) -> None:
    """Two processes prepare pods that share one claim, and each finds what the other wrote meanwhile."""
    await a_claim(cluster)
    pods = [await placed(cluster, f"p{number}") for number in range(6)]
    one, other = DeviceClaims(cluster.client), DeviceClaims(cluster.connect())
    await asyncio.gather(*(which.prepare(pod) for which, pod in zip([one, other] * 3, pods, strict=True)))
    assert await consumers(cluster) == {f"p{number}" for number in range(6)}


async def test_what_was_prepared_may_be_prepared_again(cluster: Cluster) -> None:
    """A pod whose first attempt was not answered is not counted twice."""
    await a_claim(cluster)
    pod = await placed(cluster, "p")
    for _ in range(2):
        await DeviceClaims(cluster.client).prepare(pod)
    assert [each.name for each in (await the_claim(cluster)).status.reserved_for] == ["p"]


async def test_the_last_who_leaves_gives_the_devices_back(cluster: Cluster) -> None:
    """A claim that another pod uses keeps them; one that is gone by then is no fault."""
    await a_claim(cluster)
    claims = DeviceClaims(cluster.client)
    first, second = await placed(cluster, "first"), await placed(cluster, "second")
    for pod in (first, second):
        await claims.prepare(pod)
    await claims.release(first)
    assert await consumers(cluster) == {"second"}
    assert (await the_claim(cluster)).status.allocation is not None
    await claims.release(await placed(cluster, "stranger"))
    assert await consumers(cluster) == {"second"}
    await claims.release(second)
    assert (await the_claim(cluster)).status.allocation is None
    await cluster.client.patch(RESOURCE_CLAIM, "gpu", {"metadata": {"finalizers": None}}, cluster.namespace)
    await cluster.client.delete(RESOURCE_CLAIM, "gpu", cluster.namespace)
    await claims.release(second)


async def test_who_never_had_a_claim_takes_nothing_from_it(cluster: Cluster) -> None:
    """Another scheduler has given it devices and has not named its pod yet."""
    await a_claim(cluster)
    theirs = await placed(cluster, "theirs")
    await DeviceClaims(cluster.client).prepare(theirs)
    await write_status(cluster, {"reservedFor": []})
    await DeviceClaims(cluster.client).release(await placed(cluster, "ours"))
    assert (await the_claim(cluster)).status.allocation is not None


async def test_devices_that_another_scheduler_chose_meanwhile_are_not_used(cluster: Cluster) -> None:
    """The pod was placed for other ones, so it is placed anew, and the claim stays as it is."""
    await a_claim(cluster)
    claims = DeviceClaims(cluster.client)
    await claims.prepare(await placed(cluster, "theirs", "gpu-1"))
    with pytest.raises(PreBindRefused, match="claim gpu was given other devices meanwhile"):
        await claims.prepare(await placed(cluster, "ours", "gpu-0"))
    assert await consumers(cluster) == {"theirs"}


async def test_a_claim_that_is_being_deleted_is_given_nothing(cluster: Cluster) -> None:
    """It would keep its devices from others until its finalizers are gone."""
    await a_claim(cluster)
    await cluster.client.patch(
        RESOURCE_CLAIM, "gpu", {"metadata": {"finalizers": ["example.com/keep"]}}, cluster.namespace
    )
    await cluster.client.delete(RESOURCE_CLAIM, "gpu", cluster.namespace)
    with pytest.raises(PreBindRefused, match="claim gpu is being deleted"):
        await DeviceClaims(cluster.client).prepare(await placed(cluster, "p"))
    assert (await the_claim(cluster)).status.allocation is None
    await cluster.client.patch(RESOURCE_CLAIM, "gpu", {"metadata": {"finalizers": None}}, cluster.namespace)


async def test_a_claim_takes_so_many_pods_and_no_more(cluster: Cluster) -> None:
    """Kubernetes refuses a status with more; the pod is told which claim is full."""
    await a_claim(cluster)
    claims = DeviceClaims(cluster.client)
    await claims.prepare(await placed(cluster, "first"))
    before = (await the_claim(cluster)).status.reserved_for
    others = [{"resource": "pods", "name": f"p{number}", "uid": f"u{number}"} for number in range(MAX_CONSUMERS - 1)]
    ours = [{"resource": each.resource, "name": each.name, "uid": each.uid} for each in before]
    await write_status(cluster, {"reservedFor": [*ours, *others]})
    with pytest.raises(PreBindRefused, match=f"claim gpu is reserved for {MAX_CONSUMERS} pods already"):
        await claims.prepare(await placed(cluster, "one-more"))
