"""Watching: the changes of a collection as a stream, from now or from a revision on.

The stream reads the collection's history with a cursor of its own. Events that are ready together go out in one
chunk. An object that leaves the selection is sent as DELETED, one that enters it as ADDED.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from spinney.api.lines import WholeLines
from spinney.api.struct import JSON
from spinney.server.exchange.status import bad_request, expired
from spinney.server.operations.context import Context, Target
from spinney.server.operations.reading import bad_option, check_revision, current
from spinney.server.operations.representation import Representation
from spinney.server.operations.selection import CompiledSelectors, selection
from spinney.server.store import Record, StoreEvent, TooOld
from spinney.server.store.history import EventType, WatchHistory

_BATCH = 256  # events per chunk
_END_ANNOTATION = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch asks for."""

    selected: CompiledSelectors
    revision: int | None  # None: the present state first
    bookmarks: bool
    marks_end: bool  # a bookmark says when the present state is complete
    timeout: float


def watch_request(context: Context, target: Target, query: Mapping[str, str]) -> WatchRequest:
    """Read and check the parameters of a watch."""
    selected = selection(target.kind, query, target.name)
    bookmarks = query.get("allowWatchBookmarks") in {"true", "1"}
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents")
    if initial is None and match:
        raise bad_option(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if initial is not None and match != "NotOlderThan":
        raise bad_option(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    wants_state = initial in {"true", "1"} or (initial is None and text in {"", "0"})
    revision = None
    if text not in {"", "0"}:
        revision = check_revision(context, text)
    if wants_state:
        revision = None
    elif revision is None:
        revision = context.store.revision
    seconds = query.get("timeoutSeconds", "")
    if seconds and not seconds.isdecimal():
        raise bad_request(f"timeoutSeconds: Invalid value: {seconds!r}: must be a whole number")
    timeout = float(seconds) if seconds and seconds != "0" else context.options.watch_timeout.total_seconds()
    return WatchRequest(selected, revision, bookmarks, bookmarks and initial in {"true", "1"}, timeout)


async def watch(
    context: Context, target: Target, request: WatchRequest, representation: Representation
) -> AsyncIterator[bytes]:
    """Yield chunks of newline-delimited watch events until the timeout, or until the history is lost."""
    history = context.collection(target.kind).history
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.timeout
    every = context.options.bookmark_interval.total_seconds() if request.bookmarks else request.timeout
    try:
        if request.revision is None:
            selected = request.selected
            found = current(context, target, selected)
            records = list(found) if selected.everything else [each for each in found if selected.matches(each)]
            cursor, revision = history.end, context.store.revision
            for start in range(0, len(records), _BATCH):
                yield WholeLines.of([representation.event("ADDED", each) for each in records[start : start + _BATCH]])
            if request.marks_end:
                yield _bookmark(representation, revision, {_END_ANNOTATION: "true"})
        else:
            cursor = history.cursor_after(request.revision)
        marked = loop.time()
        while (now := loop.time()) < deadline:
            if events := history.read(cursor, _BATCH):
                cursor += len(events)
                if lines := [*_lines(history, events, target, request.selected, representation)]:
                    yield WholeLines.of(lines)
                else:
                    await asyncio.sleep(0)  # nothing for this watcher, however much there is: let others run
            elif request.bookmarks and now >= marked + every:
                marked = now
                yield _bookmark(representation, context.store.revision)
            else:
                await _changed(history, min(deadline, marked + every) - now)
        if request.bookmarks and cursor == history.end:
            yield _bookmark(representation, context.store.revision)
    except TooOld as error:
        yield msgspec.json.encode({"type": "ERROR", "object": expired(str(error)).to_json()}) + b"\n"


async def _changed(history: WatchHistory, timeout: float) -> None:
    """Wait for the next event, or for ``timeout`` seconds."""
    waiter = history.changed()
    timer = asyncio.get_running_loop().call_later(timeout, history.let_go, waiter)
    try:
        await waiter
    finally:
        timer.cancel()
        history.forget(waiter)


def _lines(
    history: WatchHistory,
    events: list[StoreEvent],
    target: Target,
    selected: CompiledSelectors,
    representation: Representation,
) -> Iterator[bytes]:
    namespace, everything = target.namespace, selected.everything

    def line(kind: EventType, record: Record) -> bytes:
        return history.line(kind, record, representation.event) if verbatim else representation.event(kind, record)

    verbatim = representation.verbatim
    for event in events:
        if namespace is not None and event.record.key.namespace != namespace:
            continue
        if everything:
            yield line(event.type, event.record)
            continue
        before = event.previous is not None and selected.matches(event.previous)
        if event.type == "DELETED":
            if before:
                yield line("DELETED", event.record)
            continue
        after = selected.matches(event.record)
        if after:
            yield line("MODIFIED" if before else "ADDED", event.record)
        elif before and event.previous is not None:
            yield representation.event("DELETED", _left(event.previous, event.revision))


def _left(previous: Record, revision: int) -> Record:
    """Return the last state that was selected, with the revision at which it left."""
    obj = previous.decode()
    obj["metadata"]["resourceVersion"] = str(revision)
    return msgspec.structs.replace(previous, revision=revision, raw=msgspec.json.encode(obj))


def _bookmark(representation: Representation, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
    metadata: JSON = {"resourceVersion": str(revision), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    return representation.bookmark(metadata)
