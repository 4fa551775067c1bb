"""One contender on one load: from the start of its process to the last bind, and what that cost.

Pods are created first; then the contender is started as a process of its own, and a watcher in another process notes
when each pod is seen to be bound. Every run has a limit: a contender that has not bound everything by then is stopped,
and what it would have reached is only known to be less than all pods in that time. What happens is said on standard
error as it happens.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from benchmarks.load import cluster
from benchmarks.load.bench import Bench
from benchmarks.load.contenders import BARE_SILENT, Contender
from benchmarks.load.processes import cpu_seconds, peak_memory
from spinney.kube.client import Client

LIMIT = 900.0
"""Seconds after which a contender is stopped."""
_DRAINED = 3.0  # seconds without a further event
_POLL = 0.25


@dataclass(frozen=True)
class Figures:
    """What one run measured, in seconds; processor time is of the whole run."""

    pods: int
    bound: int
    """Fewer than ``pods``: it was stopped."""
    first: float
    p50: float
    p99: float
    last: float
    """The time of the last bind, or at which it was stopped."""
    events: int
    last_event: float
    cpu: float
    server_cpu: float
    memory: float = 0.0
    """The most that the contender has held, in MiB."""
    faults: tuple[str, ...] = ()
    """What was wrong with where the pods were bound."""

    @classmethod
    def at(cls, times: Sequence[float], *, pods: int, ended: float, **measured: Any) -> "Figures":
        """Return the figures of a run of which these are the seconds at which pods were bound, until it ``ended``."""
        ordered = sorted(times) or [ended]
        return cls(
            pods=pods,
            bound=len(times),
            first=ordered[0],
            p50=ordered[len(ordered) // 2],
            p99=ordered[len(ordered) * 99 // 100],
            last=ordered[-1] if len(times) == pods else ended,
            **measured,
        )

    @property
    def stopped(self) -> bool:
        """Tell whether the limit came before the last bind."""
        return self.bound < self.pods

    @property
    def rate(self) -> float:
        """Return pods bound per second; more than it would have been, if it was stopped."""
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
    check: Callable[[Client, Mapping[str, str]], Awaitable[list[str]]] | None = None
    """Says what is wrong with where the pods were bound: the node of each, in the order in which a watch showed it."""
    clear: Callable[[Client], Awaitable[None]] = cluster.clear


def plain(count: int, target: float) -> Load:
    """Return pods that belong to nothing."""
    return Load("plain", count, lambda client, name: cluster.create_pods(client, count, scheduler=name), target)


def gangs(count: int, size: int, target: float) -> Load:
    """Return native gangs of one-GPU pods."""
    return Load(
        f"{count} gangs of {size}",
        count * size,
        lambda client, name: cluster.create_gangs(client, count, size=size, scheduler=name),
        target,
    )


async def measure(bench: Bench, contender: Contender, load: Load, *, limit: float = LIMIT) -> Figures:
    """Create the load, start the contender, and watch until everything is bound and said, or the limit is reached."""
    client = bench.client
    progress(f"{load.name}: creating {load.pods} pods")
    await load.create(client, contender.scheduler)
    watch = bench.watching(load.pods, limit=limit, name=f"{load.name}: {contender.name}")
    start, server_cpu = time.monotonic(), bench.server_cpu()
    with contender.running(bench.plane, bench.kubeconfig) as pids:
        seen = await watch()
        ended = time.monotonic() - start
        expected = 0 if contender is BARE_SILENT else len(seen)
        events, last_event = await drained(client, expected) if expected else (0, start)
        cpu, memory = sum(map(cpu_seconds, pids)), sum(map(peak_memory, pids))
        server_cpu = bench.served_since(server_cpu, time.monotonic() - start) - (cpu if contender.in_plane else 0.0)
    places = {pod: node for pod, (_, node) in seen.items()}
    faults = () if load.check is None else tuple(await load.check(client, places))
    progress(f"{load.name}: clearing")
    await load.clear(client)
    return Figures.at(
        [moment - start for moment, _ in seen.values()],
        pods=load.pods,
        ended=ended,
        events=events,
        last_event=last_event - start,
        cpu=cpu,
        server_cpu=server_cpu,
        memory=memory,
        faults=faults,
    )


async def drained(client: Client, expected: int) -> tuple[int, float]:
    """Wait until there are as many events as expected, or no more come; return how many and when the last was seen."""
    count, since = 0, time.monotonic()
    while count < expected and time.monotonic() - since < _DRAINED:
        found = await cluster.count_events(client)
        if found != count:
            count, since = found, time.monotonic()
        await asyncio.sleep(_POLL)
    return count, since


async def measure_all(
    bench: Bench, contenders: Sequence[Contender], load: Load, *, repeat: int, limit: float
) -> dict[str, Figures]:
    """Measure contenders in turns, and return the run of median rate of each by name."""
    runs: dict[str, list[Figures]] = {each.name: [] for each in contenders}
    for _ in range(repeat):
        for contender in contenders:
            runs[contender.name].append(await measure(bench, contender, load, limit=limit))
    return {name: of_median_rate(found) for name, found in runs.items()}


def of_median_rate(runs: list[Figures]) -> Figures:
    """Return the run of median rate, of two the slower."""
    rate = statistics.median_low([run.rate for run in runs])
    return next(run for run in runs if run.rate == rate)


def compared(ours: Figures, stock: Figures, name: str) -> str:
    """Return how much faster ``ours`` is, as far as that is known."""
    ratio = f"{ours.rate / stock.rate:.2f}x {name}"
    stops = [
        f"{who} stopped after {run.last:.0f} s with {run.bound} of {run.pods} pods bound"
        for who, run in (("ours", ours), (name, stock))
        if run.stopped
    ]
    if ours.stopped and stock.stopped:
        return f"no ratio: {'; '.join(stops)}"
    if not stops:
        return ratio
    return f"at {'most' if ours.stopped else 'least'} {ratio} ({stops[0]})"


def table(load: Load, runs: dict[str, Figures], reference: str) -> Table:
    """Show a run of each contender, and its ratio to ``reference``."""
    shown = Table(title=f"{load.name}: {load.pods} pods", title_justify="left")
    columns = ("", "pods/s", "ratio", "first", "p50", "p99", "last", "events", "CPU-ms/pod", "server's", "both")
    for column in columns:
        shown.add_column(column, justify="right" if column else "left")
    for name, run in runs.items():
        less = "< " if run.stopped else ""
        ratio = f"{less}{run.rate / runs[reference].rate:.2f}x" if reference in runs else ""
        said = f"{run.events} in {run.last_event:.1f} s" if run.events else "none"
        times = [f"{moment:.1f} s" if run.bound else "" for moment in (run.first, run.p50, run.p99)]
        last = f"{run.bound} after {run.last:.0f} s" if run.stopped else f"{run.last:.1f} s"
        used = (run.cpu, run.server_cpu, run.cpu + run.server_cpu)
        each = [f"{1000 * seconds / run.bound:.2f}" if run.bound else f"{seconds:.0f} s in all" for seconds in used]
        shown.add_row(name, f"{less}{run.rate:.0f}", ratio, *times, last, said, *each)
    return shown


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
