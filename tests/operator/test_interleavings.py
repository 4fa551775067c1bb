"""Two requests that pass each other on the way, an answer that is lost, news that come late: one interleaving each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from spinney.api.core import POD
from spinney.kube.errors import ConnectionFailed
from spinney.kube.transport import Response
from spinney.runtime import run_virtual
from spinney.server import ApiServer
from spinney.sim.transport import InProcessStream, InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.operator.harness import a_world

Send: TypeAlias = Callable[[], Awaitable[Response]]
Meddle: TypeAlias = Callable[[str, str, bytes, Send], Awaitable[Response]]


class MeddledLine(InProcessTransport):
    """A line on which somebody decides about every request, and news of some kinds are late. Mutable."""

    def __init__(self, server: ApiServer, meddle: Meddle, late: Mapping[str, float]) -> None:
        super().__init__(server)
        self._meddle = meddle
        self._late = late

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Pass a request on when, and if, the meddler says so."""

        async def send() -> Response:
            return await super(MeddledLine, self).request(method, path, query=query, headers=headers, body=body)

        return await self._meddle(method, path, body or b"", send)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        timeout: float | None = None,
    ) -> AsyncIterator[InProcessStream]:
        """Open a watch; what comes is passed on after the seconds of its kind."""
        lag = self._late.get(path.rpartition("/")[2], 0.0)
        async with super().stream(method, path, query=query, headers=headers, timeout=timeout) as stream:
            yield InProcessStream(stream.status, stream.headers, _lagging(stream, lag))


async def _lagging(stream: InProcessStream, seconds: float) -> AsyncIterator[bytes]:
    async for chunk in stream:
        if seconds:
            await asyncio.sleep(seconds)
        yield chunk


def meddled(meddle: Meddle, **late: float) -> Callable[[ApiServer], InProcessTransport]:
    """Return how an operator gets such a line."""
    return lambda server: MeddledLine(server, meddle, late)


def test_a_creation_whose_answer_was_lost_is_repeated_under_its_name() -> None:
    """A gang that stops referring to a former pod meanwhile does not make the second attempt a second pod."""
    lost: list[bytes] = []

    async def lose_one_creation(method: str, path: str, body: bytes, send: Send) -> Response:
        answer = await send()
        if method == "POST" and path.endswith("/pods") and not lost:
            lost.append(body)
            raise ConnectionFailed("the answer was lost")
        return answer

    async def story() -> None:
        async with a_world() as world:
            await world.apply(a_pod_clique_set("model", [a_clique("worker", 2, 1)]))
            await world.settle()
            pods = await world.pods()
        async with world.server.running():  # nobody is there to see the pod go
            await world.client.delete(POD, pods[0].metadata.name, "test", grace_period_seconds=0)
        # The gang refers to the pod that went, so its name is not used again: until the gang has been told.
        async with a_world(server=world.server, line=meddled(lose_one_creation, pods=1.0)) as later:
            await later.settle(30)
            assert lost
            assert len(await later.pods()) == 2

    run_virtual(story())
