"""How objects are shown: as they are, by their metadata only, or as rows of a table.

A representation turns records into the bytes of single objects, lists and watch events. The plain one hands out the
stored bytes; it decodes only when the version served is not the one stored.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from spinney.api.struct import JSON
from spinney.server.kinds import Kind
from spinney.server.store import Record

_encode = msgspec.json.encode


class Representation(ABC):
    """A way of showing the objects of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    @property
    def verbatim(self) -> bool:
        """Whether objects are shown as they are stored."""
        return False

    @abstractmethod
    def single(self, record: Record) -> bytes:
        """Return one object."""

    @abstractmethod
    def many(self, records: Sequence[Record], metadata: JSON) -> bytes:
        """Return a list of objects with its list metadata."""

    def event(self, event: str, record: Record) -> bytes:
        """Return one line of a watch."""
        return b'{"type":"%b","object":%b}\n' % (event.encode(), self.single(record))

    def bookmark(self, metadata: JSON) -> bytes:
        """Return a bookmark line of a watch."""
        resource = self._kind.resource
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return _encode({"type": "BOOKMARK", "object": obj}) + b"\n"


class Plain(Representation):
    """Objects as they are."""

    @property
    def verbatim(self) -> bool:
        return self._kind.stored_as_is

    def single(self, record: Record) -> bytes:
        return record.raw if self.verbatim else _encode(self._kind.served(record.decode()))

    def many(self, records: Sequence[Record], metadata: JSON) -> bytes:
        head = _encode(
            {"kind": self._kind.list_kind, "apiVersion": self._kind.resource.api_version, "metadata": metadata}
        )
        items = [record.raw for record in records] if self.verbatim else [self.single(record) for record in records]
        if self._kind.custom or not items:
            return b'%b,"items":[%b]}' % (head[:-1], b",".join(items))
        # The list of a built-in kind says for all its items what they are, and stored objects begin with it.
        begin = _encode({"kind": self._kind.resource.kind, "apiVersion": self._kind.resource.api_version})[:-1] + b","
        length = len(begin)
        rest = [item[length:] if item.startswith(begin) else _without_envelope(item) for item in items]
        rest[0] = b'%b,"items":[{%b' % (head[:-1], rest[0])
        rest[-1] += b"]}"
        return b",{".join(rest)  # which copies a large list once


def _without_envelope(item: bytes) -> bytes:
    """Return what follows the brace of an object that does not say what it is, whatever its order."""
    found: JSON = msgspec.json.decode(item)
    return _encode({name: value for name, value in found.items() if name not in {"kind", "apiVersion"}})[1:]


class MetadataOnly(Representation):
    """Objects reduced to their metadata (``PartialObjectMetadata``)."""

    def single(self, record: Record) -> bytes:
        return _encode(self._partial(record))

    def many(self, records: Sequence[Record], metadata: JSON) -> bytes:
        items = [self._partial(record) for record in records]
        return _encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            }
        )

    def bookmark(self, metadata: JSON) -> bytes:
        obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return _encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    @staticmethod
    def _partial(record: Record) -> JSON:
        metadata = record.decode()["metadata"]
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
