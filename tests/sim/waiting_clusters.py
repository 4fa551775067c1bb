"""An embedded cluster on which a workload is made to wait, so that what is recommended can be carried out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spinney.api.core import NODE
from spinney.api.kai import QUEUE
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions


@asynccontextmanager
async def a_small_cluster(*, block: int = 4, quota: int | None = None, tainted: bool = False) -> AsyncIterator[Client]:
    """Run four nodes of eight GPUs in racks of two; on request one has a taint, and a queue this quota (-1: none)."""
    runtime = Runtime.virtual(seed=7)
    cluster = EmbeddedCluster(runtime, StackOptions.whole(gpu_cluster(4, 8, rack=2, block=block)))
    async with cluster.running():
        client = cluster.client
        taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
        await client.patch(NODE, "gpu-003", {"spec": {"taints": [taint] if tainted else []}})
        await client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
        if quota is not None:
            share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            spec = {"resources": {"gpu": {**share, "quota": quota}, "cpu": share, "memory": share}}
            await client.create(QUEUE, {"metadata": {"name": "team"}, "spec": spec})
        yield client
