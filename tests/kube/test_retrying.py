"""Requests are repeated only where nothing can happen twice. On virtual time."""

import pytest

from spinney.api.core import POD
from spinney.kube.client import Client
from spinney.kube.errors import ConnectionFailed, ConnectionRefused, KubeError, TooManyRequests
from spinney.kube.transport import Response
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer, status_body
from tests.virtual_time import on_virtual_time

BUSY = Response(429, {"retry-after": "7"}, b"slow down")
BROKEN = Response(500, {}, b"oops")
UNAVAILABLE = Response(503, {"retry-after": "7"}, b"starting")
BUDGET = Response(
    429,
    {},
    status_body(429, "TooManyRequests", "budget", causes=[{"reason": "DisruptionBudget"}], retryAfterSeconds=10),
)


def webhook(problem: str) -> Response:
    """Return what an API server answers whose webhook did not answer."""
    text = (
        f'Internal error occurred: failed calling webhook "pcs.grove.io": failed to call webhook: Post "x": {problem}'
    )
    return Response(500, {}, status_body(500, "InternalError", text))


@pytest.mark.parametrize(
    ("failure", "method", "repeated"),
    [
        (webhook("dial tcp 10.0.0.1:443: connect: connection refused"), "POST", True),
        (webhook("dial tcp 10.0.0.1:443: connect: connection refused"), "PATCH", True),
        (webhook("EOF"), "PUT", True),
        (webhook("context deadline exceeded"), "POST", False),
        (BUSY, "GET", True),
        (BUSY, "POST", True),
        (BUSY, "PATCH", True),
        (BROKEN, "GET", True),
        (BROKEN, "POST", False),
        (BROKEN, "DELETE", False),
        (UNAVAILABLE, "GET", True),
        (UNAVAILABLE, "PUT", False),
        (ConnectionRefused("nobody there"), "POST", True),
        (ConnectionFailed("broke"), "GET", True),
        (ConnectionFailed("broke"), "POST", False),
        (BUDGET, "POST", False),
        (Response(404, {}, b""), "GET", False),
        (Response(302, {"location": "/login"}, b""), "POST", False),
    ],
)
@on_virtual_time
async def test_what_is_repeated(failure: Response | Exception, method: str, repeated: bool) -> None:
    """A read is repeated after anything that may pass; a write only if the server surely did not act on it."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    server.put("a", 1)
    server.fail_next.append(failure)
    client = Client(server, runtime)
    path = THING.path("x", "a")
    if method == "POST":
        path = THING.path("x")
    body = {"metadata": {"name": "b"}, "spec": {}} if method == "POST" else {"metadata": {"name": "a"}}
    try:
        await client.raw(
            method,
            path,
            body=None if method == "GET" else str(body).replace("'", '"').encode(),
            headers={"content-type": "application/merge-patch+json"},
        )
    except KubeError:
        assert not repeated
    else:
        assert repeated
    assert len(server.requests) == (2 if repeated else 1)


async def seconds_to_read(first: Response) -> float:
    """Return how long a read takes whose first answer is ``first``."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    server.put("a", 1)
    server.fail_next.append(first)
    await Client(server, runtime).get(THING, "a", "x")
    return runtime.clock.monotonic()


@on_virtual_time
async def test_retry_after_is_honoured() -> None:
    """The server's wish when to be asked again is respected."""
    assert await seconds_to_read(BUSY) >= 7


@pytest.mark.parametrize("wanted", ["86400", "9" * 5000, "-1", "1e3", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", ""])
@on_virtual_time
async def test_nobody_sleeps_for_a_day_because_a_server_says_so(wanted: str) -> None:
    """What is too long is shortened, and what is no number of seconds is passed over; then the request is repeated."""
    assert await seconds_to_read(Response(429, {"retry-after": wanted}, b"slow down")) <= 30


@on_virtual_time
async def test_a_status_that_wants_a_day_is_not_obeyed_either() -> None:
    """The body of the answer may say it, too."""
    busy = status_body(429, "TooManyRequests", "slow down", retryAfterSeconds=86400)
    assert await seconds_to_read(Response(429, {}, busy)) == 30


@on_virtual_time
async def test_patience_ends() -> None:
    """After five attempts the last error is raised."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    server.down = True
    with pytest.raises(ConnectionRefused):
        await Client(server, runtime).list(THING)
    assert len(server.requests) == 5


@on_virtual_time
async def test_an_eviction_refused_by_a_budget_is_the_callers_business() -> None:
    """A 429 because of a disruption budget is not load, and is raised at once with its cause."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    server.put("a", 1, resource=POD)
    server.fail_next.append(BUDGET)
    with pytest.raises(TooManyRequests) as caught:
        await Client(server, runtime).evict("x", "a")
    assert caught.value.has_cause("DisruptionBudget")
    assert runtime.clock.monotonic() == 0
