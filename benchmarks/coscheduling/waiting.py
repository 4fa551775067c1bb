"""What gangs cost that wait while nothing changes: the processor time of a scheduler that has nothing to do for them.

Gangs that fit nowhere are created; once everything about them has been said, the processor time of the contender is
read over a while. The same is measured without any gangs, for a process also has its watches to keep. A contender that
still has something to say when its time is over is measured as it is, and that is shown.
"""

import asyncio
import time
from dataclasses import dataclass

from rich.table import Table

from benchmarks.load import cluster
from benchmarks.load.bench import Bench
from benchmarks.load.contenders import Contender
from benchmarks.load.measuring import progress
from benchmarks.load.processes import cpu_seconds
from spinney.api.core import EVENT, POD
from spinney.api.resource import Resource
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.client import Client

_GPUS_OF_NOBODY = 64
_STILL = 15.0
"""Seconds without a write about pods or groups: then everything has been said."""
_WATCHED = 30.0


@dataclass(frozen=True)
class Idleness:
    """Processor time per second at rest, in milliseconds, with so many gangs that wait."""

    contender: str
    gangs: int
    cpu_ms: float
    at_rest: bool
    """Whether it had stopped writing about pods and groups by then."""


async def measure_waiting(bench: Bench, contender: Contender, gangs: int, size: int, *, limit: float) -> Idleness:
    """Create gangs that fit nowhere, let the contender say so, and read what it uses from then on."""
    progress(f"{gangs} gangs that wait: {contender.name}")
    await cluster.create_gangs(bench.client, gangs, size=size, scheduler=contender.scheduler, gpus=_GPUS_OF_NOBODY)
    with contender.running(bench.plane, bench.kubeconfig) as (pid,):
        at_rest = await _still(bench.client, limit)
        progress(f"{gangs} gangs that wait: {contender.name} {'rests' if at_rest else 'still writes'}")
        before, since = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(_WATCHED)
        used = (cpu_seconds(pid) - before) / (time.monotonic() - since)
    await cluster.clear(bench.client)
    return Idleness(contender.name, gangs, 1000 * used, at_rest)


async def _still(client: Client, limit: float) -> bool:
    """Wait until the newest version of pods, groups and events has not changed for a while; tell whether it came so."""
    seen, since = ("", "", ""), time.monotonic()
    end = since + limit
    while time.monotonic() - since < _STILL:
        if time.monotonic() > end:
            return False
        versions = [await _version(client, resource) for resource in (POD, POD_GROUP, EVENT)]
        now = (versions[0], versions[1], versions[2])
        if now != seen:
            seen, since = now, time.monotonic()
        await asyncio.sleep(1.0)
    return True


async def _version(client: Client, resource: Resource) -> str:
    listing = await client.list(resource, cluster.NAMESPACE_NAME)
    return max((item["metadata"]["resourceVersion"] for item in listing.items), key=int, default="")


def idleness_table(found: list[Idleness]) -> Table:
    """Show what waiting costs."""
    shown = Table(title="gangs that wait while nothing changes", title_justify="left")
    for column in ("", "gangs", "CPU-ms per second"):
        shown.add_column(column, justify="right" if column else "left")
    for each in found:
        writing = "" if each.at_rest else " (still writing)"
        shown.add_row(each.contender, str(each.gangs), f"{each.cpu_ms:.2f}{writing}")
    return shown
