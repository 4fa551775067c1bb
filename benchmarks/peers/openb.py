"""openb's pods with KAI's scheduler, Volcano's and ours on one API server: how many of the GPUs each gives out.

    python -m benchmarks.peers.openb DIRECTORY [--list default] [--seeds 1] [--seed 42]

DIRECTORY holds the trace, which is not part of Spinney. Needs what ``make controlplane`` and ``make peers`` build.

A contender runs when the pods come, which are created in the published order, some of them at the same time; those that
wait together are ordered by creation times, which have whole seconds. They are decided one after the other, and nothing
ends or may be moved. A pod that wants next to nothing comes first, to show that the contender is up.

KAI and ours read the same pods, groups and nodes; pods share GPUs by the annotation ``gpu-fraction``. KAI's binder does
not run: it would wait for a pod on a real GPU node to tell each shared GPU's number. What KAI's scheduler decided
stands in its BindRequests, and it counts those pods as placed. Volcano's pods ask for the same parts of a GPU by its
resources ``volcano.sh/vgpu-*``; nodes have the annotation in which its device plugin would list their GPUs, and its
plugin ``deviceshare`` is told to pack.

A run is over when nothing was placed for ``--quiet`` seconds. Placements are checked against the trace alone: nothing
overcommitted, shares within devices, models respected, and nobody waits for whom there is room in the end.
"""

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.load import cluster
from benchmarks.load.bench import Bench, a_bench
from benchmarks.load.contenders import Contender, compile_ours
from benchmarks.load.measuring import progress
from benchmarks.peers.families import FAMILIES, KAI_PROMISED, Family, Gang, with_plugin
from benchmarks.peers.lingjun import all_promised
from benchmarks.traces.openb import spread
from benchmarks.traces.tables import Table
from spinney.api import kai
from spinney.api.core import NODE, POD, Pod
from spinney.api.kai import BIND_REQUEST, BindRequest
from spinney.api.struct import JSON, to_json
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cluster.pods import gpu_groups
from spinney.kube.cache import Change, WatchCache, kept_up
from spinney.sim.replay.checking import left_out, violations
from spinney.sim.replay.figures import Figures, figures_of
from spinney.sim.replay.formats.openb import read_openb
from spinney.sim.replay.history import History, JobHappening
from spinney.sim.replay.objects import node_of, pods_of
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, Trace
from spinney.testing.controlplane import ControlPlane
from spinney.testing.peers import KAI, VOLCANO
from spinney.testing.peers.recipes import KAI_PARENT_QUEUE

_CREATED: Final = datetime(2020, 1, 1, tzinfo=UTC)
_VGPUS_GIVEN: Final = "volcano.sh/vgpu-ids-new"
_SHARERS: Final = 20
"""The most pods on one GPU of Volcano's: the smallest part that openb's pods ask for is a twentieth."""


_PROBE: Final = Job("probe", 0.0, Ask(cpu=1, memory=1))
"""A pod that shows that a contender is up."""


@dataclass
class Placed:
    """Where pods are, in the order in which that was seen, with the shared GPUs that each was given. Mutable."""

    places: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def see_pod(self, change: Change[Pod]) -> None:
        """Take in what happened to a pod."""
        if (pod := change.new) is not None and pod.spec.node_name:
            self._put(change.key.name, pod.spec.node_name, devices_of(pod))

    def see_request(self, change: Change[BindRequest]) -> None:
        """Take in what happened to a decision of KAI's."""
        if (request := change.new) is not None:
            self._put(request.spec.pod_name, request.spec.selected_node, request.spec.selected_gpu_groups)

    def _put(self, pod: str, node: str, devices: tuple[str, ...]) -> None:
        known = self.places.setdefault(pod, (node, devices))
        if known[0] != node:
            raise RuntimeError(f"pod {pod} was put on {known[0]} and then on {node}")
        self.changed.set()

    async def first(self) -> None:
        """Wait until a pod is placed."""
        while not self.places:
            self.changed.clear()
            await self.changed.wait()

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing was placed for some time."""
        while True:
            self.changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self.changed.wait()
            except TimeoutError:
                return


@dataclass(frozen=True)
class Offer:
    """Who is offered the pods, as whose gangs, and where its decisions stand."""

    family: Family
    contender: Contender
    requests: bool = False
    """Whether decisions are read from KAI's BindRequests instead of the pods."""


class Experiment:
    """An API server with the machines of a trace, and the pods that are offered to whom."""

    def __init__(self, bench: Bench, trace: Trace) -> None:
        self._bench = bench
        self._client = bench.client
        self._trace = trace

    async def make(self, offer: Offer, *, quiet: float) -> tuple[Figures, list[str]]:
        """Offer all pods to one contender; returns what came of it, and what was wrong."""
        jobs, name, placed = self._trace.jobs, offer.contender.name, Placed()
        async with self._followed(placed, offer):
            with offer.contender.running(self._bench.plane, self._bench.kubeconfig):
                await self._create(offer.family, _PROBE)
                await placed.first()
                await self._heartbeat()
                progress(f"{name}: {len(jobs):,} pods")
                start = time.monotonic()
                await cluster.for_each(jobs, lambda job: self._create(offer.family, job))
                await placed.quiet(quiet)
        del placed.places[_PROBE.name]
        progress(f"{name}: {len(placed.places):,} placed after {time.monotonic() - start - quiet:.0f} s")
        await offer.family.clear(self._client)
        return judged(self._trace, placed.places)

    async def _heartbeat(self) -> None:
        """Change every node, as kubelets do all the time: Volcano takes GPUs in that it had no plugin for before."""
        beat = {"metadata": {"annotations": {"bench/beat": str(time.monotonic())}}}
        await cluster.for_each(self._trace.machines, lambda machine: self._client.patch(NODE, machine.name, beat))

    async def _create(self, family: Family, job: Job) -> None:
        gang = Gang(job.name, 1, 1, queue=KAI_PROMISED, preemptible=False)
        await self._client.create(family.resource, family.group(gang))
        pod = pod_of(job, family.scheduler, (vgpus if family.peer.name == VOLCANO.name else whole_gpus)(job))
        family.mark(pod, gang)
        await self._client.create(POD, pod)

    @asynccontextmanager
    async def _followed(self, placed: Placed, offer: Offer) -> AsyncIterator[None]:
        namespace, runtime = cluster.NAMESPACE_NAME, self._client.runtime
        decisions: WatchCache[BindRequest] | WatchCache[Pod]
        if offer.requests:
            decisions = WatchCache(self._client, BIND_REQUEST, BindRequest, runtime=runtime, namespace=namespace)
            decisions.subscribe(placed.see_request)
        else:
            decisions = WatchCache(self._client, POD, Pod, runtime=runtime, namespace=namespace)
            decisions.subscribe(placed.see_pod)
        async with kept_up(decisions):
            yield


def devices_of(pod: Pod) -> tuple[str, ...]:
    """Return the GPUs that a pod was given by name: those that it shares, or all, if Volcano gave them."""
    given = pod.metadata.annotations.get(_VGPUS_GIVEN, "")
    return tuple(each.split(",")[0] for each in given.split(":") if each) or gpu_groups(pod.metadata.labels)


def whole_gpus(job: Job) -> dict[str, str]:
    """Return how a pod asks for whole GPUs; parts of one are asked for by an annotation."""
    return {cluster.GPU: str(job.ask.gpus)} if job.ask.gpus and job.ask.milli == WHOLE else {}


def vgpus(job: Job) -> dict[str, str]:
    """Return how a pod asks Volcano for GPUs and parts of them: memory and cores of each."""
    if not job.ask.gpus:
        return {}
    amounts = {"number": job.ask.gpus, "memory": job.ask.milli, "cores": job.ask.milli * 100 // WHOLE}
    return {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in amounts.items()}


def a_node(machine: Machine) -> JSON:
    """Return a machine as a node that is ready, and that Volcano's device plugin seems to have registered."""
    node: JSON = to_json(node_of(machine))
    node["metadata"] = {key: node["metadata"][key] for key in ("name", "labels")}
    vgpus = {"number": machine.gpus * _SHARERS, "memory": machine.gpus * WHOLE, "cores": machine.gpus * 100}
    node["status"]["allocatable"] |= {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in vgpus.items()}
    devices = (f"{machine.name}-{number},{_SHARERS},{WHOLE},NVIDIA,true,hami-core" for number in range(machine.gpus))
    node["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": "".join(f"{each}:" for each in devices)}
    node["status"]["capacity"] = node["status"]["allocatable"]
    node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "Bench"}]
    return node


def pod_of(job: Job, scheduler: str, gpus: dict[str, str]) -> JSON:
    """Return the pod of a job, which asks for GPUs in some scheduler's way."""
    (pod,) = pods_of(job, _CREATED, 0)
    requests = pod.spec.containers[0].resources.requests
    others = {name: amount for name, amount in requests.items() if name != cluster.GPU}
    found = cluster.a_pod(job.name, scheduler, {"requests": others | gpus, "limits": gpus})
    if pod.spec.affinity is not None:
        found["spec"]["affinity"] = to_json(pod.spec.affinity)
    found["metadata"] |= {"labels": {}, "annotations": dict(pod.metadata.annotations)}
    return found


def judged(trace: Trace, places: Mapping[str, tuple[str, tuple[str, ...]]]) -> tuple[Figures, list[str]]:
    """Return the figures of placements, and what is wrong with them.

    The trace is put into the order of the placements, with those that were placed nowhere at its end.
    """
    jobs = {job.name: job for job in trace.jobs}
    waiting = [job for job in trace.jobs if job.name not in places]
    ordered = trace.with_jobs(tuple(replace(job, submitted=0.0) for job in [*map(jobs.__getitem__, places), *waiting]))
    history = History(events=[JobHappening(0.0, "submitted", number) for number in range(len(ordered.jobs))])
    devices = _devices(trace, ordered.jobs, places)
    for number, (name, (node, _)) in enumerate(places.items()):
        history.events.append(JobHappening(0.0, "started", number, (node,), (devices[name],)))
    return figures_of(ordered, history), violations(ordered, history) + left_out(ordered, history)


def _devices(
    trace: Trace, jobs: tuple[Job, ...], places: Mapping[str, tuple[str, tuple[str, ...]]]
) -> dict[str, tuple[int, ...]]:
    """Return a number for each GPU of its node that a pod holds: shared ones by their group, then the whole ones."""
    shared: dict[str, dict[str, int]] = defaultdict(dict)
    for node, groups in places.values():
        for group in groups:
            shared[node].setdefault(group, len(shared[node]))
    free = {machine.name: iter(range(len(shared[machine.name]), sys.maxsize)) for machine in trace.machines}
    found = {}
    for job in jobs:
        if job.name in places:
            node, groups = places[job.name]
            taken = range(job.ask.gpus if job.ask.milli == WHOLE else 0)
            found[job.name] = tuple(shared[node][group] for group in groups) or tuple(next(free[node]) for _ in taken)
    return found


def sharing() -> JSON:
    """Return Volcano's plugin for parts of GPUs, told to pack."""
    arguments = {"VGPUEnable": True, "SchedulePolicy": "binpack", "ScheduleWeight": 10}
    return {"name": "deviceshare", "arguments": {f"deviceshare.{name}": value for name, value in arguments.items()}}


def offers(plane: ControlPlane) -> Iterator[Offer]:
    """Yield KAI without its binder, Volcano, and ours."""
    of = {family.peer.name: family for family in FAMILIES}
    family, volcano = of[KAI.name], of[VOLCANO.name]
    without_binder = replace(KAI, programs=tuple(each for each in KAI.programs if each.name == "scheduler"))
    yield Offer(family, replace(family, peer=without_binder).contenders(plane)[0], requests=True)
    yield Offer(volcano, with_plugin(volcano, sharing()).contenders(plane)[0])
    yield Offer(family, replace(family, configuration={"deviceReservation": True}).contenders(plane)[1])


async def run(options: argparse.Namespace) -> bool:
    """Offer every seed's pods to all, and print the table; returns whether everything was right."""
    compile_ours()
    path = next(options.directory.glob(f"openb_pods_{options.list}.csv*"))
    found: dict[str, list[Figures]] = {}
    faults: list[str] = []
    for seed in range(options.seed, options.seed + options.seeds):
        for name, (figures, wrong) in (await _run(read_openb(path, None, seed), options)).items():
            found.setdefault(name, []).append(figures)
            faults += [f"{name}, seed {seed}: {each}" for each in wrong]
    table = Table("openb-peers", "", ["scheduler", "GPU allocation %", "fragmentation %", "pods left out"])
    for name, runs in found.items():
        left = spread([each.jobs - each.started for each in runs])
        table.add(name, spread([each.allocated for each in runs]), spread([each.fragmentation for each in runs]), left)
    print(f"\n{table}")
    print("\n".join(faults[:20]))
    return not faults


async def _run(trace: Trace, options: argparse.Namespace) -> dict[str, tuple[Figures, list[str]]]:
    nodes = [a_node(machine) for machine in trace.machines]
    found = {}
    async with a_bench(len(nodes), node=nodes.__getitem__) as bench:
        for offer in offers(bench.plane):
            if options.only not in offer.contender.name:
                continue
            await offer.family.prepare(bench.client)
            if offer.family.resource is kai.POD_GROUP:
                await bench.client.apply(kai.QUEUE, all_promised(KAI_PARENT_QUEUE))
            figures, wrong = await Experiment(bench, trace).make(offer, quiet=options.quiet)
            progress(f"{offer.contender.name}: {figures.allocated:.2f} %, {wrong[:3] or 'right'}")
            found[offer.contender.name] = figures, wrong
    return found


def main() -> None:
    """Read the options and run; the exit code says whether everything was right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--list", default="default", help="of the pod lists")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--seed", type=int, default=42, help="the first")
    parser.add_argument("--only", default="", help="contenders whose name has this in it")
    parser.add_argument("--quiet", type=float, default=120.0, help="seconds without a placement after which it is over")
    options = parser.parse_args()
    log_to_stderr()
    sys.exit(0 if asyncio.run(run(options)) else 1)


if __name__ == "__main__":
    main()
