"""A stored object: its JSON text, and the few facts about it that are asked for all the time.

The text is encoded once, when the object is written, and the same bytes go to every reader and watcher. A reader that
wants to change the object decodes it, which gives a private copy; so nothing is ever copied deeply, and what is stored
cannot be changed by accident. It also takes a fifth of the memory of decoded objects.
"""

from collections.abc import Mapping

import msgspec

from spinney.api.keys import Key
from spinney.api.struct import JSON

_decoder = msgspec.json.Decoder(JSON)
_encoder = msgspec.json.Encoder()


class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of one object."""

    key: Key
    revision: int
    raw: bytes
    uid: str
    labels: Mapping[str, str]
    fields: tuple[str, ...]  # values of the selectable fields, in the order the collection declares them
    owners: tuple[str, ...]  # uids
    deleting: bool

    def decode(self) -> JSON:
        """Return the object as a private, mutable copy."""
        return _decoder.decode(self.raw)


def copied(obj: JSON) -> JSON:
    """Return a private copy of a decoded object, or of parts of one."""
    return _decoder.decode(_encoder.encode(obj))


_NOTHING: Mapping[str, str] = {}


def record(key: Key, revision: int, obj: JSON, fields: tuple[str, ...]) -> Record:
    """Stamp ``obj`` with its revision and encode it."""
    metadata = obj["metadata"]
    metadata["resourceVersion"] = str(revision)
    owners = metadata.get("ownerReferences")
    return Record(
        key=key,
        revision=revision,
        raw=_encoder.encode(obj),
        uid=metadata.get("uid", ""),
        labels=metadata.get("labels") or _NOTHING,
        fields=fields,
        owners=tuple(owner.get("uid", "") for owner in owners) if owners else (),
        deleting="deletionTimestamp" in metadata,
    )
