"""An API server reduced to what the benchmarks need: lists, watches, patches and puts of one collection, in process."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from spinney.kube.transport import Request, Response


class Stream:
    """A watch that ends only when the client leaves."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def body(self) -> bytes:
        """Return nothing: this never fails."""
        return b""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks


class Collection:
    """Serves pages of objects made on the fly, then a fixed sequence of watch chunks."""

    def __init__(self, objects: Iterator[bytes], chunks: Iterable[bytes] = ()) -> None:
        self._objects = objects
        self._chunks = chunks

    async def request(self, request: Request) -> Response:
        """Answer with the next page."""
        limit = int(request.query.get("limit", 500))
        items = list(itertools.islice(self._objects, limit))
        more = b',"continue":"more"' if len(items) == limit else b""
        body = b'{"metadata":{"resourceVersion":"1"%b},"items":[%b]}' % (more, b",".join(items))
        return Response(200, {}, body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send the chunks, then stay silent."""
        yield Stream(self._send())

    async def _send(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Do nothing."""


class Store:
    """A collection that can be written to: each write is stored, answered and sent to the watch."""

    def __init__(self, objects: Mapping[str, dict[str, Any]]) -> None:
        self._objects = dict(objects)
        self._version = 1
        self._news: asyncio.Queue[bytes] = asyncio.Queue()
        self.written: list[float] = []

    async def request(self, request: Request) -> Response:
        """Answer a list, a get, a put or a merge patch of top-level fields."""
        await asyncio.sleep(0)
        path = request.path
        if path.count("/") < 5:
            listing = {"metadata": {"resourceVersion": "1"}, "items": list(self._objects.values())}
            return Response(200, {}, json.dumps(listing).encode())
        if request.method != "GET":
            self._write(path, json.loads(request.body or b"{}"), merge=request.method == "PATCH")
        return Response(200, {}, json.dumps(self._objects[path]).encode())

    def _write(self, path: str, body: dict[str, Any], *, merge: bool) -> None:
        self.written.append(time.monotonic())
        self._version += 1
        stored = {**self._objects[path], **body} if merge else body
        metadata = {**self._objects[path]["metadata"], "resourceVersion": str(self._version)}
        self._objects[path] = {**stored, "metadata": metadata}
        event = {"type": "MODIFIED", "object": self._objects[path]}
        self._news.put_nowait(json.dumps(event).encode() + b"\n")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send every write from now on."""
        yield Stream(self._send())

    async def _send(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._news.get()

    async def close(self) -> None:
        """Do nothing."""
