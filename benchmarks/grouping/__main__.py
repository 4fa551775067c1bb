"""Pods of Jobs grouped and bound, beside the same pods as gangs that somebody made ready.

    python -m benchmarks.grouping [--jobs 250] [--size 8] [--repeat 3]

One embedded cluster in this process, in real time: API server, nodes of eight GPUs without kubelets, session scheduler
and grouper over one set of caches. Each round makes the same pods twice, in turns: as pods of Jobs, which the grouper
has to give a PodGang and labels, and as pods that carry the labels of PodGangs made before them. Time runs from the
first object to the last bind that a watch has seen. All of it is one process of one thread, so what others do on the
machine can be left out (:mod:`.undisturbed`): given are the clock, the time without the others, and the processor's
time. What is printed are the medians, and the rate of the first way as a part of the rate of the second.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import astuple, dataclass, replace

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.grouping.undisturbed import Loop, LoopClock
from benchmarks.load.cluster import a_node, for_each
from spinney.api import labels as marks
from spinney.api.core import NAMESPACE, NODE, POD, SERVICE_ACCOUNT, Pod
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.grouping.configuration import GrouperConfiguration, LoadedGrouperConfiguration
from spinney.grouping.loading import built_in
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import InlineExecutor, Runtime, settle_garbage_collector
from spinney.scheduler.config import SchedulerConfig
from spinney.server import ApiServer
from spinney.sim.embedded.stack import OUR_BACKENDS, Schedulers, StackOptions, join_at_creation
from spinney.sim.embedded.transport import InProcessTransport

JOB = Resource("batch", "v1", "Job", "jobs")
WHERE = "bench"
TARGET = 0.8


@dataclass
class Bound:
    """Which pods have a node. Mutable, fed by a watch."""

    count: int = 0
    wanted: int = 0

    def __post_init__(self) -> None:
        self.done = asyncio.Event()

    def __call__(self, change: Change[Pod]) -> None:
        """Take in a change of a pod."""
        before = change.old is not None and bool(change.old.spec.node_name)
        self.count += (change.new is not None and bool(change.new.spec.node_name)) - before
        if self.count >= self.wanted:
            self.done.set()


def a_pod(name: str, *, owner: JSON | None = None, labels: JSON | None = None) -> JSON:
    """Return a pod that needs one GPU."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "metadata": {
            "name": name,
            "namespace": WHERE,
            "labels": labels or {},
            "ownerReferences": [owner] if owner is not None else [],
        },
        "spec": {"schedulerName": "spinney-scheduler", "containers": [container]},
    }


async def as_jobs(client: Client, jobs: int, size: int) -> None:
    """Make Jobs that need all their pods, each with its pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}

    async def one(number: int) -> None:
        name = f"job-{number:04d}"
        metadata = {
            "name": name,
            "namespace": WHERE,
            "annotations": {"kai.scheduler/batch-min-member": str(size)},
        }
        spec = {"parallelism": size, "completions": size, "template": template}
        made: JSON = await client.create(JOB, {"metadata": metadata, "spec": spec})
        uid = made["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
        for index in range(size):
            await client.create(POD, a_pod(f"{name}-{index}", owner=owner))

    await for_each(range(jobs), one)


async def as_gangs(client: Client, jobs: int, size: int) -> None:
    """Make PodGangs, each with its pods."""

    async def one(number: int) -> None:
        name = f"gang-{number:04d}"
        references = [{"namespace": WHERE, "name": f"{name}-{index}"} for index in range(size)]
        spec = {"podgroups": [{"name": "default", "minReplicas": size, "podReferences": references}]}
        await client.create(POD_GANG, {"metadata": {"name": name, "namespace": WHERE}, "spec": spec})
        labels = {marks.POD_GANG: name, marks.POD_CLIQUE: "default"}
        for index in range(size):
            await client.create(POD, a_pod(f"{name}-{index}", labels=labels))

    await for_each(range(jobs), one)


async def cleared(client: Client, bound: Bound) -> None:
    """Remove everything, and wait until it is gone."""
    bound.wanted, bound.done = 10**9, asyncio.Event()
    await client.delete_collection(POD, WHERE, grace_period_seconds=0)
    for kind in (JOB, POD_GANG):
        await client.delete_collection(kind, WHERE)
    while any(  # noqa: ASYNC110 - a pause between two rounds, which nothing measures
        [(await client.list(kind, WHERE)).items for kind in (POD, JOB, POD_GANG)]
    ):
        await asyncio.sleep(0.2)
    await asyncio.sleep(1.0)


@dataclass(frozen=True)
class Round:
    """How many seconds one way took: by the clock, without what others did meanwhile, and of the processor."""

    clock: float
    undisturbed: float
    processor: float

    @classmethod
    def now(cls) -> "Round":
        """Return the three times as they are."""
        return cls(time.perf_counter(), asyncio.get_running_loop().time(), time.process_time())

    def since(self, began: "Round") -> "Round":
        """Return what has passed."""
        return Round(self.clock - began.clock, self.undisturbed - began.undisturbed, self.processor - began.processor)


async def measured(jobs: int, size: int, repeat: int) -> dict[str, list[Round]]:
    """Return how long each way took in every round."""
    runtime = replace(Runtime.system(), clock=LoopClock(), executor=InlineExecutor())
    server = ApiServer(runtime)

    def connect(field_manager: str) -> Client:
        return Client(InProcessTransport(server), runtime, field_manager=field_manager)

    client = connect("bench")
    written = GrouperConfiguration(scheduler_names=("spinney-scheduler",))
    options = StackOptions(
        scheduler=SchedulerConfig(wait_for_grouper=True),
        grouper=LoadedGrouperConfiguration(written, built_in(), OUR_BACKENDS),
    )
    seconds: dict[str, list[Round]] = {"jobs": [], "gangs": []}
    async with server.running():
        await install_crds(client)
        await client.create(NAMESPACE, {"metadata": {"name": WHERE}})
        await client.apply(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": WHERE}})
        await for_each(range(-(-jobs * size // 8)), lambda number: client.create(NODE, a_node(number)))
        schedulers = Schedulers(connect, options)
        join_at_creation(server, schedulers.grouper)
        bound = Bound()
        pods = WatchCache(client, POD, Pod, runtime=runtime)
        pods.subscribe(bound)
        tasks = [asyncio.create_task(schedulers.run()), asyncio.create_task(pods.run())]
        await schedulers.manager.wait_until_ready()
        await pods.wait_for_sync()
        for _ in range(repeat):
            for way, make in (("gangs", as_gangs), ("jobs", as_jobs)):
                await cleared(client, bound)
                bound.count, bound.wanted, bound.done = 0, jobs * size, asyncio.Event()
                began = Round.now()
                await make(client, jobs, size)
                await bound.done.wait()
                seconds[way].append(Round.now().since(began))
        schedulers.stop()
        await tasks[0]
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    runtime.executor.close()
    return seconds


def main() -> None:
    """Measure, and print both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    settle_garbage_collector()
    with asyncio.Runner(loop_factory=Loop) as runner:
        seconds = runner.run(measured(chosen.jobs, chosen.size, chosen.repeat))
    count = chosen.jobs * chosen.size
    table = Table(title=f"{count} pods in {chosen.jobs} gangs, embedded cluster", title_justify="left")
    for column in ("made as", "seconds", "pods bound per second", "seconds without others", "processor seconds"):
        table.add_column(column, justify="right")
    medians: dict[str, Round] = {}
    for way, title in (("jobs", "Jobs, grouped here"), ("gangs", "ready-made PodGangs")):
        medians[way] = found = Round(*map(statistics.median, zip(*map(astuple, seconds[way]), strict=True)))
        rounds = ", ".join(f"{each.clock:.2f}" for each in seconds[way])
        rate = f"{count / found.clock:.0f}"
        table.add_row(title, rounds, rate, f"{found.undisturbed:.2f}", f"{found.processor:.2f}")
    console = Console()
    console.print(table)
    ours, ready = medians["jobs"], medians["gangs"]
    console.print(
        f"ratio {ready.clock / ours.clock:.2f} by the clock, {ready.undisturbed / ours.undisturbed:.2f} without "
        f"others, {ready.processor / ours.processor:.2f} by the processor (to reach: {TARGET})"
    )


if __name__ == "__main__":
    main()
