"""Keeping what was acknowledged: an append-only file of changes.

Each change is one line: a checksum, a header (what happened to which object at which revision) and the object. It is
handed to the operating system before the change becomes visible, so it survives the end of the process, however that
ends. A line that was cut short was never acknowledged and is dropped when the file is read. When most lines are
outdated the file is written anew with only the living objects, and takes the old one's place in one step. Where there
is no room for a line the change does not happen; where there is none for a new file the old one goes on.

A checksum goes on from that of the line before it. So a bit that flipped, and a line that is missing, repeated or out
of place, stop the start: nothing is served that was not written.
"""

import errno
import fcntl
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import structlog

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.exchange.status import StatusError
from spinney.server.store.collection import Collection
from spinney.server.store.history import StoreEvent

log = structlog.get_logger()

_OUTDATED_FACTOR = 4  # the file may have this many times as many lines as there are objects
_OUTDATED_FLOOR = 20_000  # and this many before the file is written anew
_CHUNK = 1 << 20  # bytes that are written at once when the file is written anew

_CHECKSUM = 8  # characters, and a space after them

Mark = Literal["put", "delete", "revision"]
_Header = tuple[Mark, str, int, str, str]


class JournalUnusable(RuntimeError):
    """The journal cannot be read, or another process has it open."""


class ChangeNotKept(StatusError):
    """There is no room for a change, so it has not happened. Answered as Kubernetes answers when etcd is full."""

    def __init__(self, path: Path, cause: OSError) -> None:
        message = f"the change has not happened: {path} cannot be written ({cause.strerror}); make room and try again"
        super().__init__(500, "InternalError", message)


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
        self._partial = path.with_name(path.name + ".new")
        self._partial.unlink(missing_ok=True)  # of a process that was killed while it wrote
        self._lines = 0
        self._checksum = 0  # of the last line
        self._torn: int | None = None  # where a line begins that could be neither written nor taken back
        self._patience = 0  # lines to have before trying again to write the file anew
        self.keeping = True  # whether the last change could be written

    def restore(self, store: Restorable, *, first: str) -> bool:
        """Bring the journalled objects back into the store, those of the collection ``first`` before the others.

        Return whether there were any. A journal that cannot be read is closed.
        """
        try:
            return self._restore(store, first)
        except msgspec.DecodeError as error:
            self.close()
            raise JournalUnusable(f"{self._path} holds an object that cannot be read: {error}") from error
        except JournalUnusable:
            self.close()
            raise

    def _restore(self, store: Restorable, first: str) -> bool:
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
        store.restore([entry for entry in ordered if entry.collection == first], revision)
        store.restore([entry for entry in ordered if entry.collection != first], revision)
        return True

    def append(self, collection: str, event: StoreEvent) -> None:
        """Write a change; raise :class:`ChangeNotKept` if that is not possible, and then it must not happen."""
        record = event.record
        mark: Mark = "delete" if event.type == "DELETED" else "put"
        raw = b"" if mark == "delete" else record.raw
        try:
            self._write(_content((mark, collection, record.revision, *record.key), raw))
        except OSError as error:
            self.keeping = False
            raise ChangeNotKept(self._path, error) from error
        self._lines += 1
        self.keeping = True

    def shorten(self, store: Restorable) -> None:
        """Write the file anew if most of it is outdated; where that is not possible, go on with the old one."""
        if self._lines < max(_OUTDATED_FLOOR, self._patience):
            return
        objects = sum(len(collection) for collection in store.collections())
        if self._lines < _OUTDATED_FACTOR * objects:
            return
        try:
            self._replace(store)
        except OSError as error:
            self._patience = 2 * self._lines
            log.warning("the journal stays longer than it need be", path=str(self._path), reason=str(error))

    def _replace(self, store: Restorable) -> None:
        self._partial.unlink(missing_ok=True)
        replacement = self._open(self._partial)
        checksum = 0
        lines = 0

        def checked() -> Iterator[bytes]:
            nonlocal checksum, lines
            for content in _living(store):
                checksum = zlib.crc32(content, checksum)
                lines += 1
                yield _line(checksum, content)

        try:
            for chunk in _chunks(checked()):
                written = 0
                while written < len(chunk):
                    written += os.write(replacement, chunk[written:])
            os.fsync(replacement)
            self._partial.replace(self._path)
        except OSError:
            os.close(replacement)
            self._partial.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file, self._lines, self._torn, self._patience = replacement, lines, None, 0
        self._checksum = checksum

    def close(self) -> None:
        """Close the file and let another process have it."""
        os.close(self._file)

    @staticmethod
    def _open(path: Path) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            replaced = os.fstat(file).st_ino != path.stat().st_ino  # by its owner, before it let go of the lock
        except OSError:
            replaced = True
        if replaced:
            os.close(file)
            raise JournalUnusable(f"{path} is in use by another server; stop it, or choose another directory")
        return file

    def _write(self, content: bytes) -> None:
        """Write a whole line or nothing."""
        checksum = zlib.crc32(content, self._checksum)
        line = _line(checksum, content)
        if self._torn is not None:
            os.ftruncate(self._file, self._torn)
            self._torn = None
        start = os.lseek(self._file, 0, os.SEEK_END)
        if os.write(self._file, line) == len(line):
            self._checksum = checksum
            return
        self._torn = start
        os.ftruncate(self._file, start)
        self._torn = None
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _read(self) -> Iterator[tuple[Mark, Entry]]:
        with self._path.open("rb") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    self._drop(line, whole)
                    return
                content = self._checked(line[:-1], whole)
                header, _, raw = content.partition(b"\t")
                try:
                    mark, collection, revision, namespace, name = msgspec.json.decode(header, type=_Header)
                except msgspec.DecodeError as error:
                    raise self._damaged(whole, f"a line cannot be read ({error})") from error
                whole += len(line)
                self._lines += 1
                yield mark, Entry(collection, Key(namespace, name), revision, raw)

    def _checked(self, line: bytes, start: int) -> bytes:
        """Return what a line says, its checksum compared."""
        content = line[_CHECKSUM + 1 :]
        self._checksum = zlib.crc32(content, self._checksum)
        if line != _line(self._checksum, content)[:-1]:
            raise self._damaged(start, "a checksum is another one")
        return content

    def _drop(self, line: bytes, start: int) -> None:
        """Drop a last line that was cut short, unless it is whole and only its end was damaged: it was acknowledged."""
        content = line[_CHECKSUM + 1 : -1]
        if line[:-1] == _line(zlib.crc32(content, self._checksum), content)[:-1]:
            raise self._damaged(start, "the end of the last line is another one")
        try:
            os.ftruncate(self._file, start)
        except OSError as error:
            self._torn = start
            log.warning("half a line stays in the journal until there is a change", reason=str(error))

    def _damaged(self, start: int, why: str) -> JournalUnusable:
        return JournalUnusable(
            f"{self._path} is damaged: {why}, at byte {start} (line {self._lines + 1}). Put a copy of it back; or keep "
            f"what stands before that place: head -c {start} {self._path} > journal.kept, and use that as the journal"
        )


def _content(header: _Header, raw: bytes) -> bytes:
    return msgspec.json.encode(header) + b"\t" + raw


def _line(checksum: int, content: bytes) -> bytes:
    return b"%08x %s\n" % (checksum, content)


def _living(store: Restorable) -> Iterator[bytes]:
    """Yield what the lines of a journal say that holds what lives now."""
    yield _content(("revision", "", store.revision, "", ""), b"")
    for collection in store.collections():
        for record in collection.records():
            yield _content(("put", collection.name, record.revision, *record.key), record.raw)


def _chunks(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines joined, so that a file is written in few steps and held in memory in none."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
