"""Measures what a fleet of simulated nodes costs: memory and processor at rest, and bringing pods up.

Fleet and embedded API server run in one process, as they do in an embedded cluster, and the time inside the server is
taken separately; what remains is the fleet's own. In a process of its own the fleet would be charged for HTTP, of which
the figure would then mostly speak. Processor time is measured, not the clock, so that a busy machine changes little.
The heartbeats are real: one lease renewal per node every ten seconds.

usage: python -m benchmarks.nodes [--nodes 10000] [--pods 5000] [--seconds 30]
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable

import structlog

from benchmarks.load.processes import resident_memory
from spinney.api.core import POD
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.nodes import ClusterSpec, Fleet
from spinney.runtime import Runtime
from spinney.server import ApiServer, Request, Response
from spinney.sim.embedded.transport import InProcessTransport

MEBIBYTES_ALLOWED = 500.0
CORE_ALLOWED = 0.10

GROUP: JSON = {
    "name": "n{index:05d}",
    "capacity": {"cpu": 64, "memory": "512Gi", "pods": 110, "nvidia.com/gpu": 8},
    "topology": [
        {"label": "topology.kubernetes.io/zone", "size": 1024},
        {"label": "topology.kubernetes.io/block", "size": 128},
        {"label": "topology.kubernetes.io/rack", "size": 16},
    ],
}


class MeteredServer(ApiServer):
    """An API server that knows how much processor time it has used, in seconds, and for how many requests."""

    seconds = 0.0
    requests = 0

    async def handle(self, request: Request) -> Response:
        """Serve a request; nothing in it waits here, so the thread's time is the request's."""
        started = time.thread_time()
        try:
            return await super().handle(request)
        finally:
            self.seconds += time.thread_time() - started
            self.requests += 1


async def at_rest(server: MeteredServer, seconds: float) -> tuple[float, float, float]:
    """Return the shares of a core that fleet and server use while nothing happens, and requests per second."""
    began, used, served, requests = time.perf_counter(), time.process_time(), server.seconds, server.requests
    await asyncio.sleep(seconds)
    wall = time.perf_counter() - began
    of_server = (server.seconds - served) / wall
    return (time.process_time() - used) / wall - of_server, of_server, (server.requests - requests) / wall


async def pods_up(client: Client, fleet: Fleet, server: MeteredServer, pods: int) -> tuple[float, float]:
    """Bring pods up, from created to ready, and return the processor seconds of all but the server, and of it."""
    used, served = time.process_time(), server.seconds
    ready: set[str] = set()
    start = (await client.list(POD, "default")).resource_version

    async def watch() -> None:
        async for event in client.watch(POD, "default", resource_version=start):
            if any(
                c["type"] == "Ready" and c["status"] == "True" for c in event.object["status"].get("conditions", [])
            ):
                ready.add(event.object["metadata"]["name"])
                if len(ready) == pods:
                    return

    watching = asyncio.create_task(watch())
    names = fleet.names
    for number in range(pods):
        spec = {"nodeName": names[number % len(names)], "containers": [{"name": "main", "image": "pause"}]}
        await client.create(POD, {"metadata": {"name": f"p{number}"}, "spec": spec}, "default")
    await watching
    of_server = server.seconds - served
    return time.process_time() - used - of_server, of_server


async def measure(nodes: int, pods: int, seconds: float, say: Callable[[str], None]) -> bool:
    """Measure, say what was found, and return whether it is within what is allowed."""
    runtime = Runtime.system()
    server = MeteredServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    before = resident_memory(os.getpid())
    began = time.perf_counter()
    async with Fleet(
        client, ClusterSpec.from_document({"nodes": [GROUP | {"count": nodes}]}), runtime=runtime
    ).running() as fleet:
        say(f"{nodes} nodes registered in {time.perf_counter() - began:.1f} s")
        own, of_server, rate = await at_rest(server, seconds)
        memory = resident_memory(os.getpid()) - before
        say(
            f"at rest: nodes {own:.1%} of a core, API server {of_server:.1%}, {rate:.0f} requests/s; "
            f"nodes and their objects {memory:.0f} MiB"
        )
        processor, room = own / CORE_ALLOWED, memory / MEBIBYTES_ALLOWED
        say(f"of what is allowed: processor {processor:.2f}, memory {room:.2f} (1.00 is the limit)")
        rest, of_server = await pods_up(client, fleet, server, pods)
        say(
            f"from created to ready: {rest / pods * 1e3:.2f} ms per pod for nodes and clients, "
            f"{of_server / pods * 1e3:.2f} ms for the API server, ratio {rest / of_server:.2f}"
        )
    runtime.executor.close()
    return own <= CORE_ALLOWED and memory <= MEBIBYTES_ALLOWED


def main() -> int:
    """Run the benchmark; exit code 1 is over the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description="What simulated nodes cost.")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    return 0 if asyncio.run(measure(options.nodes, options.pods, options.seconds, print)) else 1


if __name__ == "__main__":
    sys.exit(main())
