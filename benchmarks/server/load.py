"""The requests that are measured: pods from creation to status, lists, and watches that follow.

A fixed number of connections send requests as fast as they are answered. All contenders get the same requests, with
strict validation of fields.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from benchmarks.server.contenders import Contender

_NAMESPACE = "bench"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
_APPLY = {"content-type": "application/apply-patch+yaml"}


@dataclass(frozen=True)
class Measured:
    """What one kind of request cost a server."""

    what: str
    count: int
    seconds: float
    busy: float  # CPU seconds of the server's processes

    @property
    def rate(self) -> float:
        """Requests, or delivered events, per second."""
        return self.count / self.seconds

    @property
    def cost(self) -> float:
        """CPU milliseconds of the server for each."""
        return 1000 * self.busy / self.count


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is asked for."""

    pods: int
    connections: int
    lists: int
    watchers: int


def a_pod(index: int) -> bytes:
    """Return the manifest of a pod as a gang has it."""
    resources = {"requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    env = [{"name": f"RANK_{number}", "value": str(index)} for number in range(8)]
    container = {"name": "main", "image": "registry.example/train:1", "resources": resources, "env": env}
    labels = {"app": "train", "gang": f"g{index // 8}", "grove.io/podclique": "workers"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{index}", "labels": labels},
            "spec": {"containers": [container]},
        }
    ).encode()


class Load:
    """One client of one contender; mutable."""

    def __init__(self, contender: Contender, session: aiohttp.ClientSession, size: Size) -> None:
        self._contender = contender
        self._session = session
        self._size = size

    async def run(self) -> list[Measured]:
        """Do everything once, in order."""
        pods, lists = self._size.pods, self._size.lists
        await self._send("POST", "/api/v1/namespaces", _json({"metadata": {"name": _NAMESPACE}}))
        account = _json({"metadata": {"name": "default"}})
        await self._send("POST", f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts", account, allowed=(201, 409))
        return [
            await self._measure("create a pod", pods, self._create),
            await self._measure("bind it", pods, self._bind),
            await self._measure("patch its status", pods, self._patch),
            await self._measure("apply a condition", pods, self._apply),
            await self._measure("get it", pods, self._get),
            await self._measure(f"list {pods} pods", lists, lambda _: self._send("GET", _PODS)),
            await self._measure("list 8 by label", lists * 10, self._list_gang),
            await self._fan_out(),
            await self._measure("delete it", pods, self._delete),
        ]

    async def _measure(self, what: str, count: int, ask: Callable[[int], Awaitable[Any]]) -> Measured:
        numbers = iter(range(count))

        async def connection() -> None:
            for index in numbers:
                await ask(index)

        started, busy = time.perf_counter(), self._contender.busy()
        await asyncio.gather(*(connection() for _ in range(self._size.connections)))
        return Measured(what, count, time.perf_counter() - started, self._contender.busy() - busy)

    async def _fan_out(self) -> Measured:
        """Patch every pod while watchers follow; what counts is an event delivered."""
        watchers, pods = self._size.watchers, self._size.pods
        async with self._session.get(_PODS, params={"limit": "1"}) as answer:
            revision = (await answer.json())["metadata"]["resourceVersion"]
        started, busy = time.perf_counter(), self._contender.busy()
        following = [asyncio.create_task(self._follow(revision, pods)) for _ in range(watchers)]
        patching = self._measure("", pods, self._label)
        await asyncio.gather(patching, *following)
        seconds, busy = time.perf_counter() - started, self._contender.busy() - busy
        return Measured(f"patch, {watchers} watching", watchers * pods, seconds, busy)

    async def _follow(self, revision: str, events: int) -> None:
        params = {"watch": "true", "resourceVersion": revision}
        seen = 0
        async with self._session.get(_PODS, params=params) as answer:
            async for chunk in answer.content.iter_any():
                seen += chunk.count(b"\n")
                if seen >= events:
                    return

    def _create(self, index: int) -> Awaitable[bytes]:
        return self._send("POST", _PODS, a_pod(index), fieldValidation="Strict")

    def _bind(self, index: int) -> Awaitable[bytes]:
        target = {"kind": "Node", "name": f"node-{index % 1000}"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"pod-{index}"}, "target": target}
        return self._send("POST", f"{_PODS}/pod-{index}/binding", _json(body))

    def _patch(self, index: int) -> Awaitable[bytes]:
        body = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        return self._send("PATCH", f"{_PODS}/pod-{index}/status", _json(body), headers=_STRATEGIC)

    def _apply(self, index: int) -> Awaitable[bytes]:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{index}"},
            "status": {"conditions": [{"type": "example.com/Fit", "status": "True"}]},
        }
        path = f"{_PODS}/pod-{index}/status"
        return self._send("PATCH", path, _json(body), headers=_APPLY, fieldManager="bench", force="true")

    def _label(self, index: int) -> Awaitable[bytes]:
        body = _json({"metadata": {"labels": {"seen": "true"}}})
        return self._send("PATCH", f"{_PODS}/pod-{index}", body, headers=_STRATEGIC)

    def _get(self, index: int) -> Awaitable[bytes]:
        return self._send("GET", f"{_PODS}/pod-{index}")

    def _list_gang(self, index: int) -> Awaitable[bytes]:
        return self._send("GET", _PODS, labelSelector=f"gang=g{index % (self._size.pods // 8)}")

    def _delete(self, index: int) -> Awaitable[bytes]:
        return self._send("DELETE", f"{_PODS}/pod-{index}", gracePeriodSeconds="0")

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: dict[str, str] | None = None,
        allowed: tuple[int, ...] = (200, 201),
        **params: str,
    ) -> bytes:
        sent = headers or ({"content-type": "application/json"} if body else None)
        async with self._session.request(method, path, data=body, headers=sent, params=params) as answer:
            content = await answer.read()
            if answer.status not in allowed:
                raise SystemExit(f"{self._contender.name}: {method} {path}: {answer.status} {content[:500]!r}")
            return content


@asynccontextmanager
async def connected(contender: Contender, size: Size) -> AsyncIterator[Load]:
    """Connect to a contender."""
    connector = aiohttp.TCPConnector(ssl=contender.trust, limit=0)
    headers = {"authorization": f"Bearer {contender.token}", "accept": "application/json"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(contender.url, connector=connector, headers=headers, timeout=timeout) as session:
        yield Load(contender, session, size)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
