"""From pending pods to bound pods on a real API server, beside the stock kube-scheduler.

    python -m benchmarks.scheduler.end_to_end [--nodes 1000] [--pods 5000] [--gangs 500] [--repeat 1]

One kube-apiserver and etcd of Kubernetes 1.37, plain Node objects, no kubelets. Two loads: pods that belong to nothing,
and one-GPU pods in native gangs of eight. Pods are created first; then a contender is started as a process of its own,
and a watcher in another process notes when each pod is seen to be bound. Every contender proves who it is by the same
kind of certificate and writes one Scheduled event per pod; the stock scheduler runs with its defaults (protobuf, node
sampling), gang scheduling on and 5 000 requests per second allowed. The bare client binds pods without deciding
anything.

``pods/s`` counts from the start of the process to the last bind; p50 and p99 are of the time from that start to a pod's
bind; ``events`` is when the last event had been stored. A scheduler that binds first and tells later gains in
``pods/s``, so the ratio to the last event is printed beside the one to the last bind. Processor time is per pod, until
the last event: of the contender with its start, and of API server and etcd together, less what those use at rest. A
busy machine raises it too, but far less than it lowers rates; the number of cores divided by the sum of both is the
rate at which they would be fully used.
"""

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.load import cluster
from benchmarks.load.contenders import BARE, BARE_SILENT, OUR_USER, OURS, STOCK, Contender, cpu_seconds
from rich.console import Console
from rich.table import Table

from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.runtime import Runtime
from spinney.testing.controlplane import ControlPlane

GANG_SIZE = 8
_DRAINED = 3.0  # seconds without a further event
_REST = 5.0  # seconds over which API server and etcd are watched at rest
_POLL = 0.25


@dataclass(frozen=True)
class Figures:
    """What one run measured, in seconds; processor time is of the whole run."""

    pods: int
    first: float
    p50: float
    p99: float
    last: float
    events: int
    last_event: float
    cpu: float
    server_cpu: float

    @property
    def rate(self) -> float:
        """Return pods bound per second."""
        return self.pods / self.last

    @property
    def told(self) -> float:
        """Return pods bound and told of per second: what a scheduler leaves for after the last bind counts here."""
        return self.pods / max(self.last, self.last_event)


@dataclass(frozen=True)
class Load:
    """Pods to be created for a scheduler."""

    name: str
    pods: int
    create: Callable[[Client, str], Awaitable[None]]
    target: float


@dataclass(frozen=True)
class Bench:
    """A control plane with nodes, and what is known about it."""

    plane: ControlPlane
    client: Client
    kubeconfig: Path
    at_rest: float  # processor seconds per second

    def server_cpu(self) -> float:
        """Return the processor time that API server and etcd have used."""
        return sum(cpu_seconds(process.pid) for process in self.plane._processes)


async def measure(bench: Bench, contender: Contender, load: Load) -> Figures:
    """Create the load, start the contender, and watch until everything is bound and said."""
    plane, client = bench.plane, bench.client
    await load.create(client, contender.scheduler)
    watcher = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
        [sys.executable, "-m", "benchmarks.load.bindings", str(plane.kubeconfig), str(load.pods)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "ready\n"
    start, server_cpu = time.monotonic(), bench.server_cpu()
    with contender.running(plane, bench.kubeconfig) as pid:
        said = await asyncio.to_thread(watcher.stdout.read)
        seen: dict[str, float] = json.loads(said.splitlines()[-1])
        watcher.wait()
        events, last_event = (0, start) if contender is BARE_SILENT else await drained(client, load.pods)
        cpu = cpu_seconds(pid)
        server_cpu = bench.server_cpu() - server_cpu - (cpu if not contender.command else 0.0)
        server_cpu -= bench.at_rest * (time.monotonic() - start)
    await cluster.clear(client)
    times = sorted(moment - start for moment in seen.values())
    return Figures(
        pods=load.pods,
        first=times[0],
        p50=times[len(times) // 2],
        p99=times[len(times) * 99 // 100],
        last=times[-1],
        events=events,
        last_event=last_event - start,
        cpu=cpu,
        server_cpu=server_cpu,
    )


async def rested(bench: Bench) -> Bench:
    """Return the bench with what its servers use at rest."""
    before = bench.server_cpu()
    await asyncio.sleep(_REST)
    return replace(bench, at_rest=(bench.server_cpu() - before) / _REST)


async def drained(client: Client, expected: int) -> tuple[int, float]:
    """Wait until there are as many events as expected, or no more come; return how many and when the last was seen."""
    count, since = 0, time.monotonic()
    while count < expected and time.monotonic() - since < _DRAINED:
        found = await cluster.count_events(client)
        if found != count:
            count, since = found, time.monotonic()
        await asyncio.sleep(_POLL)
    return count, since


def table(load: Load, runs: dict[str, list[Figures]]) -> Table:
    """Show the run of median rate of each contender."""
    shown = Table(title=f"{load.name}: {load.pods} pods", title_justify="left")
    columns = ("", "pods/s", "ratio", "first", "p50", "p99", "last", "events", "CPU-ms/pod", "server's", "both")
    for column in columns:
        shown.add_column(column, justify="right" if column else "left")
    median = {name: statistics.median_low([run.rate for run in figures]) for name, figures in runs.items()}
    for name, figures in runs.items():
        run = next(run for run in figures if run.rate == median[name])
        ratio = f"{run.rate / median[STOCK.name]:.2f}x" if STOCK.name in median else ""
        said = f"{run.events} in {run.last_event:.1f} s" if run.events else "none"
        times = [f"{moment:.1f} s" for moment in (run.first, run.p50, run.p99, run.last)]
        used = (run.cpu, run.server_cpu, run.cpu + run.server_cpu)
        each = [f"{1000 * seconds / run.pods:.2f}" for seconds in used]
        shown.add_row(name, f"{run.rate:.0f}", ratio, *times, said, *each)
    return shown


async def run(options: argparse.Namespace) -> None:
    """Run every contender on every load and print the tables."""
    loads = {
        "plain": Load("plain", options.pods, lambda c, s: cluster.create_pods(c, options.pods, scheduler=s), 1.5),
        "gangs": Load(
            f"gangs of {GANG_SIZE}",
            options.gangs * GANG_SIZE,
            lambda c, s: cluster.create_gangs(c, options.gangs, size=GANG_SIZE, scheduler=s),
            4.0,
        ),
    }
    contenders = [each for each in (STOCK, OURS, BARE, BARE_SILENT) if not options.only or each.name in options.only]
    runtime = Runtime.system()
    console = Console(width=None if sys.stdout.isatty() else 140)
    async with ControlPlane(controller_manager=False) as plane:
        # Deleting thousands of pods at once takes its time.
        client = Client(load_kubeconfig(plane.kubeconfig, runtime=runtime), runtime, timeout=600.0)
        try:
            await cluster.prepare(client, nodes=options.nodes, administrators=(OUR_USER,))
            bench = await rested(Bench(plane, client, plane.kubeconfig_for(OUR_USER), at_rest=0.0))
            for load in (loads[name] for name in options.loads.split(",")):
                runs: dict[str, list[Figures]] = {}
                for _ in range(options.repeat):
                    for contender in contenders:
                        figures = await measure(bench, contender, load)
                        runs.setdefault(contender.name, []).append(figures)
                console.print(table(load, runs))
                if STOCK.name in runs and OURS.name in runs:
                    ours, stock = (statistics.median_low([r.rate for r in runs[c.name]]) for c in (OURS, STOCK))
                    told, told_stock = (statistics.median_low([r.told for r in runs[c.name]]) for c in (OURS, STOCK))
                    console.print(
                        f"{ours / stock:.2f}x kube-scheduler to the last bind (target {load.target}x), "
                        f"{told / told_stock:.2f}x to the last event\n"
                    )
            if options.logs is not None:
                for log in plane.directory.glob("*.log"):
                    (options.logs / log.name).write_bytes(log.read_bytes())
        finally:
            await client.close()
            runtime.executor.close()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000, help="plain pods")
    parser.add_argument("--gangs", type=int, default=500, help=f"gangs of {GANG_SIZE} one-GPU pods")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each contender; the median is shown")
    parser.add_argument("--loads", default="plain,gangs")
    parser.add_argument("--only", action="append", help="measure only this contender; may be repeated")
    parser.add_argument("--logs", type=Path, help="copy the logs of all programs to this directory")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that the control plane is stopped
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
