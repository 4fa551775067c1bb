"""The PodGroup kind: what it refuses, and where; and what kubectl shows of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spinney.api.coscheduling import POD_GROUP
from spinney.kube.errors import Invalid
from spinney.runtime import Runtime
from spinney.server import HttpServer
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from tests.clients.kubectl import Kubectl, served
from tests.conftest import Cluster

from .world import World, a_group, a_node, a_world


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minMember": 0}, "spec.minMember"),
        ({"minMember": -1}, "spec.minMember"),
        ({"minMember": "3"}, "spec.minMember"),
        ({"scheduleTimeoutSeconds": -1}, "spec.scheduleTimeoutSeconds"),
        ({"scheduleTimeoutSeconds": "1m"}, "spec.scheduleTimeoutSeconds"),
        ({"minResources": {"cpu": "four"}}, "spec.minResources.cpu"),
        ({"minResources": {"memory": "4 Gi"}}, "spec.minResources.memory"),
        ({"minResources": ["cpu"]}, "spec.minResources"),
    ],
)
async def test_what_is_refused(cluster: Cluster, spec: dict[str, Any], path: str) -> None:
    """A minimum below one, a negative time-out and what is no quantity are refused, with the path of the field."""
    async with a_world(cluster) as world:
        with pytest.raises(Invalid) as refused:
            await world.client.create(
                POD_GROUP, {**a_group("wrong", 2), "spec": {"minMember": 2, **spec}}, world.namespace
            )
        assert [cause.field for cause in refused.value.causes] == [path]


async def test_a_minimum_is_required(cluster: Cluster) -> None:
    """A group that does not say how many pods it needs is refused."""
    async with a_world(cluster) as world:
        with pytest.raises(Invalid, match=r"spec\.minMember: Required value"):
            await world.client.create(POD_GROUP, {"metadata": {"name": "wrong"}, "spec": {}}, world.namespace)


async def test_the_whole_is_accepted(cluster: Cluster) -> None:
    """Every field of the document is kept; a time-out of 0 stands for the scheduler's own."""
    spec = {"minMember": 2, "minResources": {"cpu": "1500m", "memory": 4}, "scheduleTimeoutSeconds": 0}
    async with a_world(cluster) as world:
        created = await world.client.create(POD_GROUP, {**a_group("right", 2), "spec": spec}, world.namespace)
        assert created["spec"] == spec


# -- what kubectl shows -----------------------------------------------------------------------------------------------

KIND = "podgroups.scheduling.x-k8s.io"
"""Said in full, for a cluster may serve several kinds called PodGroup."""
_GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: {name}}}
spec: {{minMember: {pods}}}
"""
_POD = """
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}-{number}, labels: {{scheduling.x-k8s.io/pod-group: {name}}}}}
spec:
  schedulerName: coscheduling
  containers:
  - {{name: main, image: "registry.example/train:1", resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""


def a_gang(name: str, pods: int) -> str:
    """Return a group and as many pods that take a node each."""
    return _GROUP.format(name=name, pods=pods) + "".join(_POD.format(name=name, number=n) for n in range(pods))


@asynccontextmanager
async def an_embedded_cluster(home: Path) -> AsyncIterator[Kubectl]:
    """Two nodes of eight GPUs, over TLS, as after ``spinney up``."""
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime, StackOptions.whole(gpu_cluster(2, 8)))
    async with HttpServer(cluster.server) as http, cluster.running():
        yield served(http, home)
    runtime.executor.close()


async def row(kubectl: Kubectl, group: str, phase: str) -> list[str]:
    """Return the row of a group once it has a phase."""
    await kubectl.run("wait", f"{KIND}/{group}", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=60s")
    (found,) = await kubectl.lines("get", KIND, group, "--no-headers")
    return found


@pytest.mark.real
async def test_describe_tells_the_story(tmp_path: Path) -> None:
    """Kubectl describe podgroup says why a group waits, and then that it was scheduled and runs."""
    async with an_embedded_cluster(tmp_path) as kubectl:
        await kubectl.apply(a_gang("large", 3))
        lacking = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu"
        await kubectl.until("describe", KIND, "large", said=["FailedScheduling", "Reason:", "Unschedulable", lacking])
        assert (await row(kubectl, "large", "Scheduling"))[:3] == ["large", "Scheduling", "3"]
        await kubectl.run("delete", f"{KIND}/large", *(f"pod/large-{number}" for number in range(3)))

        await kubectl.apply(a_gang("train", 2))
        whole = ["2 pods run, at least 2 must", "2 pods, as many as must run together, have their nodes"]
        await kubectl.until("describe", KIND, "train", said=["Scheduled", "Schedule Start Time:", *whole])
        assert (await row(kubectl, "train", "Running"))[:7] == ["train", "Running", "2", "2", "2", "0", "0"]


async def test_the_condition_is_written_where_the_kind_has_it(world: World) -> None:
    """A group that waits says why in its condition; when it is placed the condition turns."""
    await world.gang("gang", 3)
    await world.nodes(a_node("n1", cpu="2"))
    await world.until(lambda: "Insufficient cpu" in condition(world, "gang")[1])
    assert condition(world, "gang")[0] == "False"
    await world.nodes(a_node("n2", cpu="2"))
    await world.until(lambda: condition(world, "gang")[0] == "True")
    assert await world.events("FailedScheduling", "PodGroup", least=1, saying="Insufficient cpu")
    told = await world.events("Scheduled", "PodGroup", least=1)
    assert told == ["3 pods, as many as must run together, have their nodes"]


def condition(world: World, group: str) -> tuple[str, str]:
    """Return status and message of a group's condition as last seen."""
    for each in world.status(group).conditions:
        if each.type == "PodGroupScheduled":
            return each.status, each.message
    return "", ""
