"""A client that only writes: PodCliques, gangs, pods and the removal of gates. No caches, no watches, no decisions.

A first line on its output says that it begins, a second how many processor seconds it used from there.

usage: python -m benchmarks.operator.bare KUBECONFIG REPLICAS
"""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.load.cluster import for_each
from benchmarks.operator.shape import NAMESPACE, SIZE, a_clique, a_gang, a_pod
from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE
from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON
from spinney.kube.client import Client, PatchKind
from spinney.kube.config import load_kubeconfig
from spinney.runtime import Runtime, settle_garbage_collector

OPEN: list[JSON] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]


async def write(kubeconfig: Path, replicas: int) -> None:
    """Make the least that a workload of this size consists of."""
    runtime = Runtime.system()
    client = Client(load_kubeconfig(kubeconfig, runtime=runtime), runtime)

    async def replica(i: int) -> None:
        name = f"bare-{i}"
        await client.create(POD_GANG, a_gang(name))
        await client.create(POD_CLIQUE, a_clique(name))
        pods = [await client.create(POD, a_pod(name, k)) for k in range(SIZE)]
        for pod in pods:
            await client.patch(POD, pod["metadata"]["name"], OPEN, NAMESPACE, kind=PatchKind.JSON)

    print("writing", flush=True)
    before = time.process_time()
    await for_each(range(replicas), replica)
    print(time.process_time() - before, flush=True)
    await client.close()
    runtime.executor.close()


if __name__ == "__main__":
    settle_garbage_collector()
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
