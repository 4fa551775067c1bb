"""A transport that asks before it writes; what it asks is the business of fencing and of read-only access."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Request, Response, StreamingResponse, Transport


class GuardedTransport(ABC):
    """Passes reads on always and writes only as ``admit`` allows; fills the ``Transport`` protocol."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @abstractmethod
    def admit(self, request: Request) -> Request:
        """Return a write as it may be sent, or raise because it may not."""

    async def request(self, request: Request) -> Response:
        """Send one request, a write only when it is admitted. A dry run writes nothing."""
        writes = request.method not in SAFE_METHODS and "dryRun" not in request.query
        return await self._transport.request(self.admit(request) if writes else request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Stream one request, a write only when it is admitted."""
        return self._transport.stream(request if request.method in SAFE_METHODS else self.admit(request))

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()
