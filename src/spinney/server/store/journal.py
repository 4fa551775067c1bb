"""Keeping what was acknowledged: an append-only file of changes.

Each change is one line: a header (what happened to which object at which revision) and the object. It is handed to
the operating system before the change becomes visible, so it survives the end of the process, however that ends. A
line that was cut short was never acknowledged and is dropped when the file is read. When most lines are outdated the
file is written anew with only the living objects, and takes the old one's place in one step.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from spinney.api.struct import JSON
from spinney.server.store.collection import Collection
from spinney.server.store.history import Event
from spinney.server.store.record import Key

_OUTDATED_FACTOR = 4  # the file may have this many times as many lines as there are objects
_OUTDATED_FLOOR = 20_000  # and this many before anybody cares

Mark = Literal["put", "delete", "revision"]
_Header = tuple[Mark, str, int, str, str]


class JournalUnusable(RuntimeError):  # noqa: N818 - named for the situation
    """The journal cannot be read, or another process has it open."""


class Restorable(Protocol):
    """What a journal reads from and writes to: the store."""

    @property
    def revision(self) -> int: ...

    def collections(self) -> list[Collection]: ...

    def restore(self, entries: "list[Entry]", revision: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A journalled object."""

    collection: str
    key: Key
    revision: int
    raw: bytes

    def decode(self) -> JSON:
        """Return the object."""
        return msgspec.json.decode(self.raw, type=JSON)


class Journal:
    """An append-only file of changes; mutable, written only by its store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._open(path)
        self._lines = 0

    def restore(self, store: Restorable, *, first: str) -> bool:
        """Bring the journalled objects back into the store, those of the collection ``first`` before the others.

        Return whether there were any.
        """
        living: dict[tuple[str, Key], Entry] = {}
        revision = 0
        for mark, entry in self._read():
            revision = max(revision, entry.revision)
            if mark == "put":
                living[entry.collection, entry.key] = entry
            elif mark == "delete":
                living.pop((entry.collection, entry.key), None)
        if not living:
            return False
        ordered = sorted(living.values(), key=lambda entry: entry.revision)
        definitions = [entry for entry in ordered if entry.collection == first]
        store.restore(definitions, revision)
        store.restore([entry for entry in ordered if entry.collection != first], revision)
        return True

    def append(self, collection: str, event: Event) -> None:
        """Write a change; raise ``OSError`` if that is not possible, and then it must not happen."""
        record = event.record
        mark: Mark = "delete" if event.type == "DELETED" else "put"
        raw = b"" if mark == "delete" else record.raw
        self._write(self._file, _line((mark, collection, record.revision, *record.key), raw))
        self._lines += 1

    def shorten(self, store: Restorable) -> None:
        """Write the file anew if most of it is outdated."""
        if self._lines < _OUTDATED_FLOOR:
            return
        objects = sum(len(collection) for collection in store.collections())
        if self._lines < _OUTDATED_FACTOR * objects:
            return
        partial = self._path.with_name(self._path.name + ".new")
        partial.unlink(missing_ok=True)
        replacement = self._open(partial)
        lines = 1
        self._write(replacement, _line(("revision", "", store.revision, "", ""), b""))
        for collection in store.collections():
            for record in collection.records():
                self._write(replacement, _line(("put", collection.name, record.revision, *record.key), record.raw))
                lines += 1
        os.fsync(replacement)
        partial.replace(self._path)
        os.close(self._file)
        self._file, self._lines = replacement, lines

    def close(self) -> None:
        """Close the file and let another process have it."""
        os.close(self._file)

    @staticmethod
    def _open(path: Path) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise JournalUnusable(
                f"{path} is in use by another server; stop it, or choose another directory"
            ) from error
        return file

    @staticmethod
    def _write(file: int, line: bytes) -> None:
        start = os.lseek(file, 0, os.SEEK_END)
        if os.write(file, line) != len(line):
            os.ftruncate(file, start)
            raise OSError(f"the journal could not be written at {start}: is the disk full?")

    def _read(self) -> Iterator[tuple[Mark, Entry]]:
        with self._path.open("rb") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    os.ftruncate(self._file, whole)
                    return
                header, _, raw = line[:-1].partition(b"\t")
                try:
                    mark, collection, revision, namespace, name = msgspec.json.decode(header, type=_Header)
                except msgspec.DecodeError as error:
                    raise JournalUnusable(f"{self._path} cannot be read at byte {whole}: {error}") from error
                whole += len(line)
                self._lines += 1
                yield mark, Entry(collection, Key(namespace, name), revision, raw)


def _line(header: _Header, raw: bytes) -> bytes:
    return msgspec.json.encode(header) + b"\t" + raw + b"\n"
