"""Reading a watch: chunks to lines, lines to events.

A watch answers with one JSON document per line, ``{"type": ..., "object": ...}``, cut into chunks anywhere. An object
event is decoded once, straight into the caller's type. Bookmarks and errors carry something that need not look like
that type (an API server's pod bookmark has ``containers: null``), so a line whose head names one of them, or that does
not decode, is read a second way.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from spinney.api.lines import WholeLines
from spinney.kube.depths import decoded
from spinney.kube.errors import Status, UndecodableResponse, error_from

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One object was added, modified or deleted; for a deletion the object is its last state."""

    type: EventType
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this resource version has been sent."""

    resource_version: str


class Undecodable(msgspec.Struct, frozen=True):
    """An object that does not decode as the type it was watched as."""

    type: EventType
    namespace: str
    name: str
    resource_version: str
    problem: str


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _OnlyMeta(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"null")


_envelopes = msgspec.json.Decoder(_Envelope)
_metas = msgspec.json.Decoder(_OnlyMeta)
_statuses = msgspec.json.Decoder(Status)

# How an API server begins such a line. One written differently is told by its type, at the price of a failed decode.
_OTHERS = (b'{"type":"BOOKMARK"', b'{"type":"ERROR"')


class EventDecoder(Generic[T]):
    """Turns the lines of a watch into events of objects decoded as ``kind``."""

    def __init__(self, kind: type[T]) -> None:
        self._events: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(WatchEvent[kind])  # type: ignore[valid-type]

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Undecodable:
        """Decode one line; an ``ERROR`` event raises the :class:`~spinney.kube.errors.ApiError` it carries."""
        return decoded(line, self._decode)

    def _decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Undecodable:
        if line.startswith(_OTHERS):
            return self._other(line, "")
        try:
            return self._events.decode(line)
        except msgspec.DecodeError as problem:
            return self._other(line, str(problem))

    def _other(self, line: bytes, problem: str) -> Bookmark | Undecodable:
        try:
            envelope = _envelopes.decode(line)
            if envelope.type == "ERROR":
                raise error_from(_statuses.decode(envelope.object))
            metadata = _metas.decode(envelope.object).metadata
        except msgspec.DecodeError as broken:
            raise UndecodableResponse(f"a line of the watch is not an event ({broken}): {line[:200]!r}") from broken
        if envelope.type == "BOOKMARK":
            return Bookmark(metadata.resource_version)
        if envelope.type not in ("ADDED", "MODIFIED", "DELETED"):
            raise UndecodableResponse(f"a line of the watch has an unknown event type {envelope.type!r}")
        kind: Any = envelope.type
        return Undecodable(kind, metadata.namespace, metadata.name, metadata.resource_version, problem)


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Sequence[bytes]]:
    """Regroup chunks into complete lines, as many at a time as each chunk completes.

    A last line without its newline is dropped: the connection broke inside it, and the server will send that event
    again to a watch that resumes from the one before.
    """
    rest: list[bytes] = []
    async for chunk in chunks:
        if isinstance(chunk, WholeLines) and not rest:
            yield chunk.lines
            continue
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest.append(chunk)
            continue
        rest.append(head)
        complete = b"".join(rest).split(b"\n")
        rest = [tail] if tail else []
        yield [line for line in complete if line.strip()]
