"""A scheduler process on an embedded server of its own, with a transport that can be made to fail."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeVar

from spinney.api.core import NAMESPACE, NODE, POD, Pod
from spinney.api.struct import JSON
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.client import Client
from spinney.kube.transport import Request, Response, StreamingResponse, Transport
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.process import CyclePace, SchedulerProcess
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.virtual_time import opening

USUAL_PACE = CyclePace()
NS = "work"

Fault = Callable[[str, str], "Response | Exception | None"]
"""What to answer a request with, or to raise, instead of passing it on; None passes it on."""


class FaultyTransport:
    """Passes requests on unless ``fault`` has something else in store; fills the ``Transport`` protocol."""

    def __init__(self, behind: Transport) -> None:
        self._behind = behind
        self.fault: Fault = lambda method, path: None
        self.writes: list[tuple[str, str]] = []

    async def request(self, request: Request) -> Response:
        """Answer with the fault, or pass the request on."""
        if request.method != "GET":
            self.writes.append((request.method, request.path))
        answer = self.fault(request.method, request.path)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        return await self._behind.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        return self._behind.stream(request)

    async def close(self) -> None:
        await self._behind.close()


def status(code: int, reason: str) -> Response:
    """Return a refusal as an API server writes it."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode())


class Stoppable(Protocol):
    """A process that runs until it is told to stop."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...


P = TypeVar("P", bound=Stoppable)


@asynccontextmanager
async def running(process: P) -> AsyncIterator[P]:
    """Run a process for the time of the block; then it is told to stop and comes to its end."""
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stop()
        await task


class World:
    """One embedded server. ``transport`` is what schedulers reach it by, ``client`` what the test does."""

    def __init__(self, server: ApiServer, runtime: Runtime) -> None:
        self.runtime = runtime
        self.server = server
        self.client = Client(InProcessTransport(server), runtime)
        self.transport = FaultyTransport(InProcessTransport(server))
        self.metrics = CycleMetrics()

    @asynccontextmanager
    async def scheduler(self, pace: CyclePace = USUAL_PACE, **settings: Any) -> AsyncIterator[SchedulerProcess]:
        """Run a scheduler process for the time of the block; gangs that broke later are not its business here."""
        client = Client(self.transport, self.runtime, field_manager="spinney-scheduler")
        config = SchedulerConfig(**{"default_staleness_grace_seconds": -1, **settings})
        self.metrics = CycleMetrics()
        async with running(SchedulerProcess(client, config, metrics=self.metrics, pace=pace)) as process:
            yield process

    def exported(self, metric: str, **labels: str) -> float | None:
        """Return a value that the last scheduler exports; None where there is no such series."""
        return self.metrics.registry.get_sample_value(metric, labels)

    async def settle(self, seconds: float = 1.0) -> None:
        """Let virtual time pass."""
        await self.runtime.clock.sleep(seconds)

    async def add_node(self, name: str, *, gpus: int = 8) -> None:
        """Create a ready node."""
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        ready = {"type": "Ready", "status": "True"}
        manifest = {
            "metadata": {"name": name},
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
        }
        await self.client.create(NODE, manifest)

    async def add_group(self, name: str, minimum: int) -> None:
        """Create a native gang without pods."""
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        await self.client.create(POD_GROUP, {"metadata": {"name": name, "namespace": NS}, "spec": spec})

    async def add_pod(self, name: str, *, gang: str = "", gpus: int = 1, **more: Any) -> Pod:
        """Create a pod, alone or in a gang."""
        resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
        spec: JSON = {
            "schedulerName": "spinney-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "pause", "resources": resources}],
            **more,
        }
        if gang:
            spec["schedulingGroup"] = {"podGroupName": gang}
        return await self.client.create(POD, {"metadata": {"name": name, "namespace": NS}, "spec": spec}, type=Pod)

    async def add_gang(self, name: str, size: int, *, gpus: int = 1) -> None:
        """Create a native gang and its pods."""
        await self.add_group(name, size)
        for number in range(size):
            await self.add_pod(f"{name}-{number}", gang=name, gpus=gpus)

    async def places(self) -> dict[str, str]:
        """Return the node of each pod, empty where it has none."""
        pods = (await self.client.list(POD, NS, type=Pod)).items
        return {pod.metadata.name: pod.spec.node_name for pod in pods}


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    """Run a fresh embedded server with one namespace."""
    runtime = Runtime.virtual(seed=5)
    server = ApiServer(runtime)
    async with server.running():
        world = World(server, runtime)
        await world.client.create(NAMESPACE, {"metadata": {"name": NS}})
        yield world


given_a_world = opening(a_world)
"""Run a test in a world of its own, on virtual time."""
