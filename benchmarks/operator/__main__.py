"""How fast a large PodCliqueSet comes up on a real kube-apiserver, as a ratio to a client that makes the fewest writes.

Run with ``python -m benchmarks.operator``. ``scale-test-1000`` is applied, and an onlooker's watch says when all pods
exist and when all gates are gone. Before and after, in the same run and on the same API server, a bare client makes
PodCliques, gangs, pods and gate patches as fast as it can, and once also the other writes that the contract promises.
Then five times as many, for linearity; then a thousand small sets, and what the operator does when nothing happens.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.load.cluster import for_each
from benchmarks.load.processes import SPINNEY, cpu_seconds
from benchmarks.operator.observing import Onlooker, writes_so_far
from benchmarks.operator.shape import NAMESPACE, SIZE, a_set
from spinney.api.core import NAMESPACE as NAMESPACES
from spinney.api.core import POD, SERVICE_ACCOUNT
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.reconciling import COMING_UP_SECONDS_AT_MOST
from spinney.operator.caches import MANAGED
from spinney.operator.owned.auxiliary import KINDS
from spinney.runtime import Runtime
from spinney.testing.controlplane import BinariesMissing, ControlPlane

T = TypeVar("T")

GOAL, LIMIT = 1.3, 2.0
IDLE_LIMIT = 0.01
CONFIGURATION = """
logLevel: error
server: {healthProbes: {enable: false}, metrics: {port: 0}}
scheduler: {profiles: [{name: default-scheduler, default: true}]}
"""


@dataclass(frozen=True)
class Run:
    """One workload brought up: seconds to created and to released, processor seconds, writes by resource.

    ``server_cpu`` is what API server and etcd used meanwhile.
    """

    created: float
    released: float
    cpu: float
    server_cpu: float
    writes: Counter[str]

    @property
    def work(self) -> float:
        """Return the processor time of everybody together."""
        return self.cpu + self.server_cpu


@dataclass(frozen=True)
class Bench:
    """A control plane, an administrator's client and an onlooker."""

    plane: ControlPlane
    client: Client
    onlooker: Onlooker
    configuration: Path

    async def bare(self, replicas: int, *options: str) -> Run:
        """Let the bare client write a workload of this size."""
        before = await writes_so_far(self.client)
        command = ("-m", "benchmarks.operator.bare", str(self.plane.kubeconfig), str(replicas), *options)
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        await process.stdout.readline()  # the clock starts with its first write, not with its interpreter
        served = self.server_cpu()
        created, released = await self._unless_it_ends(process, self.onlooker.times(SIZE * replicas))
        served = self.server_cpu() - served
        used = float(await process.stdout.readline())
        await process.wait()
        writes = await writes_so_far(self.client) - before
        await self.clear()
        return Run(created, released, used, served, writes)

    async def _unless_it_ends(self, process: asyncio.subprocess.Process, waiting: Coroutine[None, None, T]) -> T:
        """Wait for something that a process does; if it fails instead, there is nothing to wait for."""
        waited, ended = asyncio.create_task(waiting), asyncio.create_task(process.wait())
        await asyncio.wait({waited, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not waited.done() and ended.result() != 0:
            waited.cancel()
            raise RuntimeError(f"the bare client ended with {ended.result()}")
        ended.cancel()
        return await waited

    def server_cpu(self) -> float:
        """Return the processor time that the programs of the control plane have used."""
        return sum(map(cpu_seconds, self.plane.pids))

    async def operator(self, replicas: int) -> Run:
        """Let the operator bring up a workload of this size."""
        with self.running() as process:
            await self.idle(process)
            before, used, served = await writes_so_far(self.client), _cpu(process.pid), self.server_cpu()
            await self.client.create(POD_CLIQUE_SET, a_set("scale-test", replicas))
            created, released = await self.onlooker.times(SIZE * replicas)
            used, served = _cpu(process.pid) - used, self.server_cpu() - served
            await asyncio.sleep(COMING_UP_SECONDS_AT_MOST)  # statuses that were held back are writes, too
            await self.idle(process)
            writes = await writes_so_far(self.client) - before
        await self.clear()
        return Run(created, released, used, served, writes)

    async def resting(self, sets: int, seconds: float) -> tuple[float, Counter[str]]:
        """Return the part of a core that an operator with so many workloads and nothing to do uses, and its writes."""
        with self.running() as process:
            names = [f"small-{n}" for n in range(sets)]
            await for_each(names, lambda name: self.client.create(POD_CLIQUE_SET, a_set(name, 1, size=1)))
            await self.onlooker.times(sets)
            await self.idle(process)
            before, used = await writes_so_far(self.client), _cpu(process.pid)
            await asyncio.sleep(seconds)
            share = (_cpu(process.pid) - used) / seconds
            writes = await writes_so_far(self.client) - before
        await self.clear()
        return share, writes

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the operator for the time of the block."""
        files = ["--config", str(self.configuration), "--kubeconfig", str(self.plane.kubeconfig)]
        with (self.plane.directory / "operator.log").open("ab") as log:
            process = subprocess.Popen([*SPINNEY, "operator", *files], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    async def idle(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a process that has started has used next to nothing for two seconds."""
        used = -1.0
        while (now := _cpu(process.pid)) - used > 0.05 or now < 0.2:
            if process.poll() is not None:
                raise RuntimeError(f"the operator ended: {self.plane.log('operator')[-2000:]}")
            used = now
            await asyncio.sleep(2)

    async def clear(self) -> None:
        """Remove everything; nobody collects garbage here."""
        for resource in (POD_CLIQUE_SET, POD_CLIQUE, POD_GANG):
            await self.client.delete_collection(resource, NAMESPACE)
        for resource in KINDS:
            await self.client.delete_collection(resource, NAMESPACE, label_selector=MANAGED)
        await self.client.delete_collection(POD, NAMESPACE, grace_period_seconds=0)
        await self.onlooker.until_gone()


def _cpu(pid: int) -> float:
    """Return what a process has used; what one that has ended used is not known any more."""
    try:
        return cpu_seconds(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


@asynccontextmanager
async def a_bench(*, controller_manager: bool = False, crds: list[JSON] | None = None) -> AsyncIterator[Bench]:
    """Run a control plane, as a rule without controllers, for the time of the block; ``crds`` instead of ours."""
    runtime = Runtime.system()
    with ControlPlane(controller_manager=controller_manager) as plane:
        client = plane.connect(runtime)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await client.apply(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": NAMESPACE}})
        await install_crds(client, crds)
        configuration = plane.directory / "operator.yaml"
        configuration.write_text(CONFIGURATION)
        onlooker = Onlooker(client)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(onlooker.follow())
            yield Bench(plane, client, onlooker, configuration)
            following.cancel()
        await client.close()
    runtime.executor.close()


async def measure(replicas: int, factor: int, sets: int, seconds: float) -> bool:
    """Print what is measured; returns whether it is within the limits."""
    pods = SIZE * replicas
    async with a_bench() as bench:
        print(f"{pods} pods            created   gates gone   CPU ms/pod   server's   writes/pod")
        first = shown("bare client", await bench.bare(replicas), pods)
        ours = shown("operator", await bench.operator(replicas), pods)
        promised = shown("all promised", await bench.bare(replicas, "--promised"), pods)
        second = shown("bare client", await bench.bare(replicas), pods)
        ratio = ours.released / ((first.released + second.released) / 2)
        least = ours.released / promised.released
        print(f"ratio to the bare client: {ratio:.2f} (limit {LIMIT}, goal {GOAL}); to all promised: {least:.2f}")
        work, least = ours.work / ((first.work + second.work) / 2), ours.work / promised.work
        print(f"ratios of processor time, servers included: {work:.2f}, {least:.2f} (a busy machine moves these less)")
        print("operator's writes:", ", ".join(f"{name} {count}" for name, count in ours.writes.most_common()))
        good = ratio <= LIMIT
        if factor > 1:
            large = await bench.operator(factor * replicas)
            growth = large.released / ours.released / factor
            cpu = large.cpu / ours.cpu / factor
            print(
                f"{factor * pods} pods: gates gone after {large.released:.2f} s, linear x {growth:.2f}, CPU x {cpu:.2f}"
            )
        if sets:
            share, writes = await bench.resting(sets, seconds)
            written = sum(writes.values())
            print(f"idle with {sets} workloads for {seconds:.0f} s: {100 * share:.2f} % of a core, {written} writes")
            good = good and not written and share < IDLE_LIMIT
    return good


def shown(name: str, run: Run, pods: int) -> Run:
    """Print a row of the table."""
    per_pod, cpu, served = sum(run.writes.values()) / pods, 1000 * run.cpu / pods, 1000 * run.server_cpu / pods
    print(
        f"  {name:12} {run.created:12.2f} s {run.released:10.2f} s {cpu:12.2f} {served:10.2f} {per_pod:12.2f}",
        flush=True,
    )
    return run


def main() -> None:
    """Run from the command line; the exit code says whether the limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=500, help="of scale-test-1000; two pods each")
    parser.add_argument("--factor", type=int, default=5, help="how much larger the second workload is; 1 for none")
    parser.add_argument("--sets", type=int, default=1000, help="workloads of the idle operator; 0 for none")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long it is watched")
    arguments = parser.parse_args()
    started = time.perf_counter()
    try:
        good = asyncio.run(measure(arguments.replicas, arguments.factor, arguments.sets, arguments.seconds))
    except BinariesMissing as error:
        print(f"SKIPPED: this benchmark runs on a real control plane. {error}")
        return
    print(f"took {time.perf_counter() - started:.0f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
