"""Watches: what is sent, from where, and what happens to those who fall behind."""

import asyncio

from spinney.server import ServerOptions
from tests.server.api import CONFIG_MAPS, PODS, Api, a_binding, a_config_map, a_pod, an_api, given_an_api

_WATCH_LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


async def test_a_watch_goes_on_where_a_list_ended(api: Api) -> None:
    """A watch from a list's revision sends exactly what changed after it, in order."""
    await api.create(CONFIG_MAPS, a_config_map("old"))
    listed = await api.get(CONFIG_MAPS)
    await api.create(CONFIG_MAPS, a_config_map("new"))
    await api.patch(f"{CONFIG_MAPS}/old", {"data": {"v": "1"}})
    await api.delete(f"{CONFIG_MAPS}/new")
    async with api.watch(CONFIG_MAPS, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        assert await watch.take(3) == [("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "new")]


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    """A streaming list sends the state, then a bookmark that says it is complete, then changes."""
    await api.create(CONFIG_MAPS, a_config_map("a"))
    async with api.watch(CONFIG_MAPS, None, **_WATCH_LIST) as watch:
        assert await watch.take(1) == [("ADDED", "a")]
        bookmark = await watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await api.create(CONFIG_MAPS, a_config_map("b"))
        assert await watch.take(1) == [("ADDED", "b")]


async def test_initial_events_need_their_match() -> None:
    """A streaming list without resourceVersionMatch is refused, so that no client waits for a bookmark in vain."""
    answer = await an_api().send("GET", CONFIG_MAPS, query={"watch": "true", "sendInitialEvents": "true"})
    assert answer.status == 422


async def test_leaving_the_selection_is_a_deletion(api: Api) -> None:
    """An object that no longer matches is DELETED for that watcher, and ADDED when it matches again."""
    await api.create(PODS, a_pod("p", labels={"app": "x"}))
    revision = (await api.get(PODS))["metadata"]["resourceVersion"]
    async with api.watch(PODS, resourceVersion=revision, labelSelector="app=x") as watch:
        await api.patch(f"{PODS}/p", {"metadata": {"labels": {"app": "y"}}})
        left = await watch.next()
        assert left["type"] == "DELETED"
        assert left["object"]["metadata"]["labels"] == {"app": "x"}
        assert int(left["object"]["metadata"]["resourceVersion"]) == api.server.context.store.revision
        await api.patch(f"{PODS}/p", {"metadata": {"labels": {"app": "x"}}})
        assert await watch.take(1) == [("ADDED", "p")]


async def test_unbound_pods_leave_when_bound(api: Api) -> None:
    """A watch of unscheduled pods sees a pod go when it is bound."""
    async with api.watch(PODS, fieldSelector="spec.nodeName=") as watch:
        await api.create(PODS, a_pod("p"))
        assert await watch.take(1) == [("ADDED", "p")]
        await api.create(f"{PODS}/p/binding", a_binding())
        assert await watch.take(1) == [("DELETED", "p")]


@given_an_api
async def test_bookmarks_and_timeout_on_virtual_time(api: Api) -> None:
    """A quiet watch sends a bookmark each minute and one at its end, when its timeout is over."""
    loop = asyncio.get_running_loop()
    async with api.watch(PODS, allowWatchBookmarks="true", timeoutSeconds="150") as watch:
        times = []
        for _ in range(3):
            assert (await watch.next())["type"] == "BOOKMARK"
            times.append(loop.time())
        assert times == [60, 120, 150]
        assert await watch.rest() == []


async def test_a_slow_watcher_is_told_to_start_over() -> None:
    """A watcher that the history has overtaken gets an expired error and the end; writers never waited for it."""
    api = an_api(ServerOptions(history=8))
    async with api.watch(CONFIG_MAPS) as watch:
        await api.create(CONFIG_MAPS, a_config_map("a"))
        assert await watch.take(1) == [("ADDED", "a")]
        for index in range(20):
            await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": str(index)}})
        (event,) = await watch.rest()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_too_old_a_revision_is_expired() -> None:
    """A watch from a compacted revision answers with an expired error at once."""
    api = an_api(ServerOptions(history=4))
    await api.create(CONFIG_MAPS, a_config_map("a"))
    for index in range(10):
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": str(index)}})
    async with api.watch(CONFIG_MAPS, resourceVersion="101") as watch:
        (event,) = await watch.rest()
        assert event["object"]["code"] == 410


async def test_one_object_is_watched_by_its_path(api: Api) -> None:
    """A watch of one object sends only that object's changes."""
    async with api.watch(f"{CONFIG_MAPS}/b") as watch:
        await api.create(CONFIG_MAPS, a_config_map("a"))
        await api.create(CONFIG_MAPS, a_config_map("b"))
        assert await watch.take(1) == [("ADDED", "b")]
