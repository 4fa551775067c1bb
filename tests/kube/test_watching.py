"""Lines and events of a watch."""

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core import Pod
from spinney.api.lines import WholeLines
from spinney.grouping.owners import Owner
from spinney.kube.errors import Expired, UndecodableResponse
from spinney.kube.pages import decode_page
from spinney.kube.watching import Bookmark, EventDecoder, Undecodable, WatchEvent, lines
from spinney.runtime import run_virtual
from tests.kube.model import status_body


async def _chunks(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_lines_that_came_whole_are_passed_on_as_they_are() -> None:
    """Who is sent the same line twice in this process gets the same object, unless it came in pieces."""
    sent = [b"one\n", b"two\n"]

    async def read(*chunks: bytes) -> list[bytes]:
        return [line async for batch in lines(_chunks(chunks)) for line in batch]

    whole = run_virtual(read(WholeLines.of(sent), b"th", b"ree\n", WholeLines.of(sent)))
    assert [line.strip() for line in whole] == [b"one", b"two", b"three", b"one", b"two"]
    assert whole[0] is sent[0]
    assert whole[-1] is sent[1]
    assert run_virtual(read(b"ze", WholeLines.of(sent))) == [b"zeone", b"two"]


def test_empty_lines_keep_a_watch_alive_and_say_nothing() -> None:
    """Proxies send them, so that a quiet connection is not taken for a dead one."""

    async def read(*chunks: bytes) -> list[bytes]:
        return [line async for batch in lines(_chunks(chunks)) for line in batch]

    assert run_virtual(read(b"\n", b"one\n\r\n", b"\ntwo\n")) == [b"one", b"two"]


@given(
    documents=st.lists(st.binary(min_size=1).map(lambda raw: raw.replace(b"\n", b"x").strip() or b"x"), max_size=8),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    broken=st.booleans(),
)
def test_lines_survive_any_cut(documents: list[bytes], cuts: list[int], broken: bool) -> None:
    """Wherever the stream is cut into chunks the same lines come out, and a last broken one is dropped."""
    stream = b"".join(document + b"\n" for document in documents)
    if broken and stream:
        stream = stream[:-1]
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    parts = [stream[a:b] for a, b in itertools.pairwise(places)]

    async def main() -> list[bytes]:
        return [line async for batch in lines(_chunks(parts)) for line in batch]

    assert run_virtual(main()) == (documents[:-1] if broken and documents else documents)


def test_an_object_that_is_nested_too_deep_is_read_without_its_depths() -> None:
    """API servers store ten thousand levels where a CRD has no schema; the object and those beside it are read."""
    deep = b"[" * 5000 + b'{"a":"]"}' + b"]" * 5000
    odd = b'{"metadata":{"name":"odd","resourceVersion":"7"},"spec":{"text":"[\\"{","deep":%b,"after":1}}' % deep
    event = EventDecoder(Owner).decode(b'{"type":"ADDED","object":%b}' % odd)
    assert isinstance(event, WatchEvent)
    assert (event.object.metadata.name, event.object.spec["text"], event.object.spec["after"]) == ("odd", '["{', 1)
    sound = b'{"metadata":{"name":"sound","resourceVersion":"8"},"spec":{"replicas":2}}'
    page = decode_page(b'{"metadata":{"resourceVersion":"8"},"items":[%b,%b]}' % (odd, sound), Owner, request="GET")
    assert [each.metadata.name for each in page.items] == ["odd", "sound"]
    assert page.items[1].spec == {"replicas": 2}


def test_an_object_event_is_decoded_into_its_type() -> None:
    """ADDED, MODIFIED and DELETED carry the object as the type asked for."""
    event = EventDecoder(Pod).decode(
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"nodeName":"n1"}}}'
    )
    assert isinstance(event, WatchEvent)
    assert (event.type, event.object.metadata.name, event.object.spec.node_name) == ("MODIFIED", "a", "n1")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","creationTimestamp":null},'
        b'"spec":{"containers":null},"status":{}}}',
        b'{ "object": {"metadata": {"resourceVersion": "9"}, "spec": {"containers": null}}, "type": "BOOKMARK" }',
    ],
    ids=["as an API server writes it", "in another order"],
)
def test_a_bookmark_need_not_look_like_the_object(line: bytes) -> None:
    """A pod bookmark with containers null is a bookmark, not an error."""
    assert EventDecoder(Pod).decode(line) == Bookmark("9")


def test_an_error_event_raises_what_it_carries() -> None:
    """A 410 inside the stream is the same error as a 410 before it."""
    with pytest.raises(Expired, match="too old"):
        EventDecoder(Pod).decode(b'{"type":"ERROR","object":%b}' % status_body(410, "Expired", "too old"))


def test_an_object_of_another_shape_is_named() -> None:
    """An object that does not decode is reported with its name and what is wrong, not raised."""
    event: Any = EventDecoder(Pod).decode(
        b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"x","resourceVersion":"3"},"spec":{"nodeName":5}}}'
    )
    assert isinstance(event, Undecodable)
    assert (event.namespace, event.name, event.resource_version) == ("x", "a", "3")
    assert "nodeName" in event.problem


@pytest.mark.parametrize("line", [b"<html>bad gateway</html>", b'{"type":"SURPRISE","object":{}}', b'{"type":5}'])
def test_anything_else_is_refused(line: bytes) -> None:
    """What is not an event raises and shows what came."""
    with pytest.raises(UndecodableResponse):
        EventDecoder(Pod).decode(line)
