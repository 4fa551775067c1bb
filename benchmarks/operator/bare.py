"""A client that only writes: PodCliques, gangs, pods and the removal of gates. No caches, no watches, no decisions.

A first line on its output says that it begins, a second how many processor seconds it used from there.

usage: python -m benchmarks.operator.bare KUBECONFIG REPLICAS
"""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.load.cluster import for_each
from benchmarks.operator.shape import NAMESPACE, Replicas
from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON
from spinney.kube.client import Client, PatchKind
from spinney.kube.config import load_kubeconfig
from spinney.kube.reconciling import Unread
from spinney.runtime import Runtime, settle_garbage_collector

OPEN: list[JSON] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]


async def write(kubeconfig: Path, replicas: int) -> None:
    """Make the least that a workload of this size consists of."""
    runtime = Runtime.system()
    client = Client(load_kubeconfig(kubeconfig, runtime=runtime), runtime)

    made = Replicas("bare", replicas)

    async def replica(i: int) -> None:
        await client.create(POD_GANG, made.gang(i), type=Unread)
        clique = await client.create(POD_CLIQUE, made.clique(i), type=PodClique)
        pods = made.pods(i, clique)
        for pod in pods:
            await client.create(POD, pod, type=Unread)
        for pod in pods:
            await client.patch(POD, pod["metadata"]["name"], OPEN, NAMESPACE, kind=PatchKind.JSON, type=Unread)

    print("writing", flush=True)
    before = time.process_time()
    await for_each(range(replicas), replica)
    print(time.process_time() - before, flush=True)
    await client.close()
    runtime.executor.close()


if __name__ == "__main__":
    settle_garbage_collector()
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
