"""A real and an embedded server side by side, and what of their answers can be compared.

Compared are the status code and, for errors, the reason, what it is about and which fields it names; for objects
everything but what differs from run to run. Texts are not compared: ours are our own.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spinney.kube.transport import Request, Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.fidelity.differences import ONLY_REAL
from tests.fidelity.exchanges import Exchange

_VARYING = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "managedFields",
    "remainingItemCount",
)
_GIVEN = ("nodePort", "lastPhaseTransitionTime")
"""Fields that a server fills in with a value of its own: they are there, or not, on both."""
_UNIQUE = re.compile(
    r"(?<=kube-api-access-)\w{5}\Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\b10\.(0|96)\.\d+\.\d+\b|(?<=:)3[0-2]\d{3}(?=/)"  # addresses and ports that services are given
)
_EMPTY: tuple[Any, ...] = (None, {}, [])
_PASSING = ("Age", "Last Seen", "First Seen", "Created At", "Duration")


class Pair:
    """A real and an embedded server, and one namespace in both."""

    def __init__(self, real: Transport, embedded: Transport, namespace: str) -> None:
        self.real = real
        self.embedded = embedded
        self.namespace = namespace

    async def ask(self, exchange: Exchange) -> tuple[Any, Any]:
        """Send a request to both; return the comparable parts of the answers."""
        return (
            await comparable(self.real, exchange, self.namespace),
            await comparable(self.embedded, exchange, self.namespace),
        )

    async def until(self, exchange: Exchange) -> None:
        """Ask the real server until it answers with success: its controllers are not as immediate as ours."""
        async with asyncio.timeout(60):
            while (await comparable(self.real, exchange, self.namespace))["status"] != 200:  # noqa: ASYNC110 - elsewhere
                await asyncio.sleep(0.05)


@asynccontextmanager
async def paired(controlplane: ControlPlane) -> AsyncIterator[Pair]:
    """Run an embedded server beside the real one; both have the namespace and its service account."""
    runtime = Runtime.system()
    real = controlplane.connect(runtime)
    server = ApiServer(runtime)
    try:
        async with server.running():
            pair = Pair(real.transport, InProcessTransport(server), f"parity-{runtime.uid()[:8]}")
            await pair.ask(Exchange("POST", "/api/v1/namespaces", {"metadata": {"name": "{ns}"}}))
            await pair.until(Exchange("GET", "/api/v1/namespaces/{ns}/serviceaccounts/default"))
            try:
                yield pair
            finally:  # a later test's schedulers would see these pods
                await pair.ask(Exchange("DELETE", "/api/v1/namespaces/{ns}"))
                await pair.ask(Exchange("DELETE", "/api/v1/namespaces/{ns}/pods", query={"gracePeriodSeconds": "0"}))
    finally:
        await real.transport.close()
        runtime.executor.close()


async def comparable(transport: Transport, exchange: Exchange, namespace: str) -> Any:
    """Send a request; return what of the answer can be compared."""
    body = None if exchange.body is None else json.dumps(exchange.body).replace("{ns}", namespace).encode()
    answer = await transport.request(
        Request(
            exchange.method,
            exchange.path.replace("{ns}", namespace),
            query={name: value.replace("{ns}", namespace) for name, value in exchange.query.items()},
            headers={"content-type": exchange.content_type} | ({"accept": exchange.accept} if exchange.accept else {}),
            body=body,
        )
    )
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return {"status": answer.status, "text": ""}  # a group that is not served yet
    content = json.loads(answer.body)
    if content.get("kind") == "Status" and content.get("status") == "Failure":
        details = content.get("details") or {}
        causes = [(cause.get("field"), cause["reason"]) for cause in details.get("causes") or ()]
        return {
            "status": answer.status,
            "reason": content.get("reason"),
            "about": [details.get(name) for name in ("group", "kind", "name")],
            "causes": sorted(f"{field} {reason}" for field, reason in causes),
        }
    if content.get("kind") == "Table":
        return {"status": answer.status, **_table(content, exchange.ignoring)}
    return {"status": answer.status, "object": stable(_without(content, exchange.ignoring))}


def _table(table: Any, ignoring: tuple[str, ...]) -> Any:
    """Return the headings and the cells of a table; ages, and what descriptions say, differ."""
    columns = table["columnDefinitions"]
    kept = ("name", "type", "format", "priority")
    names = [column["name"] for column in columns]
    unlike = (*_PASSING, *ONLY_REAL, *ignoring)
    rows = [
        {name: stable(cell) for name, cell in zip(names, row["cells"], strict=True) if name not in unlike}
        for row in table["rows"]
        if row["object"]["metadata"]["name"] not in ONLY_REAL
    ]
    return {"columns": [{name: column[name] for name in kept} for column in columns], "rows": rows}


def _without(obj: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        obj.pop(name, None)
        obj.get("metadata", {}).get("annotations", {}).pop(name, None)
    return obj


def stable(value: Any) -> Any:
    """Return a value without what varies, what only the real server has, and what is empty."""
    if isinstance(value, dict):
        kept = {name: stable(child) for name, child in value.items() if name not in _VARYING and name not in ONLY_REAL}
        return {name: "*" if name in _GIVEN else child for name, child in kept.items() if child not in _EMPTY}
    if isinstance(value, list):
        return [stable(item) for item in value if not isinstance(item, str) or item not in ONLY_REAL]
    return _UNIQUE.sub("*", value) if isinstance(value, str) else value
