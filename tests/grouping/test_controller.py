"""Pods of ordinary workloads become gangs, on a cluster with the whole stack."""

from dataclasses import replace

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.coscheduling import POD_GROUP as COSCHEDULING_GROUP
from spinney.api.kai import POD_GROUP as KAI_GROUP
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from spinney.api.volcano import POD_GROUP as VOLCANO_GROUP
from spinney.backends.kai import KaiScheduler
from spinney.kube.client import Client
from spinney.kube.transport import Response
from tests.conftest import Cluster
from tests.grouping.world import JOB, World, a_world
from tests.scheduler.process.world import FaultyTransport, status

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
A_JOB: JSON = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
A_DEPLOYMENT: JSON = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}
PYTORCH = Resource("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
RAY = Resource("ray.io", "v1", "RayCluster", "rayclusters")

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])


async def install(world: World, resource: Resource) -> None:
    """Install a kind as its operator's chart would, with a schema that keeps everything."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": open_schema}}
    names = {"kind": resource.kind, "plural": resource.plural, "listKind": f"{resource.kind}List"}
    spec = {
        "group": resource.group,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "names": names,
        "versions": [version],
    }
    await world.client.create(CRDS, {"metadata": {"name": str(resource)}, "spec": spec})


async def test_a_job_that_asks_for_it_starts_as_one(cluster: Cluster) -> None:
    """Six pods on four nodes are not four that run and two that wait: none starts until all can."""
    async with a_world(cluster) as world:
        await world.job("big", 6, least=6)
        await world.settle()
        assert world.placed() == []
        await world.job("small", 4, least=4)
        await world.until(lambda: len(world.placed("small")) == 4)
        assert world.floors("big") == {"default": 6}


async def test_a_pod_that_somebody_else_wrote_at_the_same_moment_is_labelled_again(cluster: Cluster) -> None:
    """A conflict need not mean that the pod is another one: without its label it would wait for ever."""
    line = FaultyTransport(cluster.client.transport)
    refused: list[str] = []

    def once(method: str, path: str) -> Response | None:
        if method != "PATCH" or not path.endswith("/pods/single") or refused:
            return None
        refused.append(path)
        return status(409, "Conflict")

    line.fault = once
    async with a_world(replace(cluster, client=Client(line, cluster.runtime))) as world:
        await world.pod("single", await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT))
        await world.until(lambda: world.placed() == ["single"])
    assert refused


async def test_pods_that_come_late_find_their_gang_and_it_starts_when_it_is_whole(cluster: Cluster) -> None:
    """Nothing is placed while pods of the minimum are missing."""
    async with a_world(cluster) as world:
        owner = await world.job("late", 3, least=3, made=2)
        await world.settle()
        assert world.placed() == []
        await world.pod("late-2", owner)
        await world.until(lambda: len(world.placed()) == 3)


async def test_a_job_without_a_minimum_starts_with_what_fits(cluster: Cluster) -> None:
    """The floor of a Job is 1: four of six pods run on four nodes."""
    async with a_world(cluster) as world:
        await world.job("elastic", 6)
        await world.until(lambda: len(world.placed()) == 4)
        await world.settle()
        assert len(world.placed()) == 4


async def test_scaling_a_workload_changes_its_gang(cluster: Cluster) -> None:
    """A Ray worker group that is scaled has another minimum at once, without any event of its pods."""
    async with a_world(cluster) as world:
        await install(world, RAY)
        spec = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 6, "minReplicas": 5}]}
        owner = await world.owner(RAY, "ray", spec)
        await world.pod("ray-head", owner, gpus=0, labels={"ray.io/group": "headgroup", "ray.io/cluster": "ray"})
        for number in range(6):
            await world.pod(f"ray-gpu-{number}", owner, labels={"ray.io/group": "gpu", "ray.io/cluster": "ray"})
        await world.until(lambda: world.floors("ray") == {"headgroup": 1, "gpu": 5})
        await world.settle()
        assert world.placed() == []
        smaller = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 6, "minReplicas": 3}]}
        await world.client.patch(RAY, "ray", {"spec": smaller}, world.namespace)
        await world.until(lambda: world.floors("ray") == {"headgroup": 1, "gpu": 3})
        await world.until(lambda: len(world.placed()) == 5)


async def test_pods_of_a_deployment_are_not_held_together(cluster: Cluster) -> None:
    """Each pod of a service is placed by itself, and no PodGang is written for it."""
    async with a_world(cluster) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT)
        for number in range(6):
            await world.pod(f"web-{number}", owner)
        await world.until(lambda: len(world.placed()) == 4)
        assert (await world.client.list(POD_GANG, world.namespace)).items == ()


async def test_every_backend_gets_its_own_group(cluster: Cluster) -> None:
    """A Job of another scheduler is a group of that scheduler's kind, and starts as one there."""
    kinds = {"kai-scheduler": KAI_GROUP, "volcano": VOLCANO_GROUP, "coscheduling": COSCHEDULING_GROUP}
    async with a_world(cluster, every_backend=True) as world:
        for scheduler, group in kinds.items():
            await world.job(f"big-{scheduler}", 6, least=6, scheduler=scheduler)
            await world.job(f"small-{scheduler}", 4, least=4, scheduler=scheduler)
            await world.until(lambda name=scheduler: len(world.placed(f"small-{name}")) == 4)  # type: ignore[misc]
            await world.settle()
            assert world.placed("big") == []
            groups: list[JSON] = list((await world.client.list(group, world.namespace)).items)
            assert sorted(each["spec"]["minMember"] for each in groups) == [4, 6]
            for number in range(4):
                await world.client.delete(POD, f"small-{scheduler}-{number}", world.namespace, grace_period_seconds=0)


async def test_a_pod_that_is_in_a_group_already_is_left_alone(cluster: Cluster) -> None:
    """Somebody else's PodGroup is never doubled."""
    async with a_world(cluster) as world:
        owner = await world.owner(
            JOB,
            "theirs",
            A_JOB,
        )
        spec = {"minMember": 1, "queue": "default-queue"}
        await world.client.create(KAI_GROUP, {"metadata": {"name": "group"}, "spec": spec}, world.namespace)
        await world.pod("theirs-0", owner, annotations={"pod-group-name": "group"})
        await world.until(lambda: len(world.placed()) == 1)
        assert (await world.client.list(POD_GANG, world.namespace)).items == ()


async def test_a_rule_that_cannot_be_applied_says_so_and_the_pod_waits(cluster: Cluster) -> None:
    """The event on the pod names the annotation, what was found and what happens; it starts once that is mended."""
    async with a_world(cluster) as world:
        owner = await world.owner(
            JOB,
            "odd",
            A_JOB,
            annotations={"kai.scheduler/batch-min-member": "some"},
        )
        await world.pod("odd-0", owner)
        await world.settle()
        (said,) = await world.events("GroupingRefused")
        assert "annotation kai.scheduler/batch-min-member: found 'some'" in said
        assert world.placed() == []
        mended = {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "1"}}}
        await world.client.patch(JOB, "odd", mended, world.namespace)
        await world.until(lambda: len(world.placed()) == 1)


async def test_a_rule_that_cannot_be_applied_falls_back_as_configured(cluster: Cluster) -> None:
    """With the fallback Alone such pods are placed one by one."""
    async with a_world(cluster, configuration="{kind: GrouperConfiguration, fallback: Alone}") as world:
        owner = await world.owner(
            JOB,
            "odd",
            A_JOB,
            annotations={"kai.scheduler/batch-min-member": "some"},
        )
        await world.pod("odd-0", owner)
        await world.until(lambda: len(world.placed()) == 1)


async def test_a_gang_whose_pods_are_gone_goes_too(cluster: Cluster) -> None:
    """A scaled-down replica leaves no PodGang behind, while its owner lives."""
    async with a_world(cluster) as world:
        await world.job("short", 2, least=2)
        await world.until(lambda: len(world.placed()) == 2)
        for name in ("short-0", "short-1"):
            await world.client.delete(POD, name, world.namespace, grace_period_seconds=0)
        await world.until(lambda: world.floors("short") == {})


async def test_bare_pods_with_our_label_start_as_one(cluster: Cluster) -> None:
    """Pods without an owner say which gang they are in, and how many it needs."""
    async with a_world(cluster) as world:
        marks = {"labels": {"spinney.dev/gang": "sweep"}, "annotations": {"kai.scheduler/min-member": "3"}}
        await world.pod("a", **marks)
        await world.pod("b", **marks)
        await world.settle()
        assert world.placed() == []
        await world.pod("c", **marks)
        await world.until(lambda: len(world.placed()) == 3)


async def test_pods_of_one_gang_that_ask_for_several_schedulers_are_told_so(cluster: Cluster) -> None:
    """One scheduler places a gang: pods of another would be waited for, for ever and without a word."""
    async with a_world(cluster, every_backend=True) as world:
        marks = {"labels": {"spinney.dev/gang": "mixed"}, "annotations": {"kai.scheduler/min-member": "2"}}
        await world.pod("a", **marks)
        await world.pod("b", scheduler="coscheduling", **marks)
        await world.settle()
        (gang,) = (world.gangs.get(key) for key in world.gangs)
        assert gang is not None
        (said,) = (each.message for each in gang.status.conditions if each.type == "GroupingProblem")
        assert "several schedulers (b for coscheduling, a for spinney-scheduler)" in said


async def test_pods_that_one_process_places_by_several_names_are_no_mistake(cluster: Cluster) -> None:
    """A scheduler may serve several names; once it has placed a gang of two of them, nothing is wrong with that."""
    async with a_world(cluster, every_backend=True) as world:
        marks = {"labels": {"spinney.dev/gang": "mixed"}, "annotations": {"kai.scheduler/min-member": "2"}}
        await world.pod("a", **marks)
        await world.pod("b", scheduler="kai-scheduler", **marks)
        await world.until(lambda: len(world.placed()) == 2)
        await world.settle()
        (gang,) = (world.gangs.get(key) for key in world.gangs)
        assert gang is not None
        assert [each.message for each in gang.status.conditions if each.type == "GroupingProblem"] == []


async def test_an_applied_job_comes_up_as_a_gang(cluster: Cluster) -> None:
    """A Job whose controller makes its pods starts whole or not at all, and its pods end with it."""
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    pod = {
        "restartPolicy": "Never",
        "schedulerName": "spinney-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": limits}],
    }
    async with a_world(cluster, workloads=True) as world:
        for name, pods in (("big", 6), ("small", 3)):
            spec = {"parallelism": pods, "completions": pods, "template": {"spec": pod}}
            await world.owner(JOB, name, spec, annotations={"kai.scheduler/batch-min-member": str(pods)})
        await world.until(lambda: len(world.placed("small")) == 3)
        await world.settle()
        assert world.placed("big") == []
        assert world.floors("big") == {"default": 6}


async def test_a_training_job_says_by_its_run_policy_how_urgent_it_is(cluster: Cluster) -> None:
    """Kubeflow's field names the priority class of the gang; the pods, which name none, would be without."""
    async with a_world(cluster) as world:
        await install(world, PYTORCH)
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        workers = {"replicas": 2, "template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}}
        policy = {"schedulingPolicy": {"priorityClass": "urgent"}}
        owner = await world.owner(PYTORCH, "t", {"runPolicy": policy, "pytorchReplicaSpecs": {"Worker": workers}})
        for number in range(2):
            await world.pod(f"t-worker-{number}", owner, labels={"training.kubeflow.org/replica-type": "worker"})
        await world.until(lambda: len(world.placed("t")) == 2)
        (gang,) = (await world.client.list(POD_GANG, world.namespace)).items
        assert gang["spec"]["priorityClassName"] == "urgent"


async def test_a_backend_that_refuses_a_gang_is_heard_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is an event on the gang, and when it takes the gang its pods start."""
    refused = 0
    sync = KaiScheduler.sync_pod_gang

    async def refuse(backend: KaiScheduler, gang: PodGang) -> None:
        nonlocal refused
        refused += 1
        if refused < 4:
            raise RuntimeError("no queue is called so")
        await sync(backend, gang)

    monkeypatch.setattr(KaiScheduler, "sync_pod_gang", refuse)
    async with a_world(cluster, every_backend=True) as world:
        await world.job("train", 2, least=2, scheduler="kai-scheduler")
        await world.until(lambda: len(world.placed("train")) == 2)
        assert await world.events("SyncFailed") == ["kai-scheduler: RuntimeError: no queue is called so"]


@pytest.mark.parametrize(("phase", "scheduled"), [("Succeeded", "True"), ("Failed", "False")])
async def test_a_gang_whose_pods_have_ended_says_so(cluster: Cluster, phase: str, scheduled: str) -> None:
    """One that has done its work was scheduled; of one that failed nothing is left that is."""
    async with a_world(cluster) as world:
        await world.job("train", 2, least=2)
        await world.settle()
        for number in range(2):
            done = {"status": {"phase": phase}}
            await world.client.patch(POD, f"train-{number}", done, world.namespace, subresource="status")
        await world.settle()
        (gang,) = (await world.client.list(POD_GANG, world.namespace, type=PodGang)).items
        said = find_condition(gang.status.conditions, "Scheduled")
        assert said is not None
        assert (said.status, said.reason, said.message) == (scheduled, "Ended", "all its pods have ended")


async def test_a_gang_of_which_one_pod_has_ended_still_runs(cluster: Cluster) -> None:
    """A pod that succeeded is not needed again: its gang is scheduled, and runs, while the other goes on."""
    async with a_world(cluster) as world:
        await world.job("train", 2, least=2)
        await world.settle()
        done = {"status": {"phase": "Succeeded"}}
        await world.client.patch(POD, "train-0", done, world.namespace, subresource="status")
        await world.settle()
        (gang,) = (await world.client.list(POD_GANG, world.namespace, type=PodGang)).items
        said = find_condition(gang.status.conditions, "Scheduled")
        assert said is not None
        assert (said.status, said.message) == ("True", "1 of 2 pods are placed, 1 has succeeded")
        assert gang.status.phase in {"Starting", "Running"}
