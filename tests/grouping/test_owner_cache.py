"""Kinds of owners that cannot be read for a while, or are served otherwise than before: nobody else waits for them."""

from dataclasses import replace

import pytest

from spinney.kube.client import Client
from spinney.kube.transport import Response
from tests.conftest import Cluster
from tests.grouping.test_controller import RAY, install
from tests.grouping.world import a_world
from tests.scheduler.process.world import FaultyTransport, status

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

HEAD = {"ray.io/group": "headgroup"}


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
            owner = await world.owner(RAY, f"ray-{number}", {"workerGroupSpecs": []})
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
