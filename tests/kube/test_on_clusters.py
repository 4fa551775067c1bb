"""The client, cache, lease and events on an embedded and on a real API server."""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from spinney.api.coordination import LEASE, Lease
from spinney.api.core import CONFIG_MAP, EVENT, NODE, POD, Node, Pod
from spinney.api.keys import Key
from spinney.api.meta import ObjectMeta
from spinney.api.struct import Struct
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client, PatchKind
from spinney.kube.discovery import served
from spinney.kube.errors import AlreadyExists, Conflict, Expired, Forbidden, Invalid, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.lease import LeaderElection
from spinney.kube.reconciling import add_finalizer, remove_finalizer
from tests.conftest import Cluster
from tests.kube.model import stopped


class ConfigMap(Struct, frozen=True, kw_only=True):
    """A config map."""

    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}


def a_config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a config map without a namespace."""
    return {"metadata": {"name": name}, "data": data}


async def until(cache: WatchCache[Any], condition: Any) -> None:
    """Wait until the cache meets a condition."""
    met = asyncio.Event()

    def check(_: Any = None) -> None:
        if condition():
            met.set()

    unsubscribe = cache.subscribe(check)
    check()
    async with asyncio.timeout(60):
        await met.wait()
    unsubscribe()


async def test_objects_are_written_and_read(cluster: Cluster) -> None:
    """Create, get, replace, patch, apply and delete do what they say, and refusals are typed."""
    client, namespace = cluster.client, cluster.namespace
    created = await client.create(CONFIG_MAP, a_config_map("a", x="1"), namespace, type=ConfigMap)
    assert created.metadata.uid
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, a_config_map("a"), namespace)
    stale = await client.get(CONFIG_MAP, "a", namespace)
    assert (await client.patch(CONFIG_MAP, "a", {"data": {"y": "2"}}, namespace))["data"] == {"x": "1", "y": "2"}
    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAP, stale, namespace)
    patch = [{"op": "remove", "path": "/data/x"}]
    assert (await client.patch(CONFIG_MAP, "a", patch, namespace, kind=PatchKind.JSON))["data"] == {"y": "2"}
    applied = await client.apply(CONFIG_MAP, a_config_map("a", z="3"), namespace, field_manager="other")
    assert applied["data"] == {"y": "2", "z": "3"}
    applied = await client.apply(CONFIG_MAP, a_config_map("a"), namespace, field_manager="other")
    assert applied["data"] == {"y": "2"}
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAP, "a", namespace, uid="11111111-2222-3333-4444-555555555555")
    await client.delete(CONFIG_MAP, "a", namespace, uid=created.metadata.uid)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "a", namespace)
    with pytest.raises(Invalid):
        await client.create(CONFIG_MAP, a_config_map("Not A Name"), namespace)


async def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    """A dry run answers as the real thing would, and stores nothing."""
    body = a_config_map("dry", x="1")
    assert (await cluster.client.create(CONFIG_MAP, body, cluster.namespace, dry_run=True))["data"] == {"x": "1"}
    with pytest.raises(NotFound):
        await cluster.client.get(CONFIG_MAP, "dry", cluster.namespace)


async def test_every_warning_is_heard(cluster: Cluster) -> None:
    """A write that the server has several things to say about passes on each of them."""
    heard: list[str] = []
    client = Client(cluster.client.transport, cluster.runtime, on_warning=heard.append, field_validation="Warn")
    await client.create(CONFIG_MAP, {"metadata": {"name": "odd"}, "one": 1, "two": 2}, cluster.namespace)
    assert sorted(heard) == ['unknown field "one"', 'unknown field "two"']


async def test_what_is_served_is_found(cluster: Cluster) -> None:
    """Kinds of several groups are told apart into those that are served and those that are not, alone or together."""
    absent = dataclasses.replace(LEASE, group="nowhere.example"), dataclasses.replace(LEASE, plural="borrowings")
    old = dataclasses.replace(LEASE, version="v1alpha0")
    assert await served(cluster.client, [POD, LEASE, *absent, old]) == {POD, LEASE}
    for resource, found in ((POD, {POD}), (absent[0], set()), (absent[1], set())):
        assert await served(cluster.client, [resource]) == found


async def test_a_long_list_is_read_in_pages(cluster: Cluster) -> None:
    """All pages together are the collection as of one version, and selectors narrow it."""
    for number in range(7):
        body = a_config_map(f"m{number}")
        body["metadata"]["labels"] = {"parity": "odd" if number % 2 else "even"}
        await cluster.client.create(CONFIG_MAP, body, cluster.namespace)
    pages = [
        page
        async for page in cluster.client.pages(
            CONFIG_MAP, cluster.namespace, type=ConfigMap, label_selector="parity", limit=3
        )
    ]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    odd = await cluster.client.list(CONFIG_MAP, cluster.namespace, type=ConfigMap, label_selector="parity=odd")
    assert [item.metadata.name for item in odd.items] == ["m1", "m3", "m5"]


async def test_a_cache_follows_the_server(cluster: Cluster) -> None:
    """A cache shows every object and version, in order, with deletions, across namespaces it watches."""
    client, namespace = cluster.client, cluster.namespace
    await client.create(CONFIG_MAP, a_config_map("early", n="0"), namespace)
    cache = WatchCache(client, CONFIG_MAP, ConfigMap, runtime=cluster.runtime, namespace=namespace, page_size=2)
    changes: list[Change[ConfigMap]] = []
    cache.subscribe(changes.append)
    running = asyncio.create_task(cache.run())
    await cache.wait_for_sync()
    assert Key(namespace, "early") in cache
    await client.create(CONFIG_MAP, a_config_map("a", n="0"), namespace)
    for number in range(1, 6):
        await client.patch(CONFIG_MAP, "a", {"data": {"n": str(number)}}, namespace)
    await client.delete(CONFIG_MAP, "a", namespace)
    await client.create(CONFIG_MAP, a_config_map("a", n="again"), namespace)
    await until(cache, lambda: (held := cache.get(Key(namespace, "a"))) is not None and held.data == {"n": "again"})
    story = [change.new.data["n"] if change.new else None for change in changes if change.key.name == "a"]
    assert story == ["0", "1", "2", "3", "4", "5", None, "again"]
    await stopped(running)


async def test_a_selection_is_followed(cluster: Cluster) -> None:
    """An object that no longer matches the selector leaves the cache, and comes back when it does."""
    client, namespace = cluster.client, cluster.namespace
    body = a_config_map("a")
    body["metadata"]["labels"] = {"keep": "yes"}
    await client.create(CONFIG_MAP, body, namespace)
    cache = WatchCache(
        client, CONFIG_MAP, ConfigMap, runtime=cluster.runtime, namespace=namespace, label_selector="keep=yes"
    )
    running = asyncio.create_task(cache.run())
    await cache.wait_for_sync()
    key = Key(namespace, "a")
    assert key in cache
    await client.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"keep": "no"}}}, namespace)
    await until(cache, lambda: key not in cache)
    await client.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"keep": "yes"}}}, namespace)
    await until(cache, lambda: key in cache)
    await stopped(running)


async def test_a_version_too_old_to_watch_from_is_expired(cluster: Cluster) -> None:
    """Version 1 is long gone on a server that has compacted, and otherwise still watchable: never an odd error."""
    try:
        async for _ in cluster.client.watch(NODE, resource_version="1", timeout_seconds=1):
            break
    except Expired:
        pass


async def test_a_pod_is_bound_once(cluster: Cluster) -> None:
    """A bind puts the pod on its node; a second one, or one for another incarnation, is a conflict."""
    client, namespace = cluster.client, cluster.namespace
    await client.create(NODE, {"metadata": {"name": "n1"}})
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"}
    pod = await client.create(POD, {"metadata": {"name": "p"}, "spec": spec}, namespace, type=Pod)
    assert pod.metadata.uid is not None
    with pytest.raises(Conflict):
        await client.bind(namespace, "p", "11111111-2222-3333-4444-555555555555", "n1")
    await client.bind(namespace, "p", pod.metadata.uid, "n1")
    with pytest.raises(Conflict):
        await client.bind(namespace, "p", pod.metadata.uid, "n2")
    assert (await client.get(POD, "p", namespace, type=Pod)).spec.node_name == "n1"
    assert (await client.get(NODE, "n1", type=Node)).metadata.name == "n1"


async def test_finalizers_hold_a_deletion(cluster: Cluster) -> None:
    """A deleted object with our finalizer stays until we take it off."""
    client, namespace = cluster.client, cluster.namespace
    created = await client.create(CONFIG_MAP, a_config_map("a"), namespace, type=ConfigMap)
    assert await add_finalizer(client, CONFIG_MAP, created, "spinney.dev/test")
    await client.delete(CONFIG_MAP, "a", namespace)
    held = await client.get(CONFIG_MAP, "a", namespace, type=ConfigMap)
    assert held.metadata.deletion_timestamp is not None
    assert await remove_finalizer(client, CONFIG_MAP, held, "spinney.dev/test")
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "a", namespace)


async def test_a_lease_is_held_and_released(cluster: Cluster) -> None:
    """The lease says who leads, and nobody after release; a second candidate then leads at once."""
    first, second = (
        LeaderElection(cluster.client, "op", cluster.namespace, identity=name, runtime=cluster.runtime)
        for name in ("first", "second")
    )
    held: list[str | None] = []

    async def look() -> None:
        lease = await cluster.client.get(LEASE, "op", cluster.namespace, type=Lease)
        held.append(lease.spec.holder_identity)

    await first.run(look)
    await look()
    await second.run(look)
    assert held == ["first", "", "second"]
    lease = await cluster.client.get(LEASE, "op", cluster.namespace, type=Lease)
    assert lease.spec.lease_transitions == 1


async def test_events_are_recorded_and_counted(cluster: Cluster) -> None:
    """An event recorded twice is one object with count 2 that names its object."""
    client, namespace = cluster.client, cluster.namespace
    created = await client.create(CONFIG_MAP, a_config_map("a"), namespace, type=ConfigMap)
    recorder = EventRecorder(client, "spinney-test")
    for _ in range(2):
        recorder.event(reference(CONFIG_MAP, created), "Normal", "Tested", "it was tested")
        await recorder.flush()
    (event,) = (await client.list(EVENT, namespace, field_selector="reason=Tested")).items
    assert (event["count"], event["message"]) == (2, "it was tested")
    assert event["involvedObject"]["uid"] == created.metadata.uid


async def test_events_of_a_namespace_that_is_going_do_not_matter(cluster: Cluster) -> None:
    """Where nothing may be created any more, or the namespace is gone, an event is dropped without a word."""
    recorder = EventRecorder(cluster.client, "spinney-test")
    about = reference(CONFIG_MAP, ConfigMap(metadata=ObjectMeta(name="a", namespace="no-such-namespace")))
    recorder.event(about, "Normal", "Tested", "nobody will read this")
    await recorder.flush()
    with pytest.raises((NotFound, Forbidden)):
        await cluster.client.create(CONFIG_MAP, a_config_map("a"), "no-such-namespace")
