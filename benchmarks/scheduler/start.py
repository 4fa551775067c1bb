"""From the start of our schedulers' processes to the first bind, beside the stock kube-scheduler and a bare client.

    python -m benchmarks.scheduler.start [--nodes 200] [--pods 400] [--repeat 5]

One kube-apiserver and etcd of Kubernetes 1.37, plain Node objects, no kubelets. Pods are created first; then the
contenders are started in turns, and a watch says when the first pod of each has a node. Processor time is what the
process had used when that was seen, and what API server and etcd used meanwhile. The times shown are the median and the
shortest: a busy machine lengthens the clock's by far more than the processor's.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.load import cluster
from benchmarks.load.bench import Bench, a_bench
from benchmarks.load.contenders import BARE, COSCHEDULER, OURS, STOCK, Contender, compile_ours
from benchmarks.load.measuring import progress
from benchmarks.load.processes import cpu_seconds
from spinney.api.core import POD
from spinney.cli.terminal.logs import log_to_stderr


@dataclass(frozen=True)
class Start:
    """One start, in seconds."""

    clock: float
    cpu: float
    server_cpu: float


async def measure(bench: Bench, contender: Contender, pods: int) -> Start:
    """Start a contender and wait for its first bind."""
    client = bench.client
    await cluster.clear_pods(client)
    await cluster.create_pods(client, pods, scheduler=contender.scheduler)
    version = (await client.list(POD, cluster.NAMESPACE_NAME)).resource_version
    watch = client.watch(POD, cluster.NAMESPACE_NAME, resource_version=version)
    served, began = bench.server_cpu(), time.monotonic()
    with contender.running(bench.plane, bench.kubeconfig) as pids:
        async for event in watch:
            if event.object["spec"].get("nodeName"):
                break
        passed, cpu = time.monotonic() - began, sum(map(cpu_seconds, pids))
        served = bench.served_since(served, passed) - (cpu if contender.in_plane else 0.0)
    return Start(passed, cpu, served)


def table(found: dict[str, list[Start]]) -> Table:
    """Show the median and the shortest of each."""
    shown = Table(title="to the first bind, in seconds: median (shortest)", title_justify="left")
    for column in ("", "clock", "CPU", "server's"):
        shown.add_column(column, justify="right" if column else "left")
    for name, starts in found.items():
        columns = zip(*((start.clock, start.cpu, start.server_cpu) for start in starts), strict=True)
        shown.add_row(name, *map(_median_and_shortest, columns))
    return shown


def _median_and_shortest(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f})"


async def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    compile_ours()
    found: dict[str, list[Start]] = {}
    async with a_bench(options.nodes) as bench:
        for turn in range(options.repeat):
            for contender in (STOCK, OURS, COSCHEDULER, BARE):
                progress(f"{contender.name}: start {turn + 1} of {options.repeat}")
                found.setdefault(contender.name, []).append(await measure(bench, contender, options.pods))
    Console(width=None if sys.stdout.isatty() else 100).print(table(found))


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5, help="starts of each contender")
    log_to_stderr()
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
