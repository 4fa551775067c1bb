"""The coscheduler as a whole gives random pods the answers that the stock kube-scheduler gives: node or message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import numpy as np
import pytest

from spinney.api.core import POD, Pod
from spinney.api.struct import JSON
from spinney.cluster.filters import Candidate, ClusterView, FilterFramework
from spinney.cluster.scores import ScoreFramework
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.client import Client

from .stock import CLUSTERS, Answer, StockScheduler
from .test_against_kube_scheduler import a_real_world

pytestmark = pytest.mark.real

OURS = "coscheduling"


@asynccontextmanager
async def coscheduling(stock: StockScheduler) -> AsyncIterator[None]:
    """Run a coscheduler beside kube-scheduler for the time of the block."""
    process = CoschedulerProcess(Client(stock.client.transport, stock.client.runtime, field_manager=OURS))
    running = asyncio.create_task(process.run())
    await process.manager.wait_until_ready()
    try:
        yield
    finally:
        process.stop()
        await running


async def ours(stock: StockScheduler, manifest: JSON) -> Answer:
    """Have the coscheduler judge a pod; one that fits nowhere is deleted."""
    created = await stock.client.create(
        POD, {**manifest, "spec": {**manifest["spec"], "schedulerName": OURS}}, type=Pod
    )
    namespace, name = created.metadata.namespace or "", created.metadata.name
    answer = await stock._outcome(namespace, name)
    if not answer.node:
        await stock.client.delete(POD, name, namespace, grace_period_seconds=0)
    return answer


def best_nodes(view: ClusterView, pod: Pod) -> list[str]:
    """Return the nodes that no other one beats."""
    candidate = Candidate.of(pod, view.table.axis)
    mask = FilterFramework().feasible(view, candidate).mask
    totals = ScoreFramework().score(view, candidate, mask)
    return [view.table.names[row] for row in np.flatnonzero(mask & (totals == totals[mask].max())).tolist()]


@pytest.mark.parametrize("seed", range(1000, 1000 + CLUSTERS))
async def test_pod_by_pod(stock: StockScheduler, seed: int) -> None:
    """The same pods fit, go to the same node where one is best, and are otherwise refused in the same words."""
    world = a_real_world(Random(seed))
    await stock.build(world.nodes, world.placed)
    async with coscheduling(stock):
        for manifest in world.pending:
            pod = await stock.submit(manifest)
            view = await stock.view()
            theirs = await stock.answer(pod)
            if theirs.node:
                await stock.client.delete(POD, pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)
            mine = await ours(stock, manifest)
            assert bool(mine.node) is bool(theirs.node), f"{manifest}: {mine} and {theirs}"
            assert mine.message == theirs.message
            if theirs.node:
                best = best_nodes(view, pod)
                assert mine.node in best
                assert len(best) > 1 or mine.node == theirs.node
