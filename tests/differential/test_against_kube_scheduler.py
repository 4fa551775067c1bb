"""Our filters and scores say what the stock kube-scheduler does, on random clusters."""

from random import Random

import pytest

from tests.cluster.filters.worlds import World, a_pod, a_world

from .agreement import assert_agreement
from .stock import CLUSTERS, StockScheduler

pytestmark = pytest.mark.real


def a_real_world(random: Random) -> World:
    """Return a random cluster with many pending pods.

    Its taints never say NoExecute: pods would be evicted while the test looks on, and the filter treats both alike.
    """
    world = a_world(random, nodes=7, placed=12)
    for node in world.nodes:
        for taint in node["spec"].get("taints", []):
            if taint["effect"] == "NoExecute":
                taint["effect"] = "NoSchedule"
    names = [node["metadata"]["name"] for node in world.nodes]
    world.pending = [a_pod(random, f"pending-{index}", names) for index in range(14)]
    return world


@pytest.mark.parametrize("seed", range(2 * CLUSTERS))
async def test_random_clusters(stock: StockScheduler, seed: int) -> None:
    """For each of many pods: the same feasibility, a node we rank highest, the same counted reasons."""
    random = Random(seed)
    world = a_real_world(random)
    terminating = frozenset(pod["metadata"]["name"] for pod in world.placed if random.random() < 0.15)
    await stock.build(world.nodes, world.placed, terminating)
    for manifest in world.pending:
        pod = await stock.submit(manifest)
        view = await stock.view()
        assert_agreement(view, pod, await stock.answer(pod))
