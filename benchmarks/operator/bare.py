"""A client that only writes: PodCliques, gangs, pods and the removal of gates. No caches, no watches, no decisions.

With ``--promised`` it makes all writes that the contract promises before a gate opens: also the Services, and of each
gang the references and that it is Initialized, each in a write of its own.

A first line on its output says that it begins, a second how many processor seconds it used from there.

usage: python -m benchmarks.operator.bare KUBECONFIG REPLICAS [--promised]
"""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.load.cluster import for_each
from benchmarks.operator.shape import NAMESPACE, Replicas
from spinney.api.core import POD, SERVICE
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.struct import JSON
from spinney.kube.client import Client, PatchKind
from spinney.kube.config import load_kubeconfig
from spinney.kube.reconciling import Unread, patch_exactly
from spinney.operator.desired.podgangs import correction
from spinney.operator.status.writing import patch_status
from spinney.runtime import Runtime, settle_garbage_collector

OPEN: list[JSON] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]


async def write(kubeconfig: Path, replicas: int, *, promised: bool) -> None:
    """Make the least that a workload of this size consists of, or all that is promised of it."""
    runtime = Runtime.system()
    client = Client(load_kubeconfig(kubeconfig, runtime=runtime), runtime)
    made = Replicas("bare", replicas)

    async def complete(gang: PodGang, i: int) -> None:
        referring = await patch_exactly(client, POD_GANG, gang, correction(gang, made.gang(i)), type=PodGang)
        status = made.initialized(referring, runtime.clock.now())
        await patch_status(client, POD_GANG, referring, status, type=PodGang, shared=True)

    async def replica(i: int) -> None:
        if promised:
            await client.create(SERVICE, made.service(i), type=Unread)
        gang = await client.create(POD_GANG, made.empty_gang(i) if promised else made.gang(i), type=PodGang)
        clique = await client.create(POD_CLIQUE, made.clique(i), type=PodClique)
        pods = made.pods(i, clique)
        for pod in pods:
            await client.create(POD, pod, type=Unread)
        if promised:
            await complete(gang, i)
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
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), promised="--promised" in sys.argv))
