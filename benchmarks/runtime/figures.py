"""The figures, each measured in a process of its own."""

import asyncio
import gc
import itertools
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.load.processes import peak_memory, resident_memory
from benchmarks.runtime.objects import a_node, a_pod, encoded
from benchmarks.runtime.stub import Collection, Store
from spinney.api.coordination import LEASE
from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.keys import Key
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller
from spinney.kube.lease import LeaderElection, LeaseTimes
from spinney.kube.metrics import KubeMetrics
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.runtime.tasks import end

PODS = 100_000
NODES = 10_000


@dataclass(frozen=True)
class Figure:
    """A measured value, its unit, the target it is held against, and what else is worth knowing."""

    name: str
    value: float
    unit: str
    target: float
    better: str  # "less" or "more"
    note: str = ""

    @property
    def met(self) -> bool:
        """Tell whether the target is met."""
        return self.value <= self.target if self.better == "less" else self.value >= self.target


def memory() -> Figure:
    """Hold 100 000 pods and 10 000 nodes in two caches and report the resident memory of the process."""

    async def main() -> float:
        runtime = Runtime.system()
        settle_garbage_collector()
        chance = random.Random(1)
        pods: Iterator[bytes] = (encoded(a_pod(n, n, chance)) for n in range(PODS))
        nodes: Iterator[bytes] = (encoded(a_node(n, n, chance)) for n in range(NODES))
        caches: list[WatchCache[Any]] = [
            WatchCache(Client(Collection(nodes), runtime), NODE, Node, runtime=runtime),
            WatchCache(
                Client(Collection(pods), runtime),
                POD,
                Pod,
                runtime=runtime,
                indexes={"node": lambda pod: [pod.spec.node_name]},
            ),
        ]
        started = time.process_time()
        tasks = [asyncio.create_task(cache.run()) for cache in caches]
        for cache in caches:
            await cache.wait_for_sync()
        assert [len(cache) for cache in caches] == [NODES, PODS]
        spent = time.process_time() - started
        gc.collect()
        resident = resident_memory(os.getpid())
        for task in tasks:
            task.cancel()
        runtime.executor.close()
        notes.append(
            f"peak {peak_memory(os.getpid()):.0f} MB; filled in {spent:.0f} s of CPU, most of it making the objects"
        )
        return resident

    notes: list[str] = []
    return Figure("pods and nodes held", asyncio.run(main()), "MB", 700, "less", notes[0])


def watch_events() -> Figure:
    """Absorb 60 000 events of 5.9 KB into a cache of 20 000 pods with an index and a subscriber."""
    pods, rounds = 20_000, 3

    async def main() -> tuple[float, float]:
        runtime = Runtime.system()
        settle_garbage_collector()
        chance = random.Random(1)
        listed = (encoded(a_pod(n, 1, chance)) for n in range(pods))
        lines = [
            b'{"type":"MODIFIED","object":%b}\n' % encoded(a_pod(n % pods, n + 2, chance)) for n in range(pods * rounds)
        ]
        chunks = [b"".join(lines[start : start + 16]) for start in range(0, len(lines), 16)]
        cache = WatchCache(
            Client(Collection(listed, chunks), runtime),
            POD,
            Pod,
            runtime=runtime,
            indexes={"node": lambda pod: [pod.spec.node_name]},
        )
        heard = 0
        done = asyncio.Event()

        def subscriber(_: object) -> None:
            nonlocal heard
            heard += 1
            if heard == pods:
                times.extend((time.perf_counter(), time.process_time()))
            if heard == pods * (rounds + 1):
                done.set()

        times: list[float] = []
        cache.subscribe(subscriber)
        running = asyncio.create_task(cache.run())
        await done.wait()
        wall, cpu = time.perf_counter() - times[0], time.process_time() - times[1]
        running.cancel()
        runtime.executor.close()
        return wall, cpu

    wall, cpu = asyncio.run(main())
    note = f"of one core; {pods * rounds / wall:,.0f}/s by the wall clock of this machine"
    return Figure("watch events absorbed", pods * rounds / cpu, "/s", 20_000, "more", note)


def reconciles() -> Figure:
    """Go round the whole loop 10 000 times: event, queue, reconcile that reads the cache, patch, event."""
    things, goal = 1_000, 10

    async def main() -> tuple[float, float, int]:
        runtime = Runtime.system()
        settle_garbage_collector()
        store = Store(
            {
                POD.path("x", f"p{n}"): {
                    "metadata": {"name": f"p{n}", "namespace": "x", "uid": f"u{n}", "resourceVersion": "1"},
                    "status": {"phase": "0"},
                }
                for n in range(things)
            }
        )
        client = Client(store, runtime)
        cache = WatchCache(client, POD, Pod, runtime=runtime)
        metrics = KubeMetrics()
        calls = 0
        done = asyncio.Event()

        async def reconcile(key: Key) -> None:
            nonlocal calls
            calls += 1
            pod = cache.get(key)
            assert pod is not None
            phase = int(pod.status.phase)
            if phase < goal:
                await client.patch(POD, key.name, {"status": {"phase": str(phase + 1)}}, key.namespace)
            elif len(store.written) == things * goal:
                done.set()

        controller = Controller("bench", reconcile, runtime=runtime, metrics=metrics)
        controller.watch(cache)
        started, cpu = time.perf_counter(), time.process_time()
        tasks = [asyncio.create_task(cache.run()), asyncio.create_task(controller.run())]
        await done.wait()
        result = time.perf_counter() - started, time.process_time() - cpu, calls
        await end(*tasks)
        runtime.executor.close()
        return result

    wall, cpu, calls = asyncio.run(main())
    note = f"of one core, each with a write and its event; {calls / wall:,.0f}/s by the wall clock"
    return Figure("reconciles", calls / cpu, "/s", 1_000, "more", note)


def lease() -> Figure:
    """Renew a lease while worker threads burn the processor in pure Python, and report how late renewals are."""
    seconds, period = 20.0, 0.05

    async def main() -> tuple[float, float, int]:
        runtime = Runtime.system()
        settle_garbage_collector()
        path = LEASE.path("x", "op")
        store = Store({path: {"metadata": {"name": "op", "namespace": "x", "uid": "u", "resourceVersion": "1"}}})
        election = LeaderElection(
            Client(store, runtime),
            "op",
            "x",
            identity="bench",
            runtime=runtime,
            times=LeaseTimes(lease_duration=15, renew_deadline=10, retry_period=period),
        )

        async def schedule() -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await runtime.executor.run(_burn, 2.0)

        await election.run(schedule)
        runtime.executor.close()
        late = sorted(later - earlier - period for earlier, later in itertools.pairwise(store.written))
        return late[int(len(late) * 0.99)], late[-1], len(late)

    p99, worst, renewals = asyncio.run(main())
    note = f"p99 of {renewals} renewals beside a cycle of pure Python; worst {worst * 1000:.0f} ms"
    return Figure("lease renewal is late by", p99, "s", 1.0, "less", note)


FIGURES = {"memory": memory, "watch_events": watch_events, "reconciles": reconciles, "lease": lease}


def _burn(seconds: float) -> int:
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        total += sum(n * n for n in range(1_000))
    return total
