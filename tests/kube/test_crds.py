"""Kinds that were installed are served, and told of, when the installation says so."""

from contextlib import AbstractAsyncContextManager

from spinney.api.coordination import LEASE
from spinney.api.podgang import POD_GANG
from spinney.api.struct import decode, encode
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.discovery import served
from spinney.kube.transport import Request, Response, StreamingResponse, Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.virtual_time import on_virtual_time


class SlowDiscovery:
    """A server, like a real one, on which a kind is established and told of a while after it was written. Mutable."""

    def __init__(self, inner: Transport, answers: int) -> None:
        self._inner = inner
        self._answers = answers

    async def request(self, request: Request) -> Response:
        """Answer without the conditions of what was just written, and at first without any group."""
        response = await self._inner.request(request)
        content = decode(dict, response.body)
        if request.method == "PATCH":
            del content["status"]
        if request.path == "/apis" and self._answers:
            self._answers -= 1
            content["items"] = []
        return Response(response.status, response.headers, encode(content))

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Nothing is late about watches."""
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


@on_virtual_time
async def test_a_client_that_starts_after_an_installation_finds_the_kinds() -> None:
    """A process asks discovery once, at its start, what there is: what was installed before is among it."""
    runtime = Runtime.virtual()
    client = Client(SlowDiscovery(InProcessTransport(ApiServer(runtime)), answers=3), runtime)

    await install_crds(client)

    assert await served(client, [POD_GANG, LEASE]) == {POD_GANG, LEASE}
