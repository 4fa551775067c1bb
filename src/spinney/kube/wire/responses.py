"""Reading HTTP/1.1 answers from bytes that arrive in any pieces.

Bodies are delimited by ``content-length``, by chunks, or by the end of the connection; interim answers (``1xx``) are
passed over; gzip is undone. A body can also be taken as it arrives. Anything that is not HTTP is refused rather than
guessed at, and nothing may follow an answer, because nothing was asked yet: a connection on which bytes are left over
is not used again.
"""

import zlib
from collections.abc import Mapping
from functools import lru_cache

from spinney.kube.transport import Response, joined

HEAD_LIMIT = 1 << 16

_BODILESS = frozenset({204, 304})


class MalformedResponse(Exception):
    """What the server sent is not an HTTP answer."""


class ResponseReader:
    """Reads one answer, ``bodiless`` that of a HEAD. Mutable: bytes are fed until :attr:`answer` is there."""

    __slots__ = (
        "_bodiless",
        "_chunked",
        "_coded",
        "_headers",
        "_parts",
        "_status",
        "_waiting",
        "_wanted",
        "answer",
        "reusable",
    )

    def __init__(self, *, bodiless: bool = False) -> None:
        self.answer: Response | None = None
        self.reusable = True
        """Whether the connection can carry another request once the answer is there."""
        self._waiting = b""
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._wanted: int | None = None
        self._chunked = False
        self._coded = False
        self._bodiless = bodiless

    def feed(self, data: bytes) -> Response | None:
        """Take in the next bytes; return the answer if they complete it."""
        if self._status:
            self._body(data)
        else:
            self._head(data)
        return self.answer

    def end(self) -> Response | None:
        """Take in that the connection has ended; return the answer if that completes it."""
        if self._status and not self._chunked and self._wanted is None and self.answer is None:
            self.reusable = False
            self._complete()
        return self.answer

    @property
    def head(self) -> tuple[int, Mapping[str, str]] | None:
        """Return status and headers, once they are there."""
        return (self._status, self._headers) if self._status else None

    def taken(self) -> bytes:
        """Return what has come of the body since the last call, undone of chunks but not of gzip."""
        if self._coded:
            raise MalformedResponse("a body that is read as it arrives is in gzip, which was not asked for")
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # -- head --------------------------------------------------------------------------------------------------------

    def _head(self, data: bytes) -> None:
        data = self._waiting + data if self._waiting else data
        while not self._status:
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                if len(head) > HEAD_LIMIT:
                    raise MalformedResponse(f"no end of the headers in {len(head)} bytes: {head[:80]!r}...")
                self._waiting = head
                return
            self._read_head(head)
        self._waiting = b""
        self._body(data)

    def _read_head(self, head: bytes) -> None:
        first, _, rest = head.decode("latin-1").partition("\r\n")
        version, _, status = first.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not status[:3].isdecimal():
            raise MalformedResponse(f"expected a status line, found {first[:80]!r}")
        code = int(status[:3])
        if 100 <= code < 200:
            return
        lines = rest.split("\r\n") if rest else []
        headers = dict(map(_header, lines))
        if len(headers) < len(lines):  # rare, so the others are spared the slower way
            headers = joined(map(_header, lines))
        self._status = code
        self._headers = headers
        self.reusable = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        self._measure()

    def _measure(self) -> None:
        headers = self._headers
        self._coded = headers.get("content-encoding", "") == "gzip"
        transfer = headers.get("transfer-encoding", "").lower()
        if transfer not in ("", "chunked"):
            raise MalformedResponse(f"expected chunked as transfer-encoding, found {transfer[:80]!r}")
        self._chunked = bool(transfer)
        length = headers.get("content-length")
        if self._bodiless or self._status in _BODILESS:
            self._wanted, self._chunked = 0, False
        elif not self._chunked and length is not None:
            if not length.isdecimal():
                raise MalformedResponse(f"expected a number as content-length, found {length[:80]!r}")
            self._wanted = int(length)

    # -- body --------------------------------------------------------------------------------------------------------

    def _body(self, data: bytes) -> None:
        if self._chunked:
            self._chunks(data)
            return
        if data:
            self._parts.append(data)
        if self._wanted is None:
            return
        self._wanted -= len(data)
        if self._wanted < 0:
            raise MalformedResponse(f"{-self._wanted} bytes follow an answer, and nothing was asked")
        if not self._wanted:
            self._complete()

    def _chunks(self, data: bytes) -> None:
        data = self._waiting + data if self._waiting else data
        start = 0
        while (line_end := data.find(b"\r\n", start)) >= 0:
            size = _chunk_size(data[start:line_end])
            if size == 0:
                self._trailers(data, line_end)
                return
            after = line_end + 2 + size
            if len(data) < after + 2:
                break
            if data[after : after + 2] != b"\r\n":
                raise MalformedResponse(f"a chunk of {size} bytes is longer than it says")
            self._parts.append(data[line_end + 2 : after])
            start = after + 2
        self._waiting = data[start:]

    def _trailers(self, data: bytes, line_end: int) -> None:
        """Pass over what may follow the last chunk, up to an empty line."""
        end = data.find(b"\r\n\r\n", line_end)
        if end < 0:
            self._waiting = b"0" + data[line_end:]
            return
        if len(data) > end + 4:
            raise MalformedResponse(f"{len(data) - end - 4} bytes follow an answer, and nothing was asked")
        self._complete()

    def _complete(self) -> None:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        if self._coded and body:
            try:
                body = zlib.decompress(body, 31)
            except zlib.error as problem:
                raise MalformedResponse(f"the body is not gzip, as its header says: {problem}") from problem
        self.answer = Response(self._status, self._headers, body)


@lru_cache(maxsize=512)  # a server sends the same lines with every answer
def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise MalformedResponse(f"expected a header, found {line[:80]!r}")
    return name.lower(), value.strip()


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    try:
        size = int(digits, 16)
    except ValueError:
        size = -1
    if size < 0:
        raise MalformedResponse(f"expected the size of a chunk, found {line[:80]!r}")
    return size
