"""A model API server in process, which misbehaves on demand.

It keeps every version it ever stored, so that a test can compare what a cache reported with what really happened.
Faults are queued by the test and taken one per watch (or list), in order.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.errors import ConnectionFailed, ConnectionRefused
from spinney.kube.keys import Key
from spinney.kube.transport import Request, Response
from spinney.runtime import Runtime

THING = Resource("test.spinney.dev", "v1", "Thing", "things")


@dataclass(frozen=True)
class WatchFault:
    """How one watch goes wrong, after it has sent some events."""

    kind: str  # close, drop, cut, expire, garbage, hang, bookmarks, replay
    after: int = 0


@dataclass(frozen=True)
class Version:
    """One entry of the history."""

    revision: int
    path: str
    type: str
    obj: JSON


class ModelServer:
    """Fills the ``Transport`` protocol with a small but faithful API server."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.revision = 100
        self.compacted = 0
        self.objects: dict[str, JSON] = {}
        self.history: list[Version] = []
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []
        self.watch_faults: deque[WatchFault] = deque()
        self.list_faults: deque[str] = deque()  # refuse, expire-mid-list
        self.fail_next: deque[Response | Exception] = deque()
        self.down = False
        self.latency = 0.0
        self.lag = 0.0  # seconds a watch is behind
        self.listed: list[int] = []  # the revisions of complete lists
        self.writes_between_pages: deque[Any] = deque()
        self._news = asyncio.Event()
        self._interruptions = 0
        self._interruption: WatchFault | None = None

    # ---------------------------------------------------------------- what a test does to it

    def put(self, name: str, value: Any = None, *, namespace: str = "x", resource: Resource = THING) -> JSON:
        """Create or update an object."""
        path = resource.path(namespace, name)
        old = self.objects.get(path)
        metadata = {"name": name, "namespace": namespace, "uid": self.runtime.uid()}
        if old is not None:
            metadata = dict(old["metadata"])
        return self._store(path, {"metadata": metadata, "value": value}, "MODIFIED" if old else "ADDED")

    def remove(self, name: str, *, namespace: str = "x", resource: Resource = THING) -> None:
        """Delete an object, if it is there."""
        path = resource.path(namespace, name)
        if path in self.objects:
            self._store(path, dict(self.objects[path]), "DELETED")

    def compact(self) -> None:
        """Forget the history: who watches from before now gets a 410."""
        self.compacted = self.revision

    def restore(self, revision: int) -> None:
        """Go back to an older state, as an API server whose etcd was restored from a backup; all watches break."""
        self.history = [version for version in self.history if version.revision <= revision]
        self.objects = {}
        for version in self.history:
            self.objects[version.path] = version.obj
            if version.type == "DELETED":
                del self.objects[version.path]
        self.revision = revision
        self.interrupt("drop")

    def interrupt(self, kind: str) -> None:
        """Have every watch go wrong now, before it sends what is pending."""
        self._interruptions += 1
        self._interruption = WatchFault(kind)
        self._tell()

    def state(self, resource: Resource = THING) -> dict[Key, str]:
        """Return key to resource version of what is stored."""
        return {
            Key(obj["metadata"]["namespace"], obj["metadata"]["name"]): obj["metadata"]["resourceVersion"]
            for path, obj in self.objects.items()
            if f"/{resource.plural}/" in path
        }

    # ---------------------------------------------------------------- the transport

    async def request(self, request: Request) -> Response:
        self.requests.append((request.method, request.path, dict(request.query)))
        await asyncio.sleep(self.latency)
        if self.down:
            raise ConnectionRefused(f"{request}: the server is down")
        if self.fail_next:
            failure = self.fail_next.popleft()
            if isinstance(failure, Exception):
                raise failure
            return failure
        return self._answer(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["ModelStream"]:
        """Answer a watch."""
        self.requests.append((request.method, request.path, dict(request.query)))
        if self.down:
            raise ConnectionRefused(f"{request}: the server is down")
        since = int(request.query["resourceVersion"])
        fault = self.watch_faults.popleft() if self.watch_faults else None
        if since < self.compacted and fault is None:
            yield ModelStream(410, status_body(410, "Expired", "too old resource version"), _nothing())
            return
        yield ModelStream(200, b"", self._watch(request.path, since, fault, float(request.query["timeoutSeconds"])))

    async def close(self) -> None:
        """Do nothing."""

    def _answer(self, request: Request) -> Response:
        method, path = request.method, request.path
        body: Any = json.loads(request.body) if request.body else None
        collection = path.rsplit("/", 1)[-1] in {"things", "leases", "events", "pods"}
        if method == "GET" and collection:
            return self._list(path, request.query)
        stored = self.objects.get(path)
        if method == "POST" and collection:
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return _status(409, "AlreadyExists", f"{path} already exists")
            body["metadata"]["uid"] = self.runtime.uid()
            return _ok(self._store(path, body, "ADDED"), 201)
        if stored is None:
            return _status(404, "NotFound", f"{path} not found")
        if method == "GET":
            return _ok(stored)
        wanted = (body or {}).get("metadata", {}) if isinstance(body, dict) else {}
        for name in ("resourceVersion", "uid"):
            if wanted.get(name) not in (None, stored["metadata"][name]):
                return _status(409, "Conflict", f"{path}: {name} differs")
        if method == "DELETE":
            return _ok(self._store(path, dict(stored), "DELETED"))
        if method == "PUT":
            return _ok(self._store(path, body, "MODIFIED"))
        assert request.headers["content-type"] == "application/merge-patch+json"
        return _ok(self._store(path, _merge(stored, body), "MODIFIED"))

    def _list(self, path: str, query: Mapping[str, str]) -> Response:
        fault = self.list_faults.popleft() if self.list_faults else ""
        if fault == "refuse":
            return _status(500, "InternalError", "etcd is having a moment")
        limit = int(query.get("limit", 0))
        start, at = (int(part) for part in query.get("continue", f"0/{self.revision}").split("/"))
        if "continue" in query and (fault == "expire-mid-list" or at < self.compacted):
            return _status(410, "Expired", "the continue token is too old")
        items = self._as_of(path, at)
        page = items[start : start + limit] if limit else items[start:]
        metadata: JSON = {"resourceVersion": str(at)}
        if limit and start + limit < len(items):
            metadata["continue"] = f"{start + limit}/{at}"
            if self.writes_between_pages:
                self.writes_between_pages.popleft()()
        else:
            self.listed.append(at)
        return _ok({"metadata": metadata, "items": page})

    def _as_of(self, path: str, revision: int) -> list[JSON]:
        state: dict[str, JSON] = {}
        for version in self.history:
            if version.revision > revision:
                break
            if _covers(path, version.path):
                state[version.path] = version.obj
                if version.type == "DELETED":
                    del state[version.path]
        return [state[key] for key in sorted(state)]

    async def _watch(self, path: str, since: int, fault: WatchFault | None, seconds: float) -> AsyncIterator[bytes]:
        if fault is not None and fault.kind == "replay":
            for version in self.history:
                if version.revision <= since and _covers(path, version.path):
                    yield _line(version.type, version.obj)
            fault = None
        sent = 0
        interruptions = self._interruptions
        bookmark_due = False
        position = since
        end = asyncio.get_running_loop().time() + seconds
        while True:
            if interruptions != self._interruptions:
                fault, sent = self._interruption, 0
            for version in self.history:
                if version.revision <= position or not _covers(path, version.path):
                    continue
                if fault is not None and sent >= fault.after:
                    break
                await asyncio.sleep(self.lag)
                position = version.revision
                sent += 1
                yield _line(version.type, version.obj)
            if fault is not None and sent >= fault.after:
                if fault.kind == "bookmarks":
                    yield _bookmark(position) + _bookmark(position)
                    fault = None
                    continue
                async for chunk in self._misbehave(fault, position, path):
                    yield chunk
                return
            if bookmark_due and self.revision >= position:  # of a version it has not come to, a server says nothing
                position = self.revision
                bookmark_due = False
                yield _bookmark(position)
                continue
            remaining = end - asyncio.get_running_loop().time()
            if remaining <= 0:
                return
            news = self._news
            try:
                async with asyncio.timeout(min(remaining, 60)):
                    await news.wait()
            except TimeoutError:
                bookmark_due = True

    async def _misbehave(self, fault: WatchFault, position: int, path: str) -> AsyncIterator[bytes]:
        pending = [v for v in self.history if v.revision > position and _covers(path, v.path)]
        if fault.kind == "drop":
            raise ConnectionFailed("connection reset")
        if fault.kind == "cut" and pending:
            line = _line(pending[0].type, pending[0].obj)
            yield line[: len(line) // 2]
            raise ConnectionFailed("connection reset")
        if fault.kind == "expire":
            status = json.loads(status_body(410, "Expired", "too old"))
            yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
        if fault.kind == "garbage":
            yield b"<html>gateway timeout</html>\n"
        if fault.kind == "hang":
            await asyncio.Event().wait()

    def _store(self, path: str, obj: JSON, kind: str) -> JSON:
        self.revision += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        self.objects[path] = obj
        if kind == "DELETED":
            del self.objects[path]
        self.history.append(Version(self.revision, path, kind, obj))
        self._tell()
        return obj

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@dataclass
class ModelStream:
    """Fills the ``StreamingResponse`` protocol."""

    status: int
    error: bytes
    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)

    async def body(self) -> bytes:
        return self.error

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


async def stopped(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait for its end; an error it had already met is raised."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return


def status_body(code: int, reason: str, message: str, **details: Any) -> bytes:
    """Return a ``Status`` as the API server writes it."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return json.dumps({**status, "details": details, "code": code}).encode()


def _status(code: int, reason: str, message: str) -> Response:
    return Response(code, {}, status_body(code, reason, message))


def _ok(obj: JSON, code: int = 200) -> Response:
    return Response(code, {}, json.dumps({"kind": THING.kind, **obj}).encode())


def _line(kind: str, obj: JSON) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _bookmark(revision: int) -> bytes:
    return _line("BOOKMARK", {"metadata": {"resourceVersion": str(revision)}, "value": {"containers": None}})


def _covers(collection: str, path: str) -> bool:
    plural = collection.rsplit("/", 1)[-1]
    return path.startswith(f"{collection}/") or (f"/{plural}/" in path and "/namespaces/" not in collection)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


async def _nothing() -> AsyncIterator[bytes]:
    for chunk in _no_chunks():
        yield chunk


def _no_chunks() -> Iterator[bytes]:
    return iter(())
