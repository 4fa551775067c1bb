"""Garbage collection, the end of namespaces and kinds, and the end of events."""

import asyncio

from tests.server.api import (
    CONFIG_MAPS,
    DEFINITIONS,
    NODES,
    PODS,
    WIDGETS,
    Api,
    a_binding,
    a_config_map,
    a_definition,
    a_pod,
    a_widget,
    an_api,
    given_an_api,
    reference_to,
)
from tests.virtual_time import on_virtual_time

_SETTLED = 1.0


async def _family(api: Api) -> None:
    owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
    child = await api.create(CONFIG_MAPS, a_config_map("child", owner))
    await api.create(CONFIG_MAPS, a_config_map("grandchild", child))
    await api.create(CONFIG_MAPS, a_config_map("stranger"))


@given_an_api
async def test_dependents_go_with_their_owner(api: Api) -> None:
    """Deleting an owner in the background takes its dependents, and theirs, and nobody else."""
    async with api.server.running():
        await _family(api)
        await api.delete(f"{CONFIG_MAPS}/owner")
        assert "owner" not in await api.names(CONFIG_MAPS)
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["stranger"]


@given_an_api
async def test_what_is_in_no_namespace_outlives_an_owner_that_is_in_one(api: Api) -> None:
    """Such an owner cannot be looked up: neither while it exists nor afterwards does its dependent go."""
    async with api.server.running():
        owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
        await api.create(NODES, {"metadata": {"name": "n", "ownerReferences": [reference_to(owner)]}})
        await asyncio.sleep(_SETTLED)
        await api.delete(f"{CONFIG_MAPS}/owner")
        await asyncio.sleep(_SETTLED)
        assert await api.names(NODES) == ["n"]


@given_an_api
async def test_foreground_deletes_dependents_first(api: Api) -> None:
    """In the foreground the owner stays, marked, until a dependent that needs time is gone."""
    async with api.server.running():
        owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
        pod = a_pod("p")
        pod["metadata"]["ownerReferences"] = [reference_to(owner)]
        await api.create(PODS, pod)
        await api.create(f"{PODS}/p/binding", a_binding())
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Foreground"})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["owner"]
        assert "deletionTimestamp" in (await api.get(f"{PODS}/p"))["metadata"]
        await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == []


@given_an_api
async def test_foreground_does_not_wait_for_what_has_another_owner(api: Api) -> None:
    """A dependent of two owners leaves the one that is being deleted, and stays with the other."""
    async with api.server.running():
        first, second = [await api.create(CONFIG_MAPS, a_config_map(name)) for name in ("first", "second")]
        owners = [reference_to(owner) | {"controller": False, "blockOwnerDeletion": True} for owner in (first, second)]
        child = a_config_map("child")
        child["metadata"]["ownerReferences"] = owners
        await api.create(CONFIG_MAPS, child)
        await api.delete(f"{CONFIG_MAPS}/first", {"propagationPolicy": "Foreground"})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["child", "second"]
        assert (await api.get(f"{CONFIG_MAPS}/child"))["metadata"]["ownerReferences"] == owners[1:]


@given_an_api
async def test_foreground_goes_on_when_a_dependent_is_taken_from_its_owner(api: Api) -> None:
    """A dependent that does not go holds its owner up only for as long as it names it."""
    async with api.server.running():
        owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
        child = a_config_map("child")
        child["metadata"] |= {
            "ownerReferences": [reference_to(owner) | {"blockOwnerDeletion": True}],
            "finalizers": ["example.com/held"],
        }
        await api.create(CONFIG_MAPS, child)
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Foreground"})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["child", "owner"]
        await api.patch(f"{CONFIG_MAPS}/child", {"metadata": {"ownerReferences": None}})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["child"]


@given_an_api
async def test_owners_in_a_circle_do_not_wait_for_each_other(api: Api) -> None:
    """In the foreground, too, two that own each other go, and one that owns itself."""
    async with api.server.running():
        made = {name: await api.create(CONFIG_MAPS, a_config_map(name)) for name in ("a", "b", "own")}
        for name, owner in (("a", "b"), ("b", "a"), ("own", "own")):
            references = [reference_to(made[owner])]
            await api.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"ownerReferences": references}})
        for name in ("a", "own"):
            await api.delete(f"{CONFIG_MAPS}/{name}", {"propagationPolicy": "Foreground"})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == []


@given_an_api
async def test_orphans_stay_without_their_owner(api: Api) -> None:
    """Orphaning deletes the owner and removes the reference from its dependents."""
    async with api.server.running():
        await _family(api)
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Orphan"})
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["child", "grandchild", "stranger"]
        assert "ownerReferences" not in (await api.get(f"{CONFIG_MAPS}/child"))["metadata"]


@given_an_api
async def test_an_owner_that_never_was_takes_its_dependents(api: Api) -> None:
    """An object whose owners do not exist is collected; one that still has one keeps that one."""
    async with api.server.running():
        owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
        ghost = {**owner, "metadata": {**owner["metadata"], "uid": "ghost"}}
        await api.create(CONFIG_MAPS, a_config_map("lost", ghost))
        both = a_config_map("both", owner)
        both["metadata"]["ownerReferences"].append({**reference_to(ghost), "controller": False})
        await api.create(CONFIG_MAPS, both)
        await asyncio.sleep(_SETTLED)
        assert await api.names(CONFIG_MAPS) == ["both", "owner"]
        references = (await api.get(f"{CONFIG_MAPS}/both"))["metadata"]["ownerReferences"]
        assert [each["uid"] for each in references] == [owner["metadata"]["uid"]]


@given_an_api
async def test_a_namespace_ends_with_its_contents(api: Api) -> None:
    """A namespace that is deleted takes nothing new, empties itself, waits for its pods, and goes."""
    async with api.server.running():
        await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
        await api.create("/api/v1/namespaces/team/configmaps", a_config_map("a"))
        await api.create("/api/v1/namespaces/team/pods", a_pod("p"))
        await api.create("/api/v1/namespaces/team/pods/p/binding", a_binding())
        ending = await api.delete("/api/v1/namespaces/team")
        assert ending["status"]["phase"] == "Terminating"
        await asyncio.sleep(_SETTLED)
        refused = await api.send("POST", "/api/v1/namespaces/team/configmaps", a_config_map("b"))
        assert refused.status == 403
        assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        assert await api.names("/api/v1/namespaces/team/configmaps") == []
        await api.delete("/api/v1/namespaces/team/pods/p", {"gracePeriodSeconds": 0})
        await asyncio.sleep(_SETTLED)
        assert "team" not in await api.names("/api/v1/namespaces")


@on_virtual_time
async def test_the_default_namespace_stays() -> None:
    """Namespaces that the cluster needs cannot be deleted."""
    answer = await an_api().send("DELETE", "/api/v1/namespaces/default")
    assert answer.status == 403


@given_an_api
async def test_a_definition_takes_its_objects_along(api: Api) -> None:
    """Deleting a definition deletes its objects first; then the kind is no longer served."""
    async with api.server.running():
        await api.create(DEFINITIONS, a_definition())
        await api.create(WIDGETS, a_widget())
        await api.delete(f"{DEFINITIONS}/widgets.example.com")
        await asyncio.sleep(_SETTLED)
        assert await api.names(DEFINITIONS) == []
        assert (await api.send("GET", WIDGETS)).status == 404
        await api.create(DEFINITIONS, a_definition())
        assert await api.names(WIDGETS) == []


@given_an_api
async def test_events_expire(api: Api) -> None:
    """An event is forgotten an hour after its last write."""
    events = "/api/v1/namespaces/default/events"
    async with api.server.running():
        await api.create(events, {"metadata": {"name": "a"}, "count": 1})
        await api.create(events, {"metadata": {"name": "b"}, "count": 1})
        await asyncio.sleep(3000)
        await api.patch(f"{events}/b", {"count": 2})
        await asyncio.sleep(1000)
        assert await api.names(events) == ["b"]
        await asyncio.sleep(3000)
        assert await api.names(events) == []


@given_an_api
async def test_both_forms_of_events_are_one_collection(api: Api) -> None:
    """An event written in one group is read in the other, with that group's field names."""
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    await api.create(path, {"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p"}, "note": "hello"})
    core = await api.get("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=p")
    assert core["items"][0]["message"] == "hello"
    grouped = await api.get(path, fieldSelector="regarding.kind=Pod")
    assert (grouped["items"][0]["note"], grouped["apiVersion"]) == ("hello", "events.k8s.io/v1")
