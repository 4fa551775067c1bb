"""Gangs of every kind on nodes that are lost: repaired where there is room, and let go of where there is none."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from spinney.api import coscheduling, kai, volcano, workload_v1beta1
from spinney.api.core import NODE, POD, Pod
from spinney.api.labels import COSCHEDULING_GROUP, KAI_POD_GROUP, LEGACY_GROUP
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.workloads.objects import DEPLOYMENT, JOB
from tests.virtual_time import on_virtual_time

NAMESPACE: Final = "default"
_LEAVING = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 5,
}
Manifests = Sequence[tuple[Resource, JSON]]


def a_pod_spec(**more: object) -> JSON:
    """Return a pod that takes a node, and leaves it soon after that has failed."""
    container = {"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {"tolerations": [_LEAVING], "terminationGracePeriodSeconds": 1, "containers": [container], **more}


def four(
    pod: JSON,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    minimum: str | None = None,
) -> tuple[Resource, JSON]:
    """Return a Deployment of four pods."""
    marks = {"labels": {"app": "gang", **(labels or {})}, "annotations": dict(annotations or {})}
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "gang"}}, "template": {"metadata": marks, "spec": pod}}
    own = {} if minimum is None else {"kai.scheduler/min-member": minimum}
    return DEPLOYMENT, {"metadata": {"name": "gang", "annotations": own}, "spec": spec}


def a_group(kind: Resource, **spec: object) -> tuple[Resource, JSON]:
    """Return a group that the four pods are in."""
    return kind, {"metadata": {"name": "gang"}, "spec": spec}


_OURS, _KAI = a_pod_spec(schedulerName="spinney-scheduler"), a_pod_spec(schedulerName="kai-scheduler")
GROUPED: Final[Mapping[str, Manifests]] = {
    "Deployment": [four(_OURS, minimum="4")],
    "Job": [
        (
            JOB,
            {
                "metadata": {"name": "gang", "annotations": {"kai.scheduler/batch-min-member": "4"}},
                "spec": {"parallelism": 4, "completions": 4, "template": {"spec": {**_OURS, "restartPolicy": "Never"}}},
            },
        )
    ],
    "KAI": [a_group(kai.POD_GROUP, minMember=4), four(_KAI, annotations={KAI_POD_GROUP: "gang"})],
    "Volcano": [
        a_group(volcano.POD_GROUP, minMember=4),
        four(a_pod_spec(schedulerName="volcano"), annotations={LEGACY_GROUP: "gang"}),
    ],
}
"""What the session scheduler takes for a gang of four."""
PLACED_ONE_BY_ONE: Final[Mapping[str, Manifests]] = {
    "native": [
        a_group(workload_v1beta1.POD_GROUP, schedulingPolicy={"gang": {"minCount": 4}}),
        four(a_pod_spec(schedulingGroup={"podGroupName": "gang"})),
    ],
    "scheduler-plugins": [
        a_group(coscheduling.POD_GROUP, minMember=4),
        four(a_pod_spec(schedulerName="coscheduling"), labels={COSCHEDULING_GROUP: "gang"}),
    ],
}
EVERY: Final = {**GROUPED, **PLACED_ONE_BY_ONE}


class LossyCluster:
    """A cluster with a gang of four on as many of its nodes."""

    def __init__(self, embedded: EmbeddedCluster) -> None:
        self.client, self.fleet = embedded.client, embedded.stack.fleet
        self._sleep = embedded.runtime.clock.sleep

    async def ready(self) -> list[Pod]:
        """Return the pods that are ready and stay."""
        found = (await self.client.list(POD, NAMESPACE, type=Pod)).items
        return [pod for pod in found if pod.is_true("Ready") and not pod.metadata.deleting]

    async def until(self, holds: Callable[[list[Pod]], bool], within: int) -> list[Pod]:
        """Wait so many seconds at most until it holds of the pods that are ready."""
        for _ in range(within):
            if holds(found := await self.ready()):
                return found
            await self._sleep(1)
        raise AssertionError(f"not within {within} s: {[(pod.metadata.name, pod.spec.node_name) for pod in found]}")


@asynccontextmanager
async def a_gang_on(nodes: int, manifests: Manifests) -> AsyncIterator[LossyCluster]:
    """Have a gang of four run on a cluster of so many nodes."""
    embedded = EmbeddedCluster(Runtime.virtual(seed=1), StackOptions.whole(gpu_cluster(nodes, 8)))
    async with embedded.running():
        for resource, manifest in manifests:
            await embedded.client.create(resource, manifest, NAMESPACE)
        cluster = LossyCluster(embedded)
        await cluster.until(lambda pods: len(pods) == 4, within=60)
        yield cluster


@pytest.mark.parametrize("manifests", EVERY.values(), ids=EVERY)
@on_virtual_time
async def test_a_gang_is_repaired_where_there_is_room(manifests: Manifests) -> None:
    """One node is silent, another one's Node is deleted: each time only what was there comes up elsewhere."""
    async with a_gang_on(8, manifests) as cluster:
        silent, deleted, *_ = pods = await cluster.ready()
        await cluster.fleet.fail(silent.spec.node_name)
        await cluster.client.delete(NODE, deleted.spec.node_name)
        lost = {silent.spec.node_name, deleted.spec.node_name}

        found = await cluster.until(
            lambda ready: len(ready) == 4 and lost.isdisjoint(pod.spec.node_name for pod in ready), within=60
        )
        assert len({pod.metadata.uid for pod in found} & {pod.metadata.uid for pod in pods}) == 2


@pytest.mark.parametrize("manifests", GROUPED.values(), ids=GROUPED)
@on_virtual_time
async def test_a_gang_without_room_lets_go_and_comes_back(manifests: Manifests) -> None:
    """On a full cluster the rest of a gang does not wait for a silent node; all of it runs again when that is back."""
    async with a_gang_on(4, manifests) as cluster:
        (lost, *_) = await cluster.ready()
        await cluster.fleet.fail(lost.spec.node_name)
        await cluster.until(lambda ready: not ready, within=300)

        await cluster.fleet.recover(lost.spec.node_name)
        await cluster.until(lambda ready: len(ready) == 4, within=60)
