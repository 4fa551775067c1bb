"""A gang that comes to a full cluster: it reclaims what it is promised, or is told that it does not fit.

Every GPU but one is taken by running pods before the contender starts. A pod for the last GPU shows that it is up; only
then does the gang come, and the clock starts. No kubelet runs: a pod that is evicted is gone at once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from benchmarks.load import cluster
from benchmarks.load.bench import Bench
from benchmarks.load.contenders import Contender
from benchmarks.load.measuring import Figures, progress
from benchmarks.load.processes import cpu_seconds, peak_memory
from benchmarks.peers.families import GANG, KAI_PROMISED, Family, Gang
from benchmarks.peers.hall import GPUS
from benchmarks.peers.witness import Witness
from spinney.api.core import POD, Pod
from spinney.api.struct import JSON
from spinney.kube.cache import Change, WatchCache, kept_up
from spinney.kube.client import Client

ASKING, PROBE, LAST = "asking", "probe", "last"


@dataclass(frozen=True)
class Asking:
    """A gang of this size that comes to a full cluster, and when it has been answered."""

    name: str
    size: int
    answered: Callable[[JSON], bool]
    """Tells whether a pod of the gang has been answered."""
    queue: str = ""


def is_bound(pod: JSON) -> bool:
    """Tell whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def is_told(pod: JSON) -> bool:
    """Tell whether a pod says that it cannot be scheduled."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def reclaiming(size: int) -> Asking:
    """Return a gang of a queue to which everything is promised, while a queue without a promise holds everything."""
    return Asking(f"reclaim for {size} pods", size, is_bound, KAI_PROMISED)


def hopeless() -> Asking:
    """Return a gang of the queue that holds everything already."""
    return Asking("unschedulable verdict", GPUS, is_told)


async def measure(
    bench: Bench, contender: Contender, family: Family, asking: Asking, *, nodes: int, limit: float
) -> Figures:
    """Fill the cluster, start the contender, let the gang come and watch until all its pods are answered."""
    client = bench.client
    progress(f"{asking.name}: {contender.name}: filling {nodes} nodes")
    await fill(client, family, nodes)
    witness = Witness(ASKING, asking.size, hopeless=asking.answered is is_told)
    async with watched_by(witness.see, client):
        figures = await _answer(bench, contender, family, asking, limit=limit)
    await family.clear(client)
    return replace(figures, faults=witness.faults())


async def _answer(bench: Bench, contender: Contender, family: Family, asking: Asking, *, limit: float) -> Figures:
    client = bench.client
    gang = Gang(ASKING, asking.size, asking.size, queue=asking.queue)
    with contender.running(bench.plane, bench.kubeconfig) as pids:
        await family.create(client, [Gang(PROBE, 1, 1)])
        await _answered(client, PROBE, 1, is_bound, limit=limit)
        progress(f"{asking.name}: {contender.name}: asking")
        cpu, served, start = sum(map(cpu_seconds, pids)), bench.server_cpu(), time.monotonic()
        await family.create(client, [gang])
        times = await _answered(client, ASKING, asking.size, asking.answered, limit=limit)
        passed = time.monotonic() - start
        cpu, memory = sum(map(cpu_seconds, pids)) - cpu, sum(map(peak_memory, pids))
        served = bench.served_since(served, passed)
    return Figures.at(
        [moment - start for moment in times],
        pods=asking.size,
        ended=passed,
        events=0,
        last_event=0.0,
        cpu=cpu,
        server_cpu=served,
        memory=memory,
    )


@asynccontextmanager
async def watched_by(witness: Callable[[Change[Pod]], None], client: Client) -> AsyncIterator[None]:
    """Show a witness every change of a pod from the block's beginning to its end."""
    over = asyncio.Event()

    def see(change: Change[Pod]) -> None:
        witness(change)
        if change.key.name == LAST:
            over.set()

    pods = WatchCache(client, POD, Pod, runtime=client.runtime, namespace=cluster.NAMESPACE_NAME)
    pods.subscribe(see)
    async with kept_up(pods):
        yield
        await client.create(POD, cluster.a_pod(LAST, "nobody", {}))  # all that was before it has been seen with it
        await over.wait()


async def fill(client: Client, family: Family, nodes: int) -> None:
    """Put running pods on every GPU but one: a gang per node, each pod of which may go without the others."""
    gangs = [Gang(f"full-{number:05d}", GPUS if number else GPUS - 1, 1) for number in range(nodes)]
    await cluster.for_each(gangs, lambda gang: client.create(family.resource, family.group(gang)))
    pods = family.pods(gangs)
    for pod in pods:
        pod["spec"]["nodeName"] = f"node-{pod['metadata']['labels'][GANG].removeprefix('full-')}"

    async def run(pod: JSON) -> None:
        await client.create(POD, pod)
        status = {"status": {"phase": "Running"}}
        await client.patch(POD, pod["metadata"]["name"], status, cluster.NAMESPACE_NAME, subresource="status")

    await cluster.for_each(pods, run)


async def _answered(
    client: Client, gang: str, count: int, answered: Callable[[JSON], bool], *, limit: float
) -> list[float]:
    """Return when each pod of a gang was first seen to be answered, until all are or the time is over."""
    seen: dict[str, float] = {}
    try:
        async with asyncio.timeout(limit):
            while len(seen) < count:
                async for event in client.watch(POD, cluster.NAMESPACE_NAME, label_selector=f"{GANG}={gang}"):
                    if event.type in ("ADDED", "MODIFIED") and answered(event.object):
                        seen.setdefault(event.object["metadata"]["name"], time.monotonic())
                    if len(seen) >= count:
                        break
    except TimeoutError:
        progress(f"{gang}: stopped after {limit:.0f} s with {len(seen)} of {count} pods")
    return list(seen.values())
