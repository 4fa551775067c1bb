"""Deleting: grace, finalizers, preconditions, collections."""

import pytest

from tests.server.api import CONFIG_MAPS, PODS, Api, a_binding, a_config_map, a_pod


async def test_an_unbound_pod_goes_at_once(api: Api) -> None:
    """A pod that never had a node needs no kubelet to end it."""
    await api.create(PODS, a_pod("p"))
    await api.delete(f"{PODS}/p")
    assert await api.names(PODS) == []


async def test_a_bound_pod_waits_for_its_kubelet(api: Api) -> None:
    """A bound pod is marked with its grace period and goes when the kubelet deletes it with grace zero."""
    await api.create(PODS, a_pod("p", terminationGracePeriodSeconds=7))
    await api.create(f"{PODS}/p/binding", a_binding())
    marked = await api.delete(f"{PODS}/p")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 7
    assert await api.names(PODS) == ["p"]
    await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert await api.names(PODS) == []


async def test_a_finished_pod_goes_at_once(api: Api) -> None:
    """A bound pod that has ended has nothing left to stop."""
    await api.create(PODS, a_pod("p"))
    await api.create(f"{PODS}/p/binding", a_binding())
    await api.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/p")
    assert await api.names(PODS) == []


@pytest.mark.parametrize(("own", "asked"), [(1 << 60, None), (30, 1 << 60)])
async def test_a_grace_without_end_ends(api: Api, own: int, asked: int | None) -> None:
    """No time is named that a date cannot have; such a pod goes at once when it is told to."""
    await api.create(PODS, a_pod("p", terminationGracePeriodSeconds=own))
    await api.create(f"{PODS}/p/binding", a_binding())
    marked = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": asked})
    assert marked["metadata"]["deletionGracePeriodSeconds"] == (1 << 63) // 10**9
    assert marked["metadata"]["deletionTimestamp"] > "2300"
    await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert await api.names(PODS) == []


async def test_a_finalizer_holds_an_object(api: Api) -> None:
    """An object with a finalizer stays until it is removed, and takes no new ones meanwhile."""
    obj = a_config_map("a")
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(CONFIG_MAPS, obj)
    marked = await api.delete(f"{CONFIG_MAPS}/a")
    assert "deletionTimestamp" in marked["metadata"]
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    refused = await api.send(
        "PATCH", f"{CONFIG_MAPS}/a", more, headers={"content-type": "application/merge-patch+json"}
    )
    assert refused.status == 422
    await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert await api.names(CONFIG_MAPS) == []


async def test_preconditions_are_checked(api: Api) -> None:
    """A deletion that names another uid or an old revision is a conflict."""
    made = await api.create(CONFIG_MAPS, a_config_map("a"))
    for preconditions in ({"uid": "other"}, {"resourceVersion": "1"}):
        answer = await api.send("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": preconditions})
        assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    status = await api.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert (status["kind"], status["status"]) == ("Status", "Success")


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    """Deleting a collection takes what the selector chooses and leaves the rest."""
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        await api.create(PODS, a_pod(name, labels={"app": app}))
    await api.delete(PODS, labelSelector="app=x")
    assert await api.names(PODS) == ["b"]


async def test_a_dry_run_deletes_nothing(api: Api) -> None:
    """A deletion that is only tried leaves the object."""
    await api.create(PODS, a_pod("p"))
    await api.delete(f"{PODS}/p", {"dryRun": ["All"]})
    await api.delete(f"{PODS}/p", dryRun="All")
    assert await api.names(PODS) == ["p"]


async def test_a_deletion_event_carries_the_last_state_and_a_new_revision(api: Api) -> None:
    """Watchers see what was deleted, at the revision of the deletion."""
    made = await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    async with api.watch(CONFIG_MAPS, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        await api.delete(f"{CONFIG_MAPS}/a")
        event = await watch.next()
        assert (event["type"], event["object"]["data"]) == ("DELETED", {"v": "1"})
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
