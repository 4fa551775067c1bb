"""kubectl on a whole embedded cluster over TLS, as after ``spinney up``: a gang from apply to delete."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import HttpServer
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from tests.clients.kubectl import Kubectl, served

pytestmark = pytest.mark.real

_SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: train}
spec:
  replicas: 1
  template:
    cliques:
    - name: worker
      spec:
        roleName: worker
        replicas: 2
        minAvailable: 2
        podSpec:
          containers:
          - {name: main, image: "registry.example/train:1", resources: {limits: {nvidia.com/gpu: 8}}}
"""


@asynccontextmanager
async def _a_cluster(home: Path) -> AsyncIterator[Kubectl]:
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime, StackOptions.whole(gpu_cluster(2, 8)))
    async with HttpServer(cluster.server) as http, cluster.running(), cluster.reviewing():
        yield served(http, home)
    runtime.executor.close()


async def test_a_gang_is_applied_watched_described_and_deleted(tmp_path: Path) -> None:
    """A PodCliqueSet runs; get, describe, explain, events, logs, scale and delete work on it and on what it became."""
    async with _a_cluster(tmp_path) as kubectl:
        await kubectl.apply(_SET)
        await kubectl.run("wait", "--for=jsonpath={.status.availableReplicas}=1", "pcs/train", "--timeout=60s")
        await kubectl.run("wait", "--for=jsonpath={.status.phase}=Running", "podgang/train-0", "--timeout=60s")
        assert (await kubectl.lines("get", "podgang", "--no-headers"))[0][:3] == ["train-0", "Running", "2/2"]
        pods = await kubectl.lines("get", "pods", "-o", "wide", "--no-headers")
        assert {(row[2], row[6]) for row in pods} == {("Running", "gpu-000"), ("Running", "gpu-001")}
        assert ["Clique", "Startup", "Type:", "CliqueStartupTypeAnyOrder"] in await kubectl.lines(
            "describe", "pcs/train"
        )
        await kubectl.until("describe", "pod", pods[0][0], said=["Successfully assigned"])
        assert ["nvidia.com/gpu", "8", "8"] in await kubectl.lines("describe", "node", "gpu-000")
        assert "Phase:" in await kubectl.run("describe", "podgang", "train-0")
        assert "cliques\t<[]Object>" in await kubectl.run("explain", "podcliqueset", "--recursive")
        assert "simulated" in await kubectl.run("logs", pods[0][0])
        assert "Scheduled" in await kubectl.run("events", "--for", f"pod/{pods[0][0]}")
        await kubectl.run("scale", "pcs/train", "--replicas=0")
        await kubectl.run("wait", "--for=delete", "pods", "--all", "--timeout=60s")
        await kubectl.run("delete", "pcs/train", "--cascade=foreground", "--timeout=60s")
        assert "No resources found" in await kubectl.run("get", "podcliques,podgangs,pods")


async def test_a_native_pod_group_is_described(kubectl: Kubectl) -> None:
    """Kubernetes' own PodGroup is described with its policy and conditions."""
    group = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
    await kubectl.apply(group)
    described = await kubectl.lines("describe", "podgroup.scheduling.k8s.io", "g")
    assert ["Min", "Count:", "2"] in described


async def test_a_wrong_set_is_refused_by_the_operator(tmp_path: Path) -> None:
    """What the operator's webhook finds wrong reaches the person at the keyboard."""
    async with _a_cluster(tmp_path) as kubectl:
        refused = await kubectl.apply(_SET.replace("minAvailable: 2", "minAvailable: 3"), code=1)
        assert "spec.template.cliques[0].spec.minAvailable" in refused
