"""Kinds of owners that cannot be read for a while, or are served otherwise than before: nobody else waits for them."""

from dataclasses import replace

import pytest

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.cache import WatchTimes
from spinney.kube.client import Client
from spinney.kube.transport import Response
from tests.conftest import Cluster
from tests.grouping.test_controller import CRDS, RAY, install
from tests.grouping.world import World, a_world
from tests.scheduler.process.world import FaultyTransport, status

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

HEAD = {"ray.io/group": "headgroup"}
HEAD_ONLY: JSON = {"workerGroupSpecs": []}
RAY_V2 = Resource("ray.io", "v2", "RayCluster", "rayclusters")


async def replace_version(world: World) -> None:
    """Serve Ray clusters in another version instead of the one that they were installed with; watches of that end."""
    found = await world.client.get(CRDS, str(RAY))
    (old,) = found["spec"]["versions"]
    versions = [{**old, "served": False, "storage": False}, {**old, "name": RAY_V2.version}]
    await world.client.patch(CRDS, str(RAY), {"spec": {"versions": versions}})
    await world.settle(WatchTimes().longest)


def workers(least: int) -> JSON:
    """Return what a Ray cluster with one group of workers asks for."""
    return {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 4, "minReplicas": least}]}


async def test_a_kind_that_cannot_be_listed_holds_up_no_other(cluster: Cluster) -> None:
    """Its pods, more than there are workers, say so once and wait; Jobs start; and so do they when it can be listed."""
    line = FaultyTransport(cluster.client.transport)
    asked: list[str] = []

    def after_the_first(method: str, path: str) -> Response | None:
        if method != "GET" or not path.endswith("/rayclusters"):
            return None
        asked.append(path)
        return status(500, "InternalError") if len(asked) > 1 else None

    line.fault = after_the_first
    async with a_world(replace(cluster, client=Client(line, cluster.runtime))) as world:
        await install(world, RAY)
        for number in range(12):
            owner = await world.owner(RAY, f"ray-{number}", HEAD_ONLY)
            await world.pod(f"ray-{number}", owner, gpus=0, labels=HEAD)
        await world.settle(1)
        await world.job("sound", 2, least=2)
        await world.until(lambda: len(world.placed("sound")) == 2)
        await world.settle()
        said = await world.events("GroupingRefused")
        assert (
            said
            == ["objects of kind ray.io/RayCluster (ray.io/v1) cannot be listed; the pod waits until they can"] * 12
        )
        assert world.placed("ray") == []
        line.fault = lambda method, path: None
        await world.until(lambda: len(world.placed("ray")) == 12, 600)


async def test_pods_of_a_kind_whose_version_is_withdrawn_are_grouped(cluster: Cluster) -> None:
    """Owners are read in the version that is served now, also those that references name in the old one."""
    async with a_world(cluster) as world:
        await install(world, RAY)
        first = await world.owner(RAY, "first", HEAD_ONLY)
        await world.pod("first-0", first, gpus=0, labels=HEAD)
        await world.until(lambda: world.placed() == ["first-0"])
        await replace_version(world)
        await world.pod("second-0", await world.owner(RAY_V2, "second", HEAD_ONLY), gpus=0, labels=HEAD)
        old = {**await world.owner(RAY_V2, "third", HEAD_ONLY), "apiVersion": RAY.api_version}
        await world.pod("third-0", old, gpus=0, labels=HEAD)
        await world.until(lambda: sorted(world.placed()) == ["first-0", "second-0", "third-0"])
        assert await world.events("GroupingRefused") == []


async def test_a_workload_that_was_changed_while_its_version_was_withdrawn_is_followed(cluster: Cluster) -> None:
    """Its gang has the new minimum as soon as the kind is read again, and follows it from then on."""
    async with a_world(cluster) as world:
        await install(world, RAY)
        await world.pod("first-0", await world.owner(RAY, "first", workers(3)), gpus=0, labels=HEAD)
        await world.until(lambda: world.floors("first") == {"headgroup": 1, "gpu": 3})
        await replace_version(world)
        await world.client.patch(RAY_V2, "first", {"spec": workers(2)}, world.namespace)
        await world.pod("second-0", await world.owner(RAY_V2, "second", HEAD_ONLY), gpus=0, labels=HEAD)
        await world.until(lambda: world.floors("first") == {"headgroup": 1, "gpu": 2})
        await world.client.patch(RAY_V2, "first", {"spec": workers(1)}, world.namespace)
        await world.until(lambda: world.floors("first") == {"headgroup": 1, "gpu": 1})
