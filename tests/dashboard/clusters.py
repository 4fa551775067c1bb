"""An embedded cluster with its dashboard, and what a page would ask of it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from spinney.api.kai import QUEUE
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cli.demo.workloads import queues
from spinney.dashboard.local import dashboard_of
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    id: str
    kind: str
    data: Any


@dataclass(frozen=True)
class Page:
    """What a page does: it reads the state and follows events."""

    url: str
    client: Client
    """The cluster behind it."""
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> Any:
        async with self.session.get(self.url + path, headers=headers) as answer:
            body = await answer.text()
            assert answer.status == 200, body
            return json.loads(body)

    async def status(self, path: str, **headers: str) -> tuple[int, str]:
        """Return the status of a request, and what was wrong with it."""
        async with self.session.get(self.url + path, headers=headers) as answer:
            return answer.status, (await answer.json())["error"]

    @asynccontextmanager
    async def events(self, last: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow what happens after the event ``last``."""
        sent = {"last-event-id": last, **(headers or {})}
        async with self.session.get(self.url + "api/events", headers=sent) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            yield _events(answer)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    told: dict[str, str] = {}
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, text = line.partition(": ")
            told[name] = text
        elif "data" in told:
            yield Event(told.get("id", ""), told["event"], json.loads(told["data"]))
            told = {}


@asynccontextmanager
async def a_page(*, nodes: int = 8) -> AsyncIterator[Page]:
    """Run a cluster of racks of two nodes and blocks of four, with the demo's queues, and its dashboard."""
    runtime = Runtime.system()
    try:
        cluster = EmbeddedCluster(runtime, StackOptions(nodes=gpu_cluster(nodes, 8, rack=2, block=4)))
        async with cluster.running():
            await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
            for queue in queues():
                await cluster.client.apply(QUEUE, queue)
            async with dashboard_of(cluster) as url, aiohttp.ClientSession() as session:
                yield Page(url, cluster.client, session)
    finally:
        runtime.executor.close()
