"""kubectl delete and wait: each way of propagating, and waiting for what somebody else does."""

import asyncio

import pytest

from spinney.api.struct import JSON
from spinney.server import ApiServer
from tests.clients.kubectl import Kubectl
from tests.clients.manifests import CONFIG, POD
from tests.server.api import CONFIG_MAPS, PODS, Api, a_config_map

pytestmark = pytest.mark.real


async def _an_owner_and_its_dependent(server: ApiServer) -> Api:
    api = Api(server)
    owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
    await api.create(CONFIG_MAPS, a_config_map("dependent", owner))
    return api


async def _event_of(api: Api, name: str, kind: str) -> JSON:
    """Wait until something happens to a config map."""
    async with asyncio.timeout(60), api.watch(CONFIG_MAPS) as watch:
        while True:
            event = await watch.next()
            if event["type"] == kind and event["object"]["metadata"]["name"] == name:
                return event


async def test_background_deletion_takes_the_dependents_after_the_owner(server: ApiServer, kubectl: Kubectl) -> None:
    """By default the owner goes at once, and the garbage collector takes what it owned."""
    api = await _an_owner_and_its_dependent(server)
    gone = asyncio.create_task(_event_of(api, "dependent", "DELETED"))
    assert "deleted" in await kubectl.run("delete", "configmap", "owner", "--cascade=background")
    await gone
    assert not {"owner", "dependent"} & set(await api.names(CONFIG_MAPS))


async def test_foreground_deletion_takes_the_dependents_first(server: ApiServer, kubectl: Kubectl) -> None:
    """The owner waits for a dependent that holds on, and kubectl waits for the owner."""
    api = await _an_owner_and_its_dependent(server)
    await api.patch(f"{CONFIG_MAPS}/dependent", {"metadata": {"finalizers": ["example.com/hold"]}})
    marked = asyncio.create_task(_event_of(api, "dependent", "MODIFIED"))
    deleting = asyncio.create_task(kubectl.run("delete", "configmap", "owner", "--cascade=foreground", "--timeout=40s"))
    await marked
    owner = await api.get(f"{CONFIG_MAPS}/owner")
    assert owner["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.patch(f"{CONFIG_MAPS}/dependent", {"metadata": {"finalizers": None}})
    assert "deleted" in await deleting
    assert not {"owner", "dependent"} & set(await api.names(CONFIG_MAPS))


async def test_orphaned_dependents_stay(server: ApiServer, kubectl: Kubectl) -> None:
    """With ``--cascade=orphan`` the dependents stay, and no longer name their owner."""
    api = await _an_owner_and_its_dependent(server)
    assert "deleted" in await kubectl.run("delete", "configmap", "owner", "--cascade=orphan", "--timeout=40s")
    dependent = await api.get(f"{CONFIG_MAPS}/dependent")
    assert "ownerReferences" not in dependent["metadata"]


async def test_many_objects_are_deleted_by_label_file_and_all(kubectl: Kubectl) -> None:
    """A selector, a manifest and ``--all`` each name what goes."""
    for name in ("a", "b", "c"):
        await kubectl.apply(POD.replace("name: web,", f"name: {name},"))
    await kubectl.run("label", "pod", "a", "app=other", "--overwrite")
    assert 'pod "a" deleted' in await kubectl.run("delete", "pods", "-l", "app=other", "--timeout=40s")
    manifest = POD.replace("name: web,", "name: b,")
    assert 'pod "b" deleted' in await kubectl.run("delete", "-f", "-", "--timeout=40s", stdin=manifest)
    assert 'pod "c" deleted' in await kubectl.run("delete", "pods", "--all", "--timeout=40s")
    assert await kubectl.run("delete", "pod", "c", "--ignore-not-found") == ""
    assert "NotFound" in await kubectl.run("delete", "pod", "c", code=1)


async def test_a_namespace_with_contents_is_deleted(kubectl: Kubectl) -> None:
    """Delete of a namespace waits until its contents are gone."""
    await kubectl.run("create", "namespace", "team")
    await kubectl.apply(POD, "-n", "team")
    assert "deleted" in await kubectl.run("delete", "namespace", "team", "--timeout=40s")
    assert "NotFound" in await kubectl.run("get", "namespace", "team", code=1)


@pytest.mark.parametrize(
    "condition", ["condition=Ready", "jsonpath={.status.phase}=Running", "jsonpath={.status.podIP}"]
)
async def test_wait_is_woken_by_a_change(server: ApiServer, kubectl: Kubectl, condition: str) -> None:
    """Wait returns when somebody else makes the condition or the field so."""
    await kubectl.apply(POD)
    waiting = asyncio.create_task(kubectl.run("wait", f"--for={condition}", "pod/web", "--timeout=40s"))
    status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    await Api(server).patch(f"{PODS}/web/status", {"status": status})
    assert "condition met" in await waiting


async def test_wait_for_deletion_and_creation(server: ApiServer, kubectl: Kubectl) -> None:
    """Wait sees an object come and go, and says so when its time is up."""
    coming = asyncio.create_task(kubectl.run("wait", "--for=create", "configmap/c", "--timeout=40s"))
    await kubectl.apply(CONFIG)
    assert "condition met" in await coming
    going = asyncio.create_task(kubectl.run("wait", "--for=delete", "configmap/c", "--timeout=40s"))
    await Api(server).delete(f"{CONFIG_MAPS}/c")
    await going
    await kubectl.apply(CONFIG)
    late = await kubectl.run("wait", "--for=condition=Ready", "configmap/c", "--timeout=3s", code=1)
    assert "timed out waiting" in late
