"""The real Karpenter adds nodes for whole gangs that lack nodes, and for no others.

Its nodes are those of its provider for KWOK, objects without a kubelet; our fleet plays the kubelets.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import NODE, Node
from spinney.api.kai import QUEUE
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.cache import Change, WatchCache, kept_up
from spinney.nodes import NodeGroup
from spinney.runtime.tasks import in_background
from tests.grouping.staging import CAPACITY, Stage
from tests.grouping.world import JOB
from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

NODE_CLAIM = Resource("karpenter.sh", "v1", "NodeClaim", "nodeclaims", namespaced=False)
NODE_POOL = Resource("karpenter.sh", "v1", "NodePool", "nodepools", namespaced=False)
POOL_LABEL = "karpenter.sh/nodepool"
UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


@asynccontextmanager
async def beside_karpenter(ground: Ground, *, nodes: int) -> AsyncIterator[Stage]:
    """Have Karpenter with a pool of nodes of 8 GPUs, beside nodes of others; afterwards its nodes are gone."""
    async with ground.visited_by("karpenter"), a_stage(ground, nodes=nodes) as stage, booting(stage) as made:
        client, name = stage.world.client, stage.world.namespace
        for each in a_pool(name):
            await stage.create(each)
        try:
            yield stage
        finally:
            for job in (await client.list(JOB, name)).items:
                await client.delete(JOB, job["metadata"]["name"], name, propagation_policy="Background")
            await stage.until(lambda: not stage.pods())
            await client.delete(NODE_POOL, name)
            for claim in await claims(stage):
                await client.delete(NODE_CLAIM, claim)
            await stage.until(lambda: not any(map(is_karpenters, made.values())))


@asynccontextmanager
async def booting(stage: Stage) -> AsyncIterator[WatchCache[Node]]:
    """Have every node that Karpenter makes join the fleet, and leave it when it is gone."""
    nodes = WatchCache(stage.world.client, NODE, Node, runtime=stage.world.client.runtime)
    changes: asyncio.Queue[Change[Node]] = asyncio.Queue()
    nodes.subscribe(changes.put_nowait)

    async def boot() -> None:
        while True:
            change = await changes.get()
            if change.old is None and change.new is not None and is_karpenters(change.new):
                labels = dict(change.new.metadata.labels)
                await stage.world.fleet.add(NodeGroup(name=change.key.name, capacity=CAPACITY, labels=labels))
            elif change.new is None and change.key.name in stage.world.fleet.names:
                await stage.world.fleet.remove(change.key.name)
            stage.world.changed.set()

    async with kept_up(nodes), in_background(boot()):
        yield nodes


def is_karpenters(node: Node) -> bool:
    """Tell whether Karpenter made a node."""
    return POOL_LABEL in node.metadata.labels


def a_pool(name: str) -> list[JSON]:
    """Return a pool of nodes that are never taken away again while it is there, and the class of its nodes."""
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name}
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    template = {"spec": {"nodeClassRef": reference, "requirements": [requirement], "expireAfter": "Never"}}
    pool = {"template": template, "disruption": {"consolidateAfter": "Never"}}
    return [
        {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": name}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": pool},
    ]


async def claims(stage: Stage) -> list[str]:
    """Return the names of the nodes that Karpenter has asked its provider for."""
    return [each["metadata"]["name"] for each in (await stage.world.client.list(NODE_CLAIM)).items]


@asynccontextmanager
async def a_queue(stage: Stage, name: str, **gpu: int) -> AsyncIterator[None]:
    """Have a queue for the time of the block."""
    resources = {"cpu": UNLIMITED, "memory": UNLIMITED, "gpu": {**UNLIMITED, **gpu}}
    await stage.world.client.create(QUEUE, {"metadata": {"name": name}, "spec": {"resources": resources}})
    try:
        yield
    finally:
        await stage.world.client.delete(QUEUE, name)


def a_job(name: str, pods: int, queue: str) -> JSON:
    """Return a Job of pods that start together, each on a node of its own."""
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    metadata = {
        "name": name,
        "labels": {"kai.scheduler/queue": queue},
        "annotations": {"kai.scheduler/batch-min-member": str(pods)},
    }
    spec = {"parallelism": pods, "completions": pods, "template": pod}
    return for_our_nodes({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def reasons(stage: Stage, job: str) -> list[str]:
    """Return why each pod of a Job has no node; empty if it was not said yet, or it has one."""
    said = (pod.condition("PodScheduled") for name, pod in stage.pods().items() if name.startswith(f"{job}-"))
    return [condition.reason if condition is not None else "" for condition in said]


async def test_karpenter_adds_what_a_gang_lacks_and_nothing_for_one_that_waits_for_quota(ground: Ground) -> None:
    """Of four pods one has room, so three nodes come; the gang over its limit gets two when its limit is raised."""
    async with beside_karpenter(ground, nodes=1) as stage:
        open_queue, tight_queue = (f"{stage.world.namespace}-{which}" for which in ("open", "tight"))
        async with a_queue(stage, open_queue), a_queue(stage, tight_queue, limit=8):
            await stage.create(a_job("over", 2, tight_queue))
            await stage.until(lambda: reasons(stage, "over") == ["WaitingForQuota"] * 2)
            await stage.create(a_job("train", 4, open_queue))
            await stage.until_running(4)
            assert reasons(stage, "over") == ["WaitingForQuota"] * 2
            assert len(await claims(stage)) == 3

            raised = {"spec": {"resources": {"gpu": {"limit": 16}}}}
            await stage.world.client.patch(QUEUE, tight_queue, raised)
            await stage.until_running(6)
            assert len(await claims(stage)) == 5
