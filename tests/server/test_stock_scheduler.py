"""A stock kube-scheduler on the embedded server: its informers, leases, bindings and status patches all work."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import yaml

from spinney.api.struct import JSON
from spinney.testing.controlplane.binaries import Binaries
from tests.server.api import NODES, PODS, Api, a_pod
from tests.server.stock import CONTENT_TYPES, with_component

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"


def _scheduled(directory: Path, content_type: str) -> AbstractAsyncContextManager[Api]:
    def command(binaries: Binaries, kubeconfig: Path) -> Sequence[str | Path]:
        configuration = directory / "scheduler.yaml"
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "contentType": content_type},
        }
        configuration.write_text(yaml.safe_dump(content))
        gates = "--feature-gates=GenericWorkload=true"
        return [binaries.kube_scheduler, f"--config={configuration}", gates, "--secure-port=0"]

    return with_component(directory, command)


def _wants_a_core(name: str, **spec: JSON) -> JSON:
    pod = a_pod(name)
    pod["spec"] |= spec
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return pod


def _a_node(cores: int) -> JSON:
    conditions = [{"type": "Ready", "status": "True"}]
    capacity = {"cpu": str(cores), "memory": "8Gi", "pods": "10"}
    return {"metadata": {"name": "n"}, "status": {"capacity": capacity, "conditions": conditions}}


@CONTENT_TYPES
async def test_pods_are_bound_and_the_rest_is_explained(tmp_path: Path, content_type: str) -> None:
    """Pods that fit are bound under the scheduler's lease; one that does not gets its condition and an event."""
    async with _scheduled(tmp_path, content_type) as api:
        await api.create(NODES, _a_node(2))
        for name in ("a", "b", "c"):
            await api.create(PODS, _wants_a_core(name))
        verdicts: dict[str, str] = {}
        async with api.watch(PODS) as watch:
            while len(verdicts) < 3:
                pod = (await watch.next())["object"]
                for condition in pod["status"].get("conditions", ()):
                    verdicts[pod["metadata"]["name"]] = condition["status"]
        assert sorted(verdicts.values()) == ["False", "True", "True"]
        async with api.watch("/api/v1/events", fieldSelector="reason=FailedScheduling") as watch:
            assert "Insufficient cpu" in (await watch.next())["object"]["message"]
        leases = await api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        assert [lease["metadata"]["name"] for lease in leases["items"]] == ["kube-scheduler"]


async def test_a_native_gang_is_scheduled_whole(tmp_path: Path) -> None:
    """A PodGroup's pods wait for each other; when all exist they are bound and the group says so."""
    async with _scheduled(tmp_path, "application/json") as api:
        await api.create(NODES, _a_node(2))
        await api.create(_GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
        for name in ("a", "b"):
            await api.create(PODS, _wants_a_core(name, schedulingGroup={"podGroupName": "g"}))
        async with api.watch(f"{_GROUPS}/g") as watch:
            while True:
                group = (await watch.next())["object"]
                conditions = {each["type"]: each["status"] for each in group.get("status", {}).get("conditions", ())}
                if conditions.get("PodGroupInitiallyScheduled") == "True":
                    break
        bound: set[str] = set()
        async with api.watch(PODS) as watch:
            while len(bound) < 2:
                pod = (await watch.next())["object"]
                if pod["spec"].get("nodeName") == "n":
                    bound.add(pod["metadata"]["name"])
        assert bound == {"a", "b"}
