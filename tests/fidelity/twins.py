"""Two servers that are told the same, one real and one embedded, and the answers in a form that must be equal.

Requests are written once. What only one server knows (an object's uid, its resourceVersion) stands in them as
``@uid:kind/name`` and ``@rv:kind/name`` and is filled in from what that server last said about the object.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spinney.api.struct import JSON
from spinney.kube.transport import Request, Transport
from tests.fidelity.exchanges import Exchange
from tests.fidelity.pair import stable

_PATIENCE = 60.0  # seconds for controllers to do what ours do at once


class Twin:
    """One of the two servers, in one namespace; remembers what it said about each object. Mutable."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace
        self._known: dict[str, tuple[str, str]] = {}
        self._pages: dict[str, str] = {}

    async def ask(self, exchange: Exchange) -> JSON:
        """Send a request and return its status code and body."""
        query = dict(exchange.query)
        if query.get("continue") == "@next":
            query["continue"] = self._pages.get(exchange.path, "none")
        answer = await self.transport.request(
            Request(
                exchange.method,
                self._filled(exchange.path),
                query={name: self._filled(value) for name, value in query.items()},
                headers={"content-type": exchange.content_type},
                body=None if exchange.body is None else self._filled(json.dumps(exchange.body)).encode(),
            )
        )
        if not answer.headers.get("content-type", "").startswith("application/json"):
            return {"status": answer.status, "body": {}}  # a group that is not served yet
        body: JSON = json.loads(answer.body)
        self._learn(exchange.path, body)
        return {"status": answer.status, "body": body}

    async def until(self, path: str) -> None:
        """Wait until something is there."""
        async with asyncio.timeout(60):
            while (await self.ask(Exchange("GET", path)))["status"] != 200:  # noqa: ASYNC110 - it is elsewhere
                await asyncio.sleep(0.05)

    async def listed(self, path: str) -> list[JSON]:
        """Return the objects of a collection."""
        items: list[JSON] = (await self.ask(Exchange("GET", path)))["body"]["items"]
        return items

    async def events(self, path: str, revision: str, last: str) -> dict[str, list[tuple[str, Any]]]:
        """Return the events after a revision and before the first about the object ``last``, by object.

        Those of different objects may come in another order: garbage is collected when its collector gets to it.
        """
        found: dict[str, list[tuple[str, Any]]] = {}
        query = {"watch": "true", "resourceVersion": revision, "timeoutSeconds": "60"}
        async with self.transport.stream(Request("GET", self._filled(path), query=query)) as stream:
            rest = b""
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for event in map(json.loads, filter(None, lines)):
                    name = event["object"]["metadata"]["name"]
                    if name == last:
                        return found
                    events = found.setdefault(name, [])
                    content = comparable(event["object"])
                    if event["type"] == "DELETED" and events and events[-1] == ("MODIFIED", content):
                        events.pop()  # the real server sometimes marks a pod that it removes at once (differences)
                    events.append((event["type"], content))
        raise AssertionError(f"the watch of {path} ended before {last} came: {found}")

    def _filled(self, text: str) -> str:
        for name, (uid, revision) in self._known.items():
            text = text.replace(f"@uid:{name}!", uid).replace(f"@rv:{name}!", revision)
        return text.replace("{ns}", self.namespace)

    def _learn(self, path: str, body: JSON) -> None:
        metadata = body.get("metadata") or {}
        if "items" in body:
            self._pages[path] = metadata.get("continue") or "none"
        elif metadata.get("uid") and metadata.get("resourceVersion"):
            name = f"{body['kind']}/{metadata['name']}"
            self._known[name] = (metadata["uid"], metadata["resourceVersion"])


class Twins:
    """Both servers."""

    def __init__(self, real: Transport, embedded: Transport, namespace: str) -> None:
        self.real = Twin(real, namespace)
        self.embedded = Twin(embedded, namespace)

    async def ask(self, exchange: Exchange) -> tuple[Any, Any]:
        """Send a request to both; return what must be equal."""
        return normal(await self.real.ask(exchange)), normal(await self.embedded.ask(exchange))

    async def settled(self, path: str) -> tuple[Any, Any]:
        """List a collection until both servers have the same in it; return the last two lists."""
        real: Any = None
        ours: Any = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        while loop.time() < deadline:
            real, ours = shown(await self.real.listed(path)), shown(await self.embedded.listed(path))
            if real == ours:
                break
            await asyncio.sleep(0.05)
        return real, ours


def normal(answer: Mapping[str, Any]) -> JSON:
    """Return an answer without what differs from run to run."""
    body = answer["body"]
    if body.get("kind") == "Status" and body.get("status") == "Failure":
        details = body.get("details") or {}
        causes = [f"{cause.get('field')} {cause['reason']}" for cause in details.get("causes") or ()]
        about = {name: details.get(name) for name in ("group", "kind", "name")}
        return {"status": answer["status"], "reason": body.get("reason"), **about, "causes": sorted(causes)}
    if "items" in body:
        more = bool(body["metadata"].get("continue"))
        return {"status": answer["status"], "items": shown(body["items"]), "more": more}
    return {"status": answer["status"], "object": comparable(body)}


def shown(items: list[JSON]) -> list[Any]:
    """Return the comparable part of a list, without what every namespace has."""
    return [comparable(item) for item in items if item["metadata"]["name"] not in {"default", "kube-root-ca.crt"}]


def comparable(obj: JSON) -> Any:
    """Return an object without what differs from run to run; who manages which field is kept, path by path."""
    content = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
    return {**stable(content), "managed": _managed((obj.get("metadata") or {}).get("managedFields") or ())}


def _managed(entries: Iterable[JSON]) -> JSON:
    """Return the fields of every manager, without the marks of those that have fields of their own."""
    found: JSON = {}
    for entry in entries:
        writer = " ".join(entry.get(name, "-") for name in ("manager", "operation", "subresource", "apiVersion"))
        found[writer] = {stable(path): True for path in _leaves(entry["fieldsV1"], "")}
    return found


def _leaves(fields: JSON, path: str) -> Iterator[str]:
    below = {name: child for name, child in fields.items() if name != "."}
    if not below:
        yield path
    for name, child in below.items():
        yield from _leaves(child, f"{path}/{name}")
