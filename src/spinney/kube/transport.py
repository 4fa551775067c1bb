"""The seam between the client and whatever carries its requests.

:class:`~spinney.kube.http.HttpTransport` carries them over HTTP; the simulation fills the same protocol with a call
into the embedded server. A transport knows nothing of Kubernetes objects: bytes in, bytes out, and
:class:`~spinney.kube.errors.ConnectionFailed` when no answer came.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class Request(msgspec.Struct, frozen=True):
    """One request. ``timeout`` bounds the wait for the whole answer; of a stream, for its head."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    timeout: float | None = None

    def __str__(self) -> str:
        """Return it as errors name it."""
        return f"{self.method} {self.path}"


class Response(msgspec.Struct, frozen=True):
    """A complete answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name, the values of one that came several times separated by commas."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


class StreamingResponse(Protocol):
    """An answer whose body arrives bit by bit. Header names are in lower case."""

    @property
    def status(self) -> int:
        """Return the HTTP status, known before the body arrives."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the response headers."""
        ...

    async def body(self) -> bytes:
        """Read the rest of the body at once; meant for errors."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over chunks of the body, cut anywhere, until the server ends it.

        A connection that breaks raises :class:`~spinney.kube.errors.ConnectionFailed`.
        """
        ...


class Transport(Protocol):
    """Carries requests to one API server."""

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete answer, whatever its status."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Send one request and hand out its answer as it arrives."""
        ...

    async def close(self) -> None:
        """Close every connection; the transport cannot be used afterwards."""
        ...
