"""Collections as a server lists them: whole, or page by page.

One object that is not of the type asked for does not cost the page it is on: it is told apart, and the reader of the
page says what becomes of it.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.depths import decoded
from spinney.kube.errors import UndecodableResponse
from spinney.kube.watching import EventDecoder, Undecodable, WatchEvent

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=JSON)
else:
    from typing import TypeVar

    T = TypeVar("T")


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A collection at one resource version, from which a watch can go on without a gap."""

    items: tuple[T, ...]
    resource_version: str


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a collection; ``token`` is empty on the last one.

    ``undecodable`` holds the objects that are not of the type asked for.
    """

    items: Sequence[T]
    resource_version: str
    token: str = ""
    undecodable: tuple[Undecodable, ...] = ()


def decode_page(body: bytes, kind: type[T], *, request: str) -> Page[T]:
    """Decode a page; if an object in it is not of the type, decode the others one by one."""
    return decoded(body, lambda text: _decode_page(text, kind, request))


def _decode_page(body: bytes, kind: type[T], request: str) -> Page[T]:
    hashable: Any = kind  # mypy does not see that a type is
    try:
        listed: _List[T] = _list_decoder(hashable).decode(body)
        return Page(listed.items or (), listed.metadata.resource_version, listed.metadata.token)
    except msgspec.DecodeError:
        pass  # either not a list at all, or one object in it is not of the type
    try:
        raw: _List[msgspec.Raw] = _list_decoder(msgspec.Raw).decode(body)
    except msgspec.DecodeError as problem:
        raise UndecodableResponse(f"{request} did not answer with a list: {problem}; got {body[:200]!r}") from problem
    one = EventDecoder(kind)
    items: list[T] = []
    undecodable: list[Undecodable] = []
    for item in raw.items or ():
        event = one.decode(b'{"type":"ADDED","object":%b}' % bytes(item))
        if isinstance(event, WatchEvent):
            items.append(event.object)
        elif isinstance(event, Undecodable):
            undecodable.append(event)
    return Page(items, raw.metadata.resource_version, raw.metadata.token, tuple(undecodable))


def refuse(undecodable: Sequence[Undecodable], resource: Resource) -> None:
    """Raise for the first of the objects that are not of the type asked for."""
    for item in undecodable:
        raise UndecodableResponse(
            f"{resource.kind} {item.namespace}/{item.name} does not have the expected shape: {item.problem}"
        )


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(default="", name="continue")


class ListHead(msgspec.Struct):
    """What a list says of itself, without what is in it."""

    metadata: _Metadata


class _List(msgspec.Struct, Generic[T]):
    """Every list says both; what says neither is of a gateway, and no empty cluster."""

    metadata: _Metadata
    items: list[T] | None


@functools.cache
def _list_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_List[kind])
