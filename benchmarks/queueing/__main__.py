"""Suspended Jobs in a queue: what they cost the scheduler's memory and cycles, beside none.

    python -m benchmarks.queueing [--jobs 10000] [--size 8] [--nodes 64] [--queues 4] [--cycles 20]

An embedded API server in this process holds the Jobs, all of them suspended, and nodes of eight GPUs, of which one too
few is free for any of them; a pod is on each of the others. A scheduler with the grouper runs beside it, first without
suspended Jobs, then with them. Printed are the growth of the process's memory when the scheduler has read all of them,
how long cycles take (each is woken by a change of a node), and how many pods there are: those on the nodes.
"""

import argparse
import asyncio
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.load.cluster import NAMESPACE_NAME, a_node, for_each
from benchmarks.load.processes import resident_memory
from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.grouping.configuration import GrouperConfiguration, LoadedGrouperConfiguration
from spinney.grouping.loading import built_in
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig, SuspendedWorkloads
from spinney.server import ApiServer
from spinney.sim.embedded.stack import OUR_BACKENDS, Schedulers, StackOptions
from spinney.sim.embedded.transport import InProcessTransport

JOB = Resource("batch", "v1", "Job", "jobs")


@dataclass(frozen=True)
class Cost:
    """What a scheduler cost."""

    megabytes: float
    cycles: list[float]


def a_job(number: int, size: int, queues: int) -> JSON:
    """Return a suspended Job of pods that need a node each."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": [container]}
    labels = {"spinney.dev/admission": "queue", "kai.scheduler/queue": f"team-{number % queues}"}
    metadata = {
        "name": f"job-{number:05d}",
        "namespace": NAMESPACE_NAME,
        "labels": labels,
        "annotations": {"kai.scheduler/batch-min-member": str(size)},
    }
    job = {"suspend": True, "parallelism": size, "completions": size, "template": {"spec": spec}}
    return {"metadata": metadata, "spec": job}


def a_running_pod(number: int) -> JSON:
    """Return a pod that has a node for itself."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    metadata = {"name": f"running-{number}", "namespace": NAMESPACE_NAME}
    spec = {"schedulerName": "spinney-scheduler", "nodeName": a_node(number)["metadata"]["name"]}
    return {"metadata": metadata, "spec": {**spec, "containers": [container]}}


def held() -> float:
    """Return how much memory this process holds, in MiB."""
    gc.collect()
    return resident_memory(os.getpid())


async def scheduled(connect: Callable[[str], Client], kinds: Iterable[str], expected: int, cycles: int) -> Cost:
    """Run a scheduler until it has read the Jobs; return what it held, and how long its next cycles took."""
    client, before = connect("bench"), held()
    written = GrouperConfiguration(scheduler_names=("spinney-scheduler",))
    suspended = SuspendedWorkloads(kinds=tuple(kinds))  # type: ignore[arg-type]
    options = StackOptions(
        scheduler=SchedulerConfig(wait_for_grouper=True, suspended_workloads=suspended),
        grouper=LoadedGrouperConfiguration(written, built_in(), OUR_BACKENDS),
    )
    schedulers = Schedulers(connect, options)
    running = asyncio.create_task(schedulers.run())
    await schedulers.manager.wait_until_ready()
    session, registry = schedulers.session, schedulers.manager.metrics.registry
    while expected and _sum(registry.collect(), "spinney_suspended_workloads") < expected:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await asyncio.sleep(2.0)
    growth, took = held() - before, []
    for number in range(cycles):
        count, started = session.cycles, time.perf_counter()
        await client.patch(NODE, a_node(0)["metadata"]["name"], {"metadata": {"labels": {"turn": str(number)}}})
        while session.cycles == count:  # noqa: ASYNC110 - a cycle tells nobody that it has ended
            await asyncio.sleep(0.002)
        took.append(time.perf_counter() - started)
        await asyncio.sleep(0.1)
    schedulers.stop()
    await running
    return Cost(growth, took)


def _sum(families: Iterable[object], name: str) -> float:
    return sum(each.value for family in families if family.name == name for each in family.samples)  # type: ignore[attr-defined]


async def measured(jobs: int, size: int, nodes: int, queues: int, cycles: int) -> tuple[Cost, Cost, int]:
    """Return the cost without and with suspended Jobs, and how many pods there are."""
    runtime = Runtime.system()
    server = ApiServer(runtime)

    def connect(field_manager: str) -> Client:
        return Client(InProcessTransport(server), runtime, field_manager=field_manager)

    client = connect("bench")
    async with server.running():
        await install_crds(client)
        await client.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        await for_each(range(nodes), lambda number: client.create(NODE, a_node(number)))
        await for_each(range(size - 1, nodes), lambda number: client.create(POD, a_running_pod(number)))
        await for_each(range(jobs), lambda number: client.create(JOB, a_job(number, size, queues)))
        without = await scheduled(connect, (), 0, cycles)
        waiting = await scheduled(connect, ("Job",), jobs, cycles)
        pods = len((await client.list(POD)).items)
    runtime.executor.close()
    return without, waiting, pods


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("jobs", 10_000), ("size", 8), ("nodes", 64), ("queues", 4), ("cycles", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    without, waiting, pods = asyncio.run(measured(chosen.jobs, chosen.size, chosen.nodes, chosen.queues, chosen.cycles))
    table = Table(title=f"{chosen.jobs} suspended Jobs of {chosen.size} pods, {chosen.queues} queues, {pods} pods")
    for column in ("scheduler", "memory, MiB", "from event to end of cycle, ms (median, slowest)"):
        table.add_column(column, justify="right")
    for title, cost in (("without them", without), ("with them", waiting)):
        slowest, median = max(cost.cycles) * 1000, statistics.median(cost.cycles) * 1000
        table.add_row(title, f"{cost.megabytes:.0f}", f"{median:.0f}, {slowest:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
