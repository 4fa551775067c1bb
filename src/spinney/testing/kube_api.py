"""A Kubernetes API of its own for each test: an embedded server on a port, with a kubeconfig and a client.

The server runs on an event loop in a thread of its own. Whatever is tested may therefore block, bring a loop of its own
or be another process; it needs nothing but the kubeconfig.
"""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.nodes import ClusterSpec
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, ServerOptions
from spinney.sim.embedded.shapes import gpu_cluster, parse_shape
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.blocking_client import BlockingClient


class KubeApi:
    """One embedded API server from :meth:`start` to :meth:`stop`; usable as a context manager. Mutable.

    ``nodes`` (a number, ``"4x8"`` for four nodes of eight GPUs, or a :class:`~spinney.nodes.ClusterSpec`) brings
    simulated nodes, a scheduler for ``default-scheduler`` and the controllers of Deployments, StatefulSets and Jobs:
    what is applied then runs, without any container. Without nodes there is the API alone.
    """

    url: str
    token: str
    kubeconfig: Path
    client: BlockingClient

    def __init__(self, *, nodes: int | str | ClusterSpec = 0, options: ServerOptions | None = None) -> None:
        self._nodes = _described(nodes)
        self._options = options or ServerOptions()
        self._started: Future[asyncio.Event] = Future()
        self._failure: BaseException | None = None  # what ended it although nobody had asked
        self._thread = threading.Thread(target=self._run, name="kube-api", daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process with ``KUBECONFIG``, for a controller that is started as a process."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def start(self) -> None:
        """Return when the API answers, and its nodes are ready."""
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """Stop everything; nothing of the cluster is left. Raises what has ended it before."""
        stopping = self._started.result()
        with suppress(RuntimeError):  # its loop is closed: it has ended before
            self._loop.call_soon_threadsafe(stopping.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the test
            if self._started.done():
                self._failure = error
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        runtime = Runtime.system()
        async with AsyncExitStack() as parts:
            parts.callback(runtime.executor.close)
            directory = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="kube-api-")))
            server = ApiServer(runtime, self._options)
            parts.callback(server.close)
            await parts.enter_async_context(server.running())
            http = await parts.enter_async_context(HttpServer(server))
            self._introduce(server, http, directory / "kubeconfig")
            if self._nodes is not None:
                await parts.enter_async_context(_simulated(server, runtime, self._nodes))
            self._started.set_result(stopping)
            await stopping.wait()

    def _introduce(self, server: ApiServer, http: HttpServer, kubeconfig: Path) -> None:
        """Say how the server is reached."""

        def find(api_version: str, kind: str) -> Resource | None:
            found = server.context.registry.find_kind(api_version, kind)
            return found.resource if found is not None else None

        self.url, self.token, self.kubeconfig = http.url, http.token, kubeconfig
        http.write_kubeconfig(kubeconfig)
        self.client = BlockingClient(_connect(server, server.runtime, "test"), find, self._loop)


def _described(nodes: int | str | ClusterSpec) -> ClusterSpec | None:
    if isinstance(nodes, ClusterSpec):
        return nodes
    if not nodes:
        return None
    return gpu_cluster(*parse_shape(nodes if isinstance(nodes, str) else f"{nodes}x0"))


def _connect(server: ApiServer, runtime: Runtime, field_manager: str) -> Client:
    return Client(InProcessTransport(server), runtime, field_manager=field_manager)


@asynccontextmanager
async def _simulated(server: ApiServer, runtime: Runtime, nodes: ClusterSpec) -> AsyncIterator[None]:
    """Run nodes and what makes pods of workloads and places them; imported where a test asks for nodes."""
    from spinney.coscheduling.process.configuration import CoschedulerConfiguration  # noqa: PLC0415
    from spinney.coscheduling.process.process import CoschedulerProcess  # noqa: PLC0415
    from spinney.nodes import Fleet  # noqa: PLC0415
    from spinney.sim.embedded.parts import running  # noqa: PLC0415
    from spinney.workloads import WorkloadControllers  # noqa: PLC0415

    fleet = Fleet(_connect(server, runtime, "kubelet"), nodes, runtime=runtime)
    configuration = CoschedulerConfiguration.in_place_of_kube_scheduler()
    scheduler = CoschedulerProcess(_connect(server, runtime, "kube-scheduler"), configuration)
    workloads = WorkloadControllers(_connect(server, runtime, "kube-controller-manager"))
    async with fleet.running(), running(scheduler), running(workloads):
        yield
