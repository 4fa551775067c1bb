"""A transport through which nothing can be written, for looking at a cluster without any risk to it."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from spinney.kube.errors import KubeError
from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Response, StreamingResponse, Transport


class WriteRefused(KubeError):  # noqa: N818 - named for the situation
    """Something tried to write through a read-only transport; a bug of whoever did."""


class ReadOnlyTransport:
    """Passes reads on and refuses everything else; fills the ``Transport`` protocol."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
        """Send one read."""
        if method not in SAFE_METHODS:
            raise WriteRefused(f"{method} {path} was not sent: this process only reads")
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
        """Stream a read."""
        if method not in SAFE_METHODS:
            raise WriteRefused(f"{method} {path} was not sent: this process only reads")
        return self._transport.stream(method, path, query=query, headers=headers, timeout=timeout)

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()
