"""Talking to an embedded server in tests: requests in and decoded answers out, without a client library."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.server import ApiServer, Request, ServerOptions
from spinney.server.admission.calling import WebhookCaller
from spinney.server.admission.service_accounts import ROOT_CERTIFICATES
from tests.virtual_time import opening

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Answer:
    """A decoded answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Api:
    """One server, and verbs that assert success unless told what to expect."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = await self.server.handle(Request(method, path, query or {}, headers or {}, raw))
        assert isinstance(response.body, bytes), "a stream is read with watch()"
        is_json = response.headers.get("content-type", "").startswith("application/json") and response.body
        decoded = json.loads(response.body) if is_json else response.body
        return Answer(response.status, decoded, response.headers)

    async def create(self, path: str, obj: JSON, **query: str) -> Any:
        answer = await self.send("POST", path, obj, query=query)
        assert answer.status == 201, answer.body
        return answer.body

    async def get(self, path: str, **query: str) -> Any:
        answer = await self.send("GET", path, query=query)
        assert answer.status == 200, answer.body
        return answer.body

    async def replace(self, path: str, obj: JSON, **query: str) -> Any:
        answer = await self.send("PUT", path, obj, query=query)
        assert answer.status == 200, answer.body
        return answer.body

    async def patch(self, path: str, patch: Any, kind: str = MERGE, **query: str) -> Any:
        answer = await self.send("PATCH", path, patch, query=query, headers={"content-type": kind})
        assert answer.status in {200, 201}, answer.body
        return answer.body

    async def apply(self, path: str, obj: JSON, manager: str, **query: str) -> Any:
        return await self.patch(path, configuration(path, obj), APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, options: JSON | None = None, **query: str) -> Any:
        answer = await self.send("DELETE", path, options, query=query)
        assert answer.status == 200, answer.body
        return answer.body

    async def names(self, path: str, **query: str) -> list[str]:
        """Return the names of what a test has put there; every namespace has a config map of its own."""
        items = (await self.get(path, **query))["items"]
        return [name for item in items if (name := item["metadata"]["name"]) != ROOT_CERTIFICATES]

    @asynccontextmanager
    async def watch(self, path: str, headers: Mapping[str, str] | None = None, **query: str) -> AsyncIterator["Watch"]:
        response = await self.server.handle(Request("GET", path, {"watch": "true", **query}, headers or {}))
        assert response.status == 200, response.body
        assert not isinstance(response.body, bytes)
        stream = response.body
        try:
            yield Watch(stream)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]


class Watch:
    """The events of a watch, one at a time, but for those of the config map that every namespace has."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._lines: list[bytes] = []

    async def next(self) -> JSON:
        while True:
            while not self._lines:
                self._lines = (await anext(self._stream)).splitlines()
            event: JSON = json.loads(self._lines.pop(0))
            if event["object"].get("metadata", {}).get("name") != ROOT_CERTIFICATES:
                return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[JSON]:
        events = []
        while True:
            try:
                events.append(await self.next())
            except StopAsyncIteration:
                return events


def an_api(options: ServerOptions | None = None, *, seed: int = 1, webhooks: WebhookCaller | None = None) -> Api:
    """Return a fresh server; call it inside an event loop."""
    return Api(ApiServer(Runtime.virtual(seed), options, webhooks=webhooks))


given_an_api = opening(lambda: nullcontext(an_api()))
"""Run a test on virtual time with a fresh server; tests in real time ask for the fixture ``api``."""


_KINDS = {"configmaps": "ConfigMap", "pods": "Pod", "nodes": "Node", "widgets": "Widget"}


def configuration(path: str, obj: JSON) -> JSON:
    """Return ``obj`` with the type and name that an applied configuration must have, taken from its path."""
    parts = path.removesuffix("/status").split("/")
    api_version = parts[2] if parts[1] == "api" else "/".join(parts[2:4])
    metadata = {"name": parts[-1], **obj.get("metadata", {})}
    return {"apiVersion": api_version, "kind": _KINDS[parts[-2]], **obj, "metadata": metadata}


def a_binding(pod: str = "p", node: str = "n", **metadata: Any) -> JSON:
    return {"metadata": {"name": pod, **metadata}, "target": {"kind": "Node", "name": node}}


def a_pod(name: str = "p", *, labels: Mapping[str, str] | None = None, **spec: Any) -> JSON:
    containers = [{"name": "c", "image": "registry.example/c:1"}]
    return {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": {"containers": containers, **spec}}


def a_config_map(name: str = "c", owner: JSON | None = None, **data: str) -> JSON:
    metadata: JSON = {"name": name}
    if owner is not None:
        metadata["ownerReferences"] = [reference_to(owner)]
    return {"metadata": metadata, "data": data}


def reference_to(owner: JSON) -> JSON:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def a_definition(spec_schema: JSON | None = None, **version: Any) -> JSON:
    """Return the definition of ``widgets.example.com`` with the given schema of its spec."""
    schema = {
        "type": "object",
        "properties": {
            "spec": spec_schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def a_widget(name: str = "w", **spec: Any) -> JSON:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
