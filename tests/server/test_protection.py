"""What is in use is not deleted under its users: pod groups, volume claims and volumes."""

from typing import Any

import pytest

from spinney.server import ServerOptions
from tests.server.api import PODS, Api, a_pod, an_api

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
_GROUP = {"metadata": {"name": "x"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
_CLAIM = {
    "metadata": {"name": "x"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_VOLUME = {"metadata": {"name": "x"}, "spec": {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}}


@pytest.mark.parametrize(
    ("path", "obj", "use"),
    [
        (GROUPS, _GROUP, {"schedulingGroup": {"podGroupName": "x"}}),
        (CLAIMS, _CLAIM, {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}),
    ],
)
async def test_it_stays_while_a_pod_uses_it(api: Api, path: str, obj: Any, use: Any) -> None:
    """A group or claim that a pod refers to is marked as being deleted, and goes when the last such pod has."""
    async with api.server.running(), api.watch(path) as watch:
        await api.create(path, obj)
        assert await watch.take(1) == [("ADDED", "x")]
        await api.create(PODS, a_pod("p", **use))
        await api.create(PODS, a_pod("other"))
        marked = await api.delete(f"{path}/x")
        assert marked["metadata"]["deletionTimestamp"]
        assert await watch.take(1) == [("MODIFIED", "x")]
        await api.delete(f"{PODS}/other")
        assert await api.names(path) == ["x"]
        await api.delete(f"{PODS}/p")
        assert await watch.take(1) == [("DELETED", "x")]


@pytest.mark.parametrize(("path", "obj"), [(GROUPS, _GROUP), (CLAIMS, _CLAIM), (VOLUMES, _VOLUME)])
async def test_it_goes_at_once_when_nobody_uses_it(api: Api, path: str, obj: Any) -> None:
    """What nobody uses carries its finalizer for a moment only."""
    async with api.server.running(), api.watch(path) as watch:
        made = await api.create(path, obj)
        assert len(made["metadata"]["finalizers"]) == 1
        assert await watch.take(1) == [("ADDED", "x")]
        await api.delete(f"{path}/x")
        assert await watch.take(2) == [("MODIFIED", "x"), ("DELETED", "x")]


async def test_an_ended_pod_uses_nothing(api: Api) -> None:
    """A pod that has succeeded no longer holds its group."""
    async with api.server.running(), api.watch(GROUPS) as watch:
        await api.create(GROUPS, _GROUP)
        assert await watch.take(1) == [("ADDED", "x")]
        await api.create(PODS, a_pod("p", schedulingGroup={"podGroupName": "x"}))
        await api.delete(f"{GROUPS}/x")
        assert await watch.take(1) == [("MODIFIED", "x")]
        await api.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
        assert await watch.take(1) == [("DELETED", "x")]


async def test_each_release_keeps_its_gang_field() -> None:
    """Pods keep the field by which the played release refers to gangs, and lose the others'."""
    for release, kept in (("1.35", "workloadRef"), ("1.36", "schedulingGroup"), ("1.37", "schedulingGroup")):
        api = an_api(ServerOptions(kubernetes_version=release))
        fields: dict[str, Any] = {
            "workloadRef": {"name": "w", "podGroup": "g"},
            "schedulingGroup": {"podGroupName": "x"},
        }
        pod = await api.create(PODS, a_pod("p", **fields))
        assert [name for name in fields if name in pod["spec"]] == [kept]
