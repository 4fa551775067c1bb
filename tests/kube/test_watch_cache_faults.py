"""A watch cache loses nothing and repeats nothing, whatever the server does to it."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.runtime import Runtime, run_virtual
from tests.examples import examples
from tests.kube.model import THING, ModelServer, WatchFault, stopped
from tests.kube.things import Thing

names = st.sampled_from(["a", "b", "c", "d"])
# Every watch breaks, things happen unseen, and perhaps the history is forgotten or the next watch is odd too.
outages = st.tuples(
    st.sampled_from(["close", "drop", "cut", "expire"]),
    st.lists(st.tuples(st.sampled_from(["put", "remove", "recreate"]), names), max_size=4),
    st.booleans(),
    st.sampled_from([None, "replay", "expire", "close"]),
)
steps = st.one_of(
    st.tuples(st.just("put"), names),
    st.tuples(st.just("put"), names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("wait"), st.sampled_from([0.01, 1.0, 45.0, 400.0])),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(
        st.just("fault"),
        st.builds(
            WatchFault,
            st.sampled_from(["close", "drop", "cut", "expire", "garbage", "hang", "bookmarks", "replay"]),
            st.integers(0, 4),
        ),
    ),
    st.tuples(st.just("outage"), outages),
    st.tuples(st.just("list-fault"), st.sampled_from(["refuse", "expire-mid-list"])),
    st.tuples(st.just("down"), st.booleans()),
    st.tuples(st.just("race"), names),
)


class Witness:
    """Checks each change against the one before of the same key, and keeps them all."""

    def __init__(self) -> None:
        self.held: dict[Any, Thing] = {}
        self.changes: list[Change[Thing]] = []

    def __call__(self, change: Change[Thing]) -> None:
        assert self.held.get(change.key) is change.old
        if change.new is None:
            del self.held[change.key]
        else:
            if change.old is not None:
                assert change.old.metadata.uid == change.new.metadata.uid
                assert int(change.old.metadata.resource_version or 0) < int(change.new.metadata.resource_version or 0)
            self.held[change.key] = change.new
        self.changes.append(change)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, max_size=40), seed=st.integers(0, 3))
def test_every_version_is_reported_once_and_in_order(script: list[tuple[str, Any]], seed: int) -> None:
    """After any mixture of writes and faults the cache equals the server, and its reports form an unbroken chain."""
    run_virtual(_play(script, seed))


def _outage(server: ModelServer, kind: str, unseen: list[tuple[str, str]], forgotten: bool, then: str | None) -> None:
    server.interrupt(kind)
    for action, name in unseen:
        if action in ("remove", "recreate"):
            server.remove(name)
        if action in ("put", "recreate"):
            server.put(name, -1)
    if forgotten:
        server.compact()
    if then is not None:
        server.watch_faults.appendleft(WatchFault(then))


async def _play(script: list[tuple[str, Any]], seed: int) -> None:
    runtime = Runtime.virtual(seed)
    server = ModelServer(runtime)
    server.put("a", 0)
    server.put("b", 0)
    client = Client(server, runtime)
    cache = WatchCache(
        client, THING, Thing, runtime=runtime, indexes={"value": lambda thing: [thing.value]}, page_size=2
    )
    witness = Witness()
    cache.subscribe(witness)
    running = asyncio.create_task(cache.run())
    for number, (step, argument) in enumerate(script):
        match step:
            case "put":
                server.put(argument, number)
            case "remove":
                server.remove(argument)
            case "wait":
                await runtime.clock.sleep(argument)
            case "compact":
                server.compact()
            case "fault":
                server.watch_faults.append(argument)
            case "outage":
                _outage(server, *argument)
            case "list-fault":
                server.list_faults.append(argument)
            case "down":
                server.down = argument
            case "race":
                server.writes_between_pages.append(lambda name=argument, value=number: server.put(name, value))
    server.down = False
    server.watch_faults.clear()
    server.list_faults.clear()
    await runtime.clock.sleep(2000)
    await stopped(running)

    state = server.state()
    assert {key: thing.metadata.resource_version for key, thing in cache.items()} == state
    assert witness.held == dict(cache.items())
    for key, thing in cache.items():
        assert key in cache.index_keys("value", thing.value)
    reported = [(change.key, change.resource_version, change.new is None) for change in witness.changes]
    assert len(set(reported)) == len(reported)
    if len(server.listed) == 1:
        first = server.listed[0]
        assert [int(change.resource_version) for change in witness.changes if int(change.resource_version) > first] == [
            version.revision for version in server.history if version.revision > first
        ]
