"""A transport that asks before it writes; what it asks is the business of fencing and of read-only access."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Response, StreamingResponse, Transport


class GuardedTransport(ABC):
    """Passes reads on always and writes only as ``admit`` allows; fills the ``Transport`` protocol."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @abstractmethod
    def admit(self, method: str, path: str, timeout: float | None) -> float | None:
        """Return how long this write may take, or raise because it may not be sent."""

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
        """Send one request, a write only when it is admitted. A dry run writes nothing."""
        if method not in SAFE_METHODS and "dryRun" not in query:
            timeout = self.admit(method, path, timeout)
        return await self._transport.request(method, path, query=query, headers=headers, body=body, timeout=timeout)

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[StreamingResponse]:
        """Stream one request, a write only when it is admitted."""
        if method not in SAFE_METHODS:
            timeout = self.admit(method, path, timeout)
        return self._transport.stream(method, path, query=query, headers=headers, timeout=timeout)

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()
