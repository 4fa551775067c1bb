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

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self._verbatim = kind.stored_as_is

    def single(self, record: Record) -> bytes:
        return record.raw if self._verbatim else _encode(self._kind.served(record.decode()))

    def many(self, records: Sequence[Record], metadata: JSON) -> bytes:
        head = _encode(
            {"kind": self._kind.list_kind, "apiVersion": self._kind.resource.api_version, "metadata": metadata}
        )
        if self._verbatim:
            items = b",".join([record.raw for record in records])
        else:
            items = b",".join([self.single(record) for record in records])
        return b'%b,"items":[%b]}' % (head[:-1], items)


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
