"""A control plane with nodes, which nobody else uses, and what its servers use beside that."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.load.cluster import a_node, prepare
from benchmarks.load.contenders import OUR_USER
from benchmarks.load.processes import cpu_seconds
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.runtime import Runtime
from spinney.testing.controlplane import ControlPlane

_CLEARING = 600.0
"""Seconds that a request may take: thousands of pods are taken away again in one."""
_REST = 5.0
"""Seconds over which API server and etcd are watched at rest."""

Seen = dict[str, tuple[float, str]]
"""When each pod was seen to be bound, by the system-wide monotonic clock, and where."""


@dataclass(frozen=True)
class Bench:
    """A control plane with nodes, and what is known about it."""

    plane: ControlPlane
    client: Client
    kubeconfig: Path
    at_rest: float  # processor seconds per second

    def server_cpu(self) -> float:
        """Return the processor time that API server and etcd have used."""
        return sum(map(cpu_seconds, self.plane.pids))

    def served_since(self, before: float, seconds: float) -> float:
        """Return what they have used since they had used ``before``, less what they use at rest in so many seconds."""
        return self.server_cpu() - before - self.at_rest * seconds

    def watching(self, pods: int, *, limit: float, name: str) -> Callable[[], Awaitable[Seen]]:
        """Have another process watch binds; what is returned waits until so many were seen, or the limit is reached."""
        command = [sys.executable, "-m", "benchmarks.load.bindings", str(self.plane.kubeconfig), str(pods)]
        command += ["--limit", str(limit), "--name", name]
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        output = watcher.stdout
        assert output is not None
        assert output.readline() == "ready\n"

        async def seen() -> Seen:
            said = await asyncio.to_thread(output.read)
            watcher.wait()
            found: Seen = json.loads(said.splitlines()[-1])
            return found

        return seen


@asynccontextmanager
async def a_bench(
    nodes: int,
    *,
    node: Callable[[int], JSON] = a_node,
    furnish: Callable[[Client], Awaitable[None]] | None = None,
    logs: Path | None = None,
) -> AsyncIterator[Bench]:
    """Run a control plane with nodes, at rest, for the time of the block; copy the logs of its programs to ``logs``.

    ``furnish`` creates what else is to be there before anything is measured.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that everything is stopped
    runtime = Runtime.system()
    async with ControlPlane(controller_manager=False) as plane:
        client = Client(load_kubeconfig(plane.kubeconfig, runtime=runtime), runtime, timeout=_CLEARING)
        try:
            await prepare(client, nodes=nodes, administrator=OUR_USER, node=node)
            if furnish is not None:
                await furnish(client)
            bench = Bench(plane, client, plane.kubeconfig_for(OUR_USER), at_rest=0.0)
            before = bench.server_cpu()
            await asyncio.sleep(_REST)
            yield replace(bench, at_rest=bench.served_since(before, _REST) / _REST)
            if logs is not None:
                for log in plane.directory.glob("*.log"):
                    (logs / log.name).write_bytes(log.read_bytes())
        finally:
            await client.close()
            runtime.executor.close()
