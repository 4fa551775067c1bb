"""A stock kube-controller-manager on the embedded server: workloads become pods, and what is deleted goes whole."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.testing.controlplane.binaries import Binaries
from tests.server.api import Api
from tests.server.stock import CONTENT_TYPES, until, with_component

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

_TEAM = "/api/v1/namespaces/team"
_PODS = f"{_TEAM}/pods"
_CONTAINERS = [{"name": "c", "image": "i:1"}]


def _controlled(directory: Path, content_type: str) -> AbstractAsyncContextManager[Api]:
    """Run the controller manager with every controller it starts by default."""

    def command(binaries: Binaries, kubeconfig: Path) -> Sequence[str | Path]:
        flags = [f"--kubeconfig={kubeconfig}", f"--kube-api-content-type={content_type}"]
        return [binaries.kube_controller_manager, *flags, "--controllers=*", "--leader-elect=false", "--secure-port=0"]

    return with_component(directory, command)


def _workload(name: str, **spec: Any) -> JSON:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": _CONTAINERS}}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": 2, "selector": selector, "template": template, **spec}}


async def _pods_of(api: Api, name: str, count: int) -> list[Any]:
    return await until(api, _PODS, lambda pods: len(pods) == count, labelSelector=f"app={name}")


async def _make_ready(api: Api, pod: str) -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(f"{_PODS}/{pod}/status", {"status": ready})


@CONTENT_TYPES
async def test_workloads_live_as_they_do_elsewhere(tmp_path: Path, content_type: str) -> None:
    """Deployments, stateful sets and jobs get their pods and report on them; deletions cascade, a namespace's too."""
    async with _controlled(tmp_path, content_type) as api:
        await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
        deployments = "/apis/apps/v1/namespaces/team/deployments"
        await api.create(deployments, _workload("web"))
        for pod in await _pods_of(api, "web", 2):
            assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
            await _make_ready(api, pod["metadata"]["name"])
        await until(api, deployments, lambda found: _has(found, "availableReplicas", 2))

        sets = "/apis/apps/v1/namespaces/team/statefulsets"
        await api.create(sets, _workload("db", serviceName="db"))
        assert [pod["metadata"]["name"] for pod in await _pods_of(api, "db", 1)] == ["db-0"]
        await _make_ready(api, "db-0")
        assert {pod["metadata"]["name"] for pod in await _pods_of(api, "db", 2)} == {"db-0", "db-1"}

        jobs = "/apis/batch/v1/namespaces/team/jobs"
        template = {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}
        await api.create(jobs, {"metadata": {"name": "train"}, "spec": {"template": template}})
        (pod,) = await until(api, _PODS, bool, labelSelector="job-name=train")
        await api.patch(f"{_PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
        await until(api, jobs, lambda found: _has(found, "succeeded", 1))

        await api.delete(f"{deployments}/web", {"propagationPolicy": "Foreground"})
        await until(api, deployments, lambda found: not found)
        assert await api.names(_PODS, labelSelector="app=web") == []
        await api.delete(_TEAM)
        await until(api, "/api/v1/namespaces", lambda found: "team" not in _names(found))
        assert await api.names("/api/v1/pods") == []


def _has(found: list[JSON], field: str, value: int) -> bool:
    return any(each.get("status", {}).get(field) == value for each in found)


def _names(found: list[JSON]) -> set[str]:
    return {each["metadata"]["name"] for each in found}
