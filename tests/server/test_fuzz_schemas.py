"""Requests made from the served OpenAPI documents by schemathesis: none is the server's fault.

``SPINNEY_FUZZ_EXAMPLES`` says how many requests are made for each operation, half of them against the schema.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from spinney.runtime import Runtime
from spinney.server import ApiServer, Request
from tests.server.api import DEFINITIONS, Api, a_definition

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: `make test-real` does")

_EXAMPLES = int(os.environ.get("SPINNEY_FUZZ_EXAMPLES", "2"))
_DOCUMENTS = (
    "api/v1",
    "apis/scheduling.k8s.io/v1beta1",
    "apis/policy/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/example.com/v1",
)
_SCHEMA = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 5}, "x-kubernetes-list-type": "set"},
        "either": {"x-kubernetes-int-or-string": True},
        "colour": {"type": "string", "enum": ["red", "green"]},
    },
}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop of the test's own: hypothesis calls it for each example."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


async def _a_server() -> Api:
    api = Api(ApiServer(Runtime.virtual()))
    await api.create(DEFINITIONS, a_definition(_SCHEMA))
    return api


async def _send(server: ApiServer, case: Any) -> tuple[int, bytes]:
    """Send a case; of a stream take what is there at once."""
    body = case.body if isinstance(case.body, str | bytes) else _encoded(case)
    query = {name: value if isinstance(value, str) else json.dumps(value) for name, value in (case.query or {}).items()}
    headers = {"content-type": case.media_type} if case.media_type else {}
    raw = body.encode(errors="surrogatepass") if isinstance(body, str) else body
    answer = await server.handle(Request(case.method, unquote(case.formatted_path), query, headers, raw))
    if isinstance(answer.body, bytes):
        return answer.status, answer.body
    await answer.body.aclose()  # type: ignore[attr-defined]
    return answer.status, b""


def _encoded(case: Any) -> bytes:
    if type(case.body).__name__ == "NotSet":
        return b""
    return json.dumps(case.body, default=str).encode(errors="surrogatepass")


@pytest.mark.parametrize("document", _DOCUMENTS)
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_from_the_schema_is_the_servers_fault(
    loop: asyncio.AbstractEventLoop, document: str, mode: str
) -> None:
    """Whatever the schema allows or forbids is answered with a result or with an error that blames the request."""
    api = loop.run_until_complete(_a_server())
    described = loop.run_until_complete(api.get(f"/openapi/v3/{document}"))
    schema = schemathesis.openapi.from_dict(described)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode == "negative" and not list(operation.query) and not list(operation.body):
            continue  # a name can be got wrong in no way that is not another name
        cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))

        @settings(
            max_examples=max(1, _EXAMPLES // 2),
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def ask(case: Any) -> None:
            nonlocal tried
            tried += 1
            status, body = loop.run_until_complete(_send(api.server, case))
            assert status != 500, (case.method, case.formatted_path, case.query, case.body, body)

        with suppress(Unsatisfiable):  # nothing about this operation can be got wrong
            ask()
    assert tried
    assert loop.run_until_complete(api.send("GET", "/readyz")).status == 200
