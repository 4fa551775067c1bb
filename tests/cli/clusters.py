"""A cluster that serves HTTP while commands run in the test's own thread, as they do in a terminal.

Commands install signal handlers and run an event loop of their own, so the cluster lives in another thread.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from click.testing import CliRunner, Result

from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cli import main
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.server import HttpServer, ServerOptions
from spinney.server.options import AuthorizationMode
from spinney.sim.embedded.shapes import gpu_cluster, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions

T = TypeVar("T")


@dataclass(frozen=True)
class ServedCluster:
    """Where the cluster is, and a way to do something in it and wait for that."""

    kubeconfig: Path
    client: Client
    _loop: asyncio.AbstractEventLoop

    def call(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run ``work`` in the cluster's thread and return its result."""

        async def run() -> T:
            return await work(self.client)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=60)

    def spinney(self, *arguments: str, input: str | None = None) -> Result:  # noqa: A002 - click's name
        """Run a command against this cluster."""
        return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(self.kubeconfig)], input=input)


@contextmanager
def served_cluster(
    directory: Path,
    *,
    nodes: int = 4,
    gpus: int = 8,
    rack: int = 2,
    block: int = 4,
    workloads: bool = False,
    authorization: AuthorizationMode = "AlwaysAllow",
) -> Iterator[ServedCluster]:
    """Run an embedded cluster with everything in it for the time of the block."""
    up: Future[ServedCluster] = Future()
    stopping: Future[asyncio.Event] = Future()

    async def serve() -> None:
        runtime = Runtime.system()
        stop = asyncio.Event()
        options = StackOptions(nodes=gpu_cluster(nodes, gpus, rack=rack, block=block), workloads=workloads)
        cluster = EmbeddedCluster(runtime, options, server=ServerOptions(authorization=authorization))
        try:
            async with HttpServer(cluster.server) as http, cluster.running():
                await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
                kubeconfig = directory / "kubeconfig"
                http.write_kubeconfig(kubeconfig)
                stopping.set_result(stop)
                up.set_result(ServedCluster(kubeconfig, cluster.client, asyncio.get_running_loop()))
                await stop.wait()
        finally:
            runtime.executor.close()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not up.done():
                up.set_exception(error)
            raise

    thread = threading.Thread(target=run, name="cluster")
    thread.start()
    try:
        served = up.result(timeout=60)
        yield served
        served._loop.call_soon_threadsafe(stopping.result().set)
    finally:
        thread.join(timeout=60)
