"""Finalizers are added and removed without losing anybody else's."""

import pytest

from spinney.kube.client import Client
from spinney.kube.errors import Conflict
from spinney.kube.reconciling import add_finalizer, remove_finalizer
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer
from tests.kube.things import Thing
from tests.virtual_time import on_virtual_time


@on_virtual_time
async def test_a_finalizer_comes_and_goes_beside_others() -> None:
    """Ours is added once and removed once; another's stays."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    body = {"metadata": {"name": "a", "namespace": "x", "finalizers": ["other/one"]}}
    thing = await client.create(THING, body, type=Thing)
    assert await add_finalizer(client, THING, thing, "our/one")
    thing = await client.get(THING, "a", "x", type=Thing)
    assert thing.metadata.finalizers == ("other/one", "our/one")
    assert not await add_finalizer(client, THING, thing, "our/one")
    assert await remove_finalizer(client, THING, thing, "our/one")
    thing = await client.get(THING, "a", "x", type=Thing)
    assert thing.metadata.finalizers == ("other/one",)
    assert not await remove_finalizer(client, THING, thing, "our/one")


@on_virtual_time
async def test_a_stale_view_is_a_conflict() -> None:
    """If somebody wrote in between, nothing is overwritten."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    stale = await client.create(THING, {"metadata": {"name": "a", "namespace": "x"}}, type=Thing)
    await client.patch(THING, "a", {"metadata": {"finalizers": ["other/one"]}}, "x")
    with pytest.raises(Conflict):
        await add_finalizer(client, THING, stale, "our/one")


@on_virtual_time
async def test_an_object_already_gone_needs_no_removal() -> None:
    """Removing a finalizer from an object that has gone meanwhile is fine."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    body = {"metadata": {"name": "a", "namespace": "x", "finalizers": ["our/one"]}}
    thing = await client.create(THING, body, type=Thing)
    server.remove("a")
    assert not await remove_finalizer(client, THING, thing, "our/one")
