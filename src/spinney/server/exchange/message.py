"""What goes in and what comes out of the server: a request and a response, without any transport."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from spinney.server.exchange.user import ADMIN, User


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are lower case; ``path`` is decoded and has no query."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response. A body that is an iterator is a stream: it ends when the iterator does."""

    status: int
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]
