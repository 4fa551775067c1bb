"""Expectations: a reconcile does not act on a cache that has not shown its own writes yet."""

import asyncio

import pytest
from msgspec.structs import replace

from spinney.api.keys import Key
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue, to_controller_of
from spinney.kube.errors import InternalError
from spinney.kube.expectations import Expectations
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer, stopped
from tests.kube.things import Thing, a_cache, a_thing
from tests.virtual_time import on_virtual_time

OWNER = Key("x", "owner")


def added(thing: Thing) -> Change[Thing]:
    """Return the change that brings ``thing`` into the cache."""
    return Change(Key("x", thing.metadata.name), None, thing, "1")


@on_virtual_time
async def test_a_creation_is_awaited_until_the_cache_shows_its_uid() -> None:
    """From the announcement until the cache shows the very object, the owner is not satisfied."""
    expectations = Expectations(Runtime.virtual())
    with expectations.creating(OWNER) as creation:
        assert not expectations.is_satisfied(OWNER)
        creation.created("u1")
    expectations.observe(added(a_thing(uid="somebody-elses")))
    assert not expectations.is_satisfied(OWNER)
    expectations.observe(added(a_thing(uid="u1")))
    assert expectations.is_satisfied(OWNER)


@on_virtual_time
async def test_an_event_that_overtakes_the_response_counts() -> None:
    """If the watch reports the object before the request returns, nothing more is awaited."""
    expectations = Expectations(Runtime.virtual())
    with expectations.creating(OWNER) as creation:
        expectations.observe(added(a_thing(uid="u1")))
        creation.created("u1")
    assert expectations.is_satisfied(OWNER)


@on_virtual_time
async def test_a_failed_creation_is_withdrawn() -> None:
    """A request that raised leaves nothing to wait for."""
    expectations = Expectations(Runtime.virtual())
    with pytest.raises(InternalError), expectations.creating(OWNER):
        raise InternalError(500)
    assert expectations.is_satisfied(OWNER)


@on_virtual_time
async def test_a_deletion_is_awaited_until_the_object_goes_or_is_marked() -> None:
    """A deletion counts as shown when the object is terminating or gone, and not when it merely changes."""
    runtime = Runtime.virtual()
    expectations = Expectations(runtime)
    thing = a_thing(uid="u1")
    for shown in (
        replace(thing, metadata=replace(thing.metadata, deletion_timestamp=runtime.clock.now())),
        None,
    ):
        with expectations.deleting(OWNER, "u1"):
            pass
        expectations.observe(Change(Key("x", "a"), thing, thing, "2"))
        assert not expectations.is_satisfied(OWNER)
        expectations.observe(Change(Key("x", "a"), thing, shown, "3"))
        assert expectations.is_satisfied(OWNER)


@on_virtual_time
async def test_a_failed_deletion_is_withdrawn() -> None:
    """A delete that raised leaves nothing to wait for."""
    expectations = Expectations(Runtime.virtual())
    with pytest.raises(InternalError), expectations.deleting(OWNER, "u1"):
        raise InternalError(500)
    assert expectations.is_satisfied(OWNER)


@on_virtual_time
async def test_expectations_expire() -> None:
    """What the cache never shows is given up after five minutes, so that an owner is not stuck for ever."""
    runtime = Runtime.virtual()
    expectations = Expectations(runtime)
    with expectations.creating(OWNER) as creation:
        creation.created("u1")
    await runtime.clock.sleep(299)
    assert not expectations.is_satisfied(OWNER)
    await runtime.clock.sleep(2)
    assert expectations.is_satisfied(OWNER)


@pytest.mark.parametrize("guarded", [True, False], ids=["with expectations", "without"])
@on_virtual_time
async def test_a_slow_watch_does_not_lead_to_duplicates(guarded: bool) -> None:
    """A controller whose cache lags creates exactly what is wanted; without expectations it would create more."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    cache = a_cache(server, runtime)
    expectations = Expectations(runtime)

    async def reconcile(key: Key) -> Requeue | None:
        if key.name != "owner" or (guarded and not expectations.is_satisfied(key)):
            return None
        children = [thing for thing in cache.values() if thing.metadata.owner_references]
        for _ in range(3 - len(children)):
            child = a_thing(f"child-{runtime.random.getrandbits(32):08x}", owner="owner")
            with expectations.creating(key) as creation:
                created = await client.create(THING, replace(child, metadata=replace(child.metadata, uid=None)))
                creation.created(created["metadata"]["uid"])
        return None

    controller = Controller("children", reconcile, runtime=runtime)
    controller.watch(cache)
    controller.watch(cache, to_controller_of(THING))
    cache.subscribe(expectations.observe)
    server.put("owner", 1)
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(controller.run())]
    await cache.wait_for_sync()
    server.lag = 5.0
    for _ in range(20):
        controller.enqueue(OWNER)
        await runtime.clock.sleep(0.5)
    await runtime.clock.sleep(60)
    children = [path for path in server.objects if "child-" in path]
    assert (len(children) == 3) is guarded
    for task in tasks:
        await stopped(task)
