"""HTTP answers are read whole, however they arrive, and what is no answer is refused."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.kube.transport import Response
from spinney.kube.wire.responses import MalformedResponse, ResponseReader

BODIES = st.binary(max_size=300)


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(body: bytes, sizes: list[int]) -> bytes:
    """Return the body in chunks of the given sizes, the rest in one more, with a chunk extension and a trailer."""
    parts, rest = [], body
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        parts.append(part)
    parts.append(rest)
    written = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts if part)
    return b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" + written + b"0\r\nTrailer: x\r\n\r\n"


def read(data: bytes, cuts: list[int]) -> Response:
    """Feed an answer in pieces; it must be complete with the last byte and not before."""
    reader = ResponseReader()
    edges = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(edges)]
    for piece in pieces[:-1]:
        assert reader.feed(piece) is None
    answer = reader.feed(pieces[-1])
    assert answer is not None
    assert reader.reusable
    return answer


@given(body=BODIES, cuts=st.lists(st.integers(0, 400)))
def test_a_measured_body_is_read_from_any_pieces(body: bytes, cuts: list[int]) -> None:
    """An answer with a length is the same wherever the network cuts it."""
    answer = read(plain(body), cuts)
    assert (answer.status, answer.body) == (200, body)
    assert answer.headers == {"content-type": "application/json", "content-length": str(len(body))}


@given(body=BODIES, sizes=st.lists(st.integers(1, 50), max_size=5), cuts=st.lists(st.integers(0, 600)))
def test_a_chunked_body_is_read_from_any_pieces(body: bytes, sizes: list[int], cuts: list[int]) -> None:
    """Chunks, their extensions and trailers are undone wherever the network cuts them."""
    answer = read(chunked(body, sizes), cuts)
    assert (answer.status, answer.body) == (201, body)


def test_a_compressed_body_is_unpacked() -> None:
    """A gzip body comes back as what was packed."""
    packed = gzip.compress(b"x" * 5000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    assert read(head + packed, []).body == b"x" * 5000


def test_every_value_of_a_repeated_header_is_kept() -> None:
    """A header that comes several times has all its values, in order, and the others are as they came."""
    head = b'HTTP/1.1 200 OK\r\nWarning: 299 - "a"\r\nDate: now\r\nwarning: 299 - "b"\r\nContent-Length: 0\r\n\r\n'
    assert read(head, []).headers == {"warning": '299 - "a", 299 - "b"', "date": "now", "content-length": "0"}


def test_interim_answers_are_passed_over() -> None:
    """A 100 Continue before the answer is not taken for it."""
    assert read(b"HTTP/1.1 100 Continue\r\n\r\n" + plain(b"{}"), [10, 25, 40]).body == b"{}"


def test_answers_without_a_body_end_with_their_head() -> None:
    """204, 304 and the answer to a HEAD have no body, whatever their headers say."""
    assert ResponseReader().feed(b"HTTP/1.1 204 No Content\r\n\r\n") is not None
    assert ResponseReader(bodiless=True).feed(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n") is not None


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    """Such an answer is complete when the connection ends, and the connection is not used again."""
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nabc") is None
    answer = reader.end()
    assert answer is not None
    assert answer.body == b"abc"
    assert not reader.reusable


def test_an_answer_that_is_cut_off_is_none() -> None:
    """When the connection ends inside a measured or chunked body, there is no answer."""
    for cut in (plain(b"abcdef")[:-3], chunked(b"abcdef", [])[:-4], b"HTTP/1.1 200 OK\r\n"):
        reader = ResponseReader()
        assert reader.feed(cut) is None
        assert reader.end() is None


@pytest.mark.parametrize(
    "head", [b"Connection: close\r\n", b"connection: Close\r\n", b"Connection: TE\r\nConnection: close\r\n"]
)
def test_a_server_that_wants_to_close_is_believed(head: bytes) -> None:
    """After ``connection: close`` the connection carries nothing more."""
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + head + b"\r\n") is not None
    assert not reader.reusable


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        b"A" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(nonsense: bytes) -> None:
    """Nothing is guessed from bytes that are not HTTP."""
    with pytest.raises(MalformedResponse):
        ResponseReader().feed(nonsense)
