"""The same requests to the embedded server and to kube-apiserver: clients cannot tell the answers apart.

Compared are the status code and, for errors, the reason, what it is about and which fields it names; for objects
everything but what differs from run to run. Texts are not compared: ours are our own. What is known to differ, and
why, is listed in ``_ONLY_REAL``.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from spinney.kube.client import Client
from spinney.kube.transport import Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.server.exchanges import DEFINITION, GEARS, STORIES, Exchange

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_VARYING = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "managedFields")
_ONLY_REAL = {
    "volumes": "the service account's token: there are no service account tokens in the embedded cluster",
    "volumeMounts": "as volumes",
}
_PROTECTION = "scheduling.k8s.io/podgroup-protection"  # removed by a controller that the embedded cluster has not
_NOT_CHECKED = "<nil>"  # the cause by which kube-apiserver says that CEL rules were not run after other errors


class Pair:
    """A real and an embedded server, and one namespace in both."""

    def __init__(self, real: Client, embedded: ApiServer, namespace: str) -> None:
        self.real = real.transport
        self.embedded: Transport = InProcessTransport(embedded)
        self.namespace = namespace

    async def ask(self, exchange: Exchange) -> tuple[Any, Any]:
        """Send a request to both; return the comparable parts of the answers."""
        return await _comparable(self.real, exchange, self.namespace), await _comparable(
            self.embedded, exchange, self.namespace
        )


@pytest.fixture
async def pair(controlplane: ControlPlane) -> AsyncIterator[Pair]:
    runtime = Runtime.system()
    real = controlplane.connect(runtime)
    server = ApiServer(runtime)
    async with server.running():
        pair = Pair(real, server, f"parity-{runtime.uid()[:8]}")
        await pair.ask(Exchange("POST", "/api/v1/namespaces", {"metadata": {"name": "{ns}"}}))
        await _until(pair, Exchange("GET", "/api/v1/namespaces/{ns}/serviceaccounts/default"))
        yield pair
        await pair.ask(Exchange("DELETE", "/api/v1/namespaces/{ns}"))
    await real.transport.close()
    runtime.executor.close()


async def _until(pair: Pair, exchange: Exchange) -> None:
    """Ask the real server until it answers with success: its controllers are not as immediate as ours."""
    async with asyncio.timeout(60):
        while (await _comparable(pair.real, exchange, pair.namespace))["status"] != 200:  # noqa: ASYNC110 - elsewhere
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("story", STORIES)
async def test_answers_are_the_same(pair: Pair, story: str) -> None:
    """Every request of a story is answered alike by both servers."""
    if story == "custom resources":
        await pair.ask(DEFINITION)
        await _until(pair, Exchange("GET", GEARS))
    differing = []
    for exchange in STORIES[story]:
        real, ours = await pair.ask(exchange)
        if real != ours:
            differing.append(f"{exchange}\n  real: {json.dumps(real)}\n  ours: {json.dumps(ours)}")
    assert not differing, "\n".join(differing)


async def _comparable(transport: Transport, exchange: Exchange, namespace: str) -> Any:
    body = None if exchange.body is None else json.dumps(exchange.body).replace("{ns}", namespace).encode()
    answer = await transport.request(
        exchange.method,
        exchange.path.replace("{ns}", namespace),
        query=exchange.query,
        headers={"content-type": exchange.content_type},
        body=body,
    )
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return {"status": answer.status, "text": answer.body}  # a group that is not served yet
    content = json.loads(answer.body)
    if content.get("kind") == "Status" and content.get("status") == "Failure":
        details = content.get("details") or {}
        causes = [(cause.get("field"), cause["reason"]) for cause in details.get("causes") or ()]
        return {
            "status": answer.status,
            "reason": content.get("reason"),
            "about": [details.get(name) for name in ("group", "kind", "name")],
            "causes": sorted(f"{field} {reason}" for field, reason in causes if field != _NOT_CHECKED),
        }
    return {"status": answer.status, "object": _stable(content)}


def _stable(value: Any) -> Any:
    """Return a value without what varies, what only the real server has, and what is empty."""
    if isinstance(value, dict):
        kept = {
            name: _stable(child) for name, child in value.items() if name not in _VARYING and name not in _ONLY_REAL
        }
        return {name: child for name, child in kept.items() if child not in (None, {}, [])}
    if isinstance(value, list):
        return [_stable(item) for item in value if item != _PROTECTION]
    return value
