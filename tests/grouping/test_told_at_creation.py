"""Pods that are told their gang while they are created end up as those that are told later; so do their gangs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spinney.api import labels as marks
from spinney.api.core import POD
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.grouping.loading import built_in
from spinney.grouping.made_gangs import pods_made
from spinney.grouping.owners import group_kind
from tests.conftest import embedded_cluster
from tests.grouping.test_agreement import TEMPLATE, role
from tests.grouping.test_controller import A_DEPLOYMENT, A_JOB, DEPLOYMENT, install
from tests.grouping.world import JOB, World, a_world, reference

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

SCHEDULERS = ("spinney-scheduler", "kai-scheduler", "volcano", "coscheduling")
JOB_SET = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
LEADER_WORKER_SET = Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
RAY_CLUSTER = Resource("ray.io", "v1", "RayCluster", "rayclusters")
RAY_JOB = Resource("ray.io", "v1", "RayJob", "rayjobs")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets")
UNKNOWN = Resource("jobs.example.com", "v1", "Flow", "flows")
SPARK = Resource("sparkoperator.k8s.io", "v1beta2", "SparkApplication", "sparkapplications")


def kubeflow(kind: str) -> Resource:
    """Return a kind of Kubeflow's training operator."""
    return Resource("kubeflow.org", "v1", kind, f"{kind.lower()}s")


def replicated(name: str, **more: Any) -> JSON:
    """Return two Jobs of a JobSet, of two pods each."""
    return {"name": name, "replicas": 2, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}, **more}


RAY: JSON = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "gpu", "replicas": 3, "minReplicas": 2, "template": TEMPLATE}],
}
SELECTED: JSON = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 2}
LABELLED: JSON = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
TOGETHER = {"annotations": {"kai.scheduler/min-member": "2"}}

WORKLOADS: list[tuple[Resource, JSON, JSON]] = [
    (JOB, {"parallelism": 3, "completions": 3, **A_JOB}, {"annotations": {"kai.scheduler/batch-min-member": "3"}}),
    (JOB, {"parallelism": 3, "completions": 3, **A_JOB}, {"labels": {"kai.scheduler/queue": "other"}}),
    (DEPLOYMENT, A_DEPLOYMENT, {}),
    (DEPLOYMENT, {**A_DEPLOYMENT, "replicas": 2}, TOGETHER),
    (REPLICA_SET, {**SELECTED, "template": LABELLED}, {"labels": {"priorityClassName": "no-such-class"}}),
    (STATEFUL_SET, {**SELECTED, "serviceName": "s", "template": LABELLED}, {}),
    (STATEFUL_SET, {**SELECTED, "serviceName": "s", "podManagementPolicy": "Parallel", "template": LABELLED}, TOGETHER),
    (JOB_SET, {"replicatedJobs": [replicated("leader"), replicated("worker")]}, {}),
    (JOB_SET, {"replicatedJobs": [replicated("first"), replicated("then", dependsOn=[{"name": "first"}])]}, {}),
    (JOB_SET, {"replicatedJobs": [replicated("odd")]}, {"annotations": {"kai.scheduler/batch-min-member": "none"}}),
    (LEADER_WORKER_SET, {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": TEMPLATE}}, {}),
    (RAY_CLUSTER, RAY, {}),
    (kubeflow("PyTorchJob"), {"pytorchReplicaSpecs": {"Master": role(1), "Worker": role(3)}}, {}),
    (kubeflow("TFJob"), {"tfReplicaSpecs": {"PS": role(1), "Worker": role(2)}}, {}),
    (kubeflow("MPIJob"), {"mpiReplicaSpecs": {"Launcher": role(1), "Worker": role(2)}}, {}),
    (kubeflow("XGBoostJob"), {"xgbReplicaSpecs": {"Master": role(1), "Worker": role(2)}}, {}),
    (kubeflow("JAXJob"), {"jaxReplicaSpecs": {"Worker": role(2)}}, {}),
    (kubeflow("PaddleJob"), {"paddleReplicaSpecs": {"Master": role(1), "Worker": role(2)}}, {}),
]
"""Workloads of every kind whose pods our rules can make up; one that its rule refuses is among them."""


async def made(world: World, name: str, workload: tuple[Resource, JSON, JSON], scheduler: str) -> None:
    """Create a workload and the pods that its controller makes."""
    resource, spec, metadata = workload
    manifest = {"metadata": {"name": name, **metadata}, "spec": spec}
    stored = await world.client.create(resource, manifest, world.namespace)
    rule = built_in().rules[group_kind(resource.api_version, resource.kind)]
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    plain = {**stored["metadata"], "annotations": {}}  # how many pods there are does not depend on those
    for pod in pods_made({**stored, **kind, "metadata": plain}, rule):
        pod["spec"] |= {"schedulerName": scheduler, "restartPolicy": "Never", **TEMPLATE["spec"]}
        await world.client.create(POD, pod, world.namespace)


async def others(world: World, scheduler: str) -> None:
    """Create pods that the table cannot say: without an owner, of a kind without a rule, of one below another."""
    for number in range(2):
        await world.pod(f"bare-{scheduler}-{number}", gpus=0, scheduler=scheduler)
        labels = {marks.GANG: f"named-{scheduler}"}
        await world.pod(f"named-{scheduler}-{number}", gpus=0, scheduler=scheduler, labels=labels, **TOGETHER)
    flow = await world.owner(UNKNOWN, f"flow-{scheduler}")
    ray_job = await world.client.create(RAY_JOB, {"metadata": {"name": f"rj-{scheduler}"}}, world.namespace)
    above = {"ownerReferences": [reference(RAY_JOB, ray_job)]}
    ray = await world.owner(RAY_CLUSTER, f"rc-{scheduler}", RAY, **above)
    for number, group in enumerate(("headgroup", "gpu", "gpu", "gpu")):
        await world.pod(f"flow-{scheduler}-{number}", flow, gpus=0, scheduler=scheduler)
        labels = {"ray.io/group": group, "ray.io/cluster": f"rc-{scheduler}"}
        await world.pod(f"ray-{scheduler}-{number}", ray, gpus=0, scheduler=scheduler, labels=labels)


async def outcome(*, at_creation: bool) -> tuple[JSON, JSON, dict[str, float]]:
    """Return what pods and gangs look like at the end, and how many pods were told when."""
    async for cluster in embedded_cluster():
        async with a_world(cluster, every_backend=True, nodes=8, at_creation=at_creation) as world:
            for resource in dict.fromkeys((*(each[0] for each in WORKLOADS), UNKNOWN, RAY_JOB)):
                if "." in resource.group:
                    await install(world, resource)
            for number, workload in enumerate(WORKLOADS):
                for scheduler in (SCHEDULERS[number % 4], SCHEDULERS[(number + 1) % 4]):
                    await made(world, f"w{number}-{scheduler}", workload, scheduler)
            for scheduler in SCHEDULERS:
                await others(world, scheduler)
            await world.settle(30)
            pods = await world.client.list(POD, world.namespace)
            gangs = await world.client.list(POD_GANG, world.namespace)
            answers = {
                answer: world.counted("spinney_grouper_admissions_total", answer=answer)
                for answer in ("gang", "alone", "later")
            }
            ray_jobs = await world.client.list(RAY_JOB, world.namespace)
            names = called(gangs.items, pods.items, ray_jobs.items)
            found = named(pods.items, names, placed), named(gangs.items, names, defined), answers
    return found  # when the cluster has ended


def called(gangs: Any, pods: Any, ray_jobs: Any) -> dict[str, str]:
    """Return what to call each gang and uid instead of what was drawn: that differs from cluster to cluster."""
    found = {
        gang["metadata"]["name"]: f"gang of {min(each['name'] for each in references)}"
        for gang in gangs
        if (references := [each for group in gang["spec"]["podgroups"] for each in group["podReferences"]])
    }
    found |= {each["metadata"]["uid"]: f"uid of {each['metadata']['name']}" for each in (*pods, *ray_jobs)}
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences", ()):
            found[owner["uid"]] = f"uid of {owner['kind']} {owner['name']}"
    return found


def placed(pod: JSON) -> JSON:
    """Return what a pod was told, and whether it was placed."""
    metadata = pod["metadata"]
    told = {key: metadata.get(key, {}) for key in ("labels", "annotations")}
    return {**told, "placed": bool(pod["spec"].get("nodeName"))}


def defined(gang: JSON) -> JSON:
    """Return what a gang asks for, and whose it is."""
    metadata = gang["metadata"]
    return {**{key: metadata.get(key) for key in ("labels", "annotations", "ownerReferences")}, "spec": gang["spec"]}


def named(objects: Any, names: dict[str, str], view: Callable[[JSON], JSON]) -> JSON:
    """Return objects by name, with gangs and uids as they are called."""
    text = json.dumps({each["metadata"]["name"]: view(each) for each in objects})
    for drawn, name in names.items():
        text = text.replace(drawn, name)
    found: JSON = json.loads(text)
    return found


async def test_pods_and_gangs_are_the_same_whenever_pods_are_told(cluster_name: str) -> None:
    """Workloads of every kind, for every scheduler: labels, annotations, PodGangs and what is placed do not differ."""
    pods, gangs, answers = await outcome(at_creation=True)
    pods_later, gangs_later, no_answers = await outcome(at_creation=False)
    assert pods == pods_later
    assert gangs == gangs_later
    assert sum(no_answers.values()) == 0
    assert answers["later"] < 0.3 * len(pods)  # those whose rule refuses, or that join what exists
    assert answers["gang"] > 50
    assert answers["alone"] >= 10
