"""Pods that come and go all the time: how long each waits for its node, beside the stock kube-scheduler.

    python -m benchmarks.scheduler.churn [--nodes 1000] [--rate 200] [--seconds 600] [--lifetime 20]

One kube-apiserver and etcd of Kubernetes 1.37, plain Node objects, no kubelets. A contender that runs already is given
one-GPU pods at an even rate, and each is deleted after its lifetime, so that ``rate * lifetime`` of them hold a node at
any time. The wait is from the moment a creation is sent to the moment a watcher in another process sees the pod bound.
``sent late`` is by how much the load itself was behind: on a machine too busy to create pods at that rate it grows, and
the waits say nothing. A server that is overrun lets requests time out; these are counted.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.load import cluster
from benchmarks.load.bench import Bench, a_bench
from benchmarks.load.contenders import OURS, STOCK, Contender, compile_ours
from benchmarks.load.measuring import progress
from benchmarks.load.processes import cpu_seconds, peak_memory
from spinney.api.core import POD
from spinney.kube.client import Client
from spinney.kube.errors import NotFound, ServerTimeout

RESOURCES = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {cluster.GPU: "1"}}
GOAL = 0.2
"""Seconds that 99 of 100 pods are to wait at most."""
_UP = 120.0  # seconds in which a contender binds its first pod
_LAST = 60.0  # seconds that the last pods may take


@dataclass(frozen=True)
class Waits:
    """What one contender made of the pods, in seconds, and what that cost."""

    pods: int
    waits: tuple[float, ...]
    """Of those that were bound, in order of length."""
    late: float
    unanswered: int
    """Requests of the load that the server let time out."""
    cpu: float
    server_cpu: float
    memory: float

    def at(self, part: float) -> float:
        """Return the wait that this part of the pods did not exceed."""
        return self.waits[min(len(self.waits) - 1, int(part * len(self.waits)))]


class Arrivals:
    """Pods created at an even rate, and deleted when their time is over. Mutable: it notes when each was sent."""

    def __init__(self, client: Client, scheduler: str, *, rate: float, lifetime: float) -> None:
        self.sent: dict[str, float] = {}
        self.late = 0.0
        self.unanswered = 0
        self._client = client
        self._scheduler = scheduler
        self._rate = rate
        self._lifetime = lifetime

    async def run(self, count: int) -> None:
        """Send so many pods, and return when all were deleted again."""
        start = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                due = start + number / self._rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                self.late = max(self.late, time.monotonic() - due)
                tasks.create_task(self._live(f"churn-{number:06d}"))

    async def _live(self, name: str) -> None:
        self.sent[name] = time.monotonic()
        try:
            await self._client.create(POD, cluster.a_pod(name, self._scheduler, RESOURCES))
            await asyncio.sleep(self._lifetime)
            await self._client.delete(POD, name, cluster.NAMESPACE_NAME, grace_period_seconds=0)
        except (ServerTimeout, NotFound):  # a server that is overrun; what it did of it nobody knows
            self.unanswered += 1


async def measure(bench: Bench, contender: Contender, options: argparse.Namespace) -> Waits:
    """Run a contender, and let pods come and go."""
    count = round(options.rate * options.seconds)
    progress(f"{contender.name}: {count} pods in {options.seconds:.0f} s")
    with contender.running(bench.plane, bench.kubeconfig) as pids:
        await _until_up(bench.client, contender)
        limit = options.seconds + options.lifetime + _LAST
        watch = bench.watching(count, limit=limit, name=contender.name)
        cpu, served, start = sum(map(cpu_seconds, pids)), bench.server_cpu(), time.monotonic()
        arrivals = Arrivals(bench.client, contender.scheduler, rate=options.rate, lifetime=options.lifetime)
        await arrivals.run(count)
        bound = await watch()
        cpu, memory = sum(map(cpu_seconds, pids)) - cpu, sum(map(peak_memory, pids))
        served = bench.served_since(served, time.monotonic() - start) - (cpu if contender.in_plane else 0.0)
    await cluster.clear(bench.client)
    waits = sorted(moment - arrivals.sent[name] for name, (moment, _) in bound.items() if name in arrivals.sent)
    return Waits(count, tuple(waits), arrivals.late, arrivals.unanswered, cpu, served, memory)


async def _until_up(client: Client, contender: Contender) -> None:
    """Wait until a contender has bound a pod, and take it away again."""
    await client.create(POD, cluster.a_pod("first", contender.scheduler, RESOURCES))
    async with asyncio.timeout(_UP):
        async for event in client.watch(POD, cluster.NAMESPACE_NAME, field_selector="metadata.name=first"):
            if event.object["spec"].get("nodeName"):
                break
    await client.delete(POD, "first", cluster.NAMESPACE_NAME, grace_period_seconds=0)


def table(found: dict[str, Waits]) -> Table:
    """Show what each contender made of it."""
    shown = Table(title_justify="left")
    waits = ("p50", "p99", "longest")
    for column in ("", "bound", *waits, "sent late", "timed out", "CPU-ms/pod", "server's", "peak MiB"):
        shown.add_column(column, justify="right" if column else "left")
    for name, run in found.items():
        times = [f"{1000 * run.at(part):.0f} ms" if run.waits else "" for part in (0.5, 0.99, 1.0)]
        used = [f"{1000 * seconds / run.pods:.2f}" for seconds in (run.cpu, run.server_cpu)]
        late = f"{1000 * run.late:.0f} ms"
        shown.add_row(
            name, f"{len(run.waits)} of {run.pods}", *times, late, str(run.unanswered), *used, f"{run.memory:.0f}"
        )
    return shown


async def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    compile_ours()
    contenders = [each for each in (STOCK, OURS) if not options.only or each.name in options.only]
    async with a_bench(options.nodes) as bench:
        found = {each.name: await measure(bench, each, options) for each in contenders}
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(f"{options.nodes} nodes, {options.rate:.0f} pods/s, each for {options.lifetime:.0f} s")
    console.print(table(found))
    if OURS.name in found and found[OURS.name].waits:
        console.print(f"99 of 100 pods wait {1000 * found[OURS.name].at(0.99):.0f} ms (goal {1000 * GOAL:.0f} ms)")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=200.0, help="pods per second")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long pods keep coming")
    parser.add_argument("--lifetime", type=float, default=20.0, help="seconds after which a pod is deleted")
    parser.add_argument("--only", action="append", help="measure only this contender; may be repeated")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
