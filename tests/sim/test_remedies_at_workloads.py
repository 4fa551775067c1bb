"""What is recommended for a gang that the grouper made is a change of its workload, and lasts.

The grouper makes PodGangs from their workload again, and backends make PodGroups from PodGangs, so patches of these
would be undone.
"""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from spinney.api.core import POD, Pod
from spinney.api.kai import QUEUE
from spinney.api.merge_patch import merge
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.runtime import Runtime, run_virtual
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.subjects import find
from spinney.sim.remedies.change import Remedy
from spinney.sim.snapshots.snapshot import take
from spinney.workloads.objects import DEPLOYMENT, JOB, STATEFUL_SET
from tests.sim.waiting_clusters import a_small_cluster

RACK: Final = {
    "kai.scheduler/topology-required-placement": "topology.kubernetes.io/rack",
    "grove.io/topology-name": "gpu-topology",
}
TOLERATE: Final = "tolerate the taint team=a:NoSchedule in the pods"
ANEW: Final = "has to be created anew for that"
RESOURCES: Final = {each.kind: each for each in (JOB, DEPLOYMENT, STATEFUL_SET)}


def template(scheduler: str = "spinney-scheduler") -> JSON:
    """Return a pod template that takes a whole node; its command must survive every change."""
    container = {"name": "main", "image": "app", "command": ["train"], "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"labels": {"app": "train"}}, "spec": spec}


def a_job(pods: int, needed: int, *, scheduler: str = "spinney-scheduler", **annotations: str) -> JSON:
    """Return a Job of a gang that waits for as many pods as are needed."""
    said = {"kai.scheduler/batch-min-member": str(needed), **annotations}
    spec = {"parallelism": pods, "completions": pods, "template": template(scheduler)}
    return {"metadata": {"name": "train", "namespace": "default", "annotations": said}, "spec": spec}


def a_set(pods: int) -> JSON:
    """Return a Deployment or a StatefulSet that is a gang."""
    pod = template()
    pod["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": pods, "selector": {"matchLabels": {"app": "train"}}, "template": pod}
    said = {"kai.scheduler/min-member": str(pods)}
    parallel = {"podManagementPolicy": "Parallel", "serviceName": "train"}
    return {"metadata": {"name": "train", "namespace": "default", "annotations": said}, "spec": {**spec, **parallel}}


async def carry_out(client: Client, remedy: Remedy) -> None:
    """Make a change at the workload, as its patches say."""
    assert remedy.patches
    for patch in remedy.patches:
        resource = RESOURCES[patch.kind]
        assert patch.merge is not None
        if not patch.recreate:
            await client.patch(resource, patch.name, patch.merge, patch.namespace)
            continue
        present = await client.get(resource, patch.name, patch.namespace)
        await client.delete(resource, patch.name, patch.namespace)
        await client.runtime.clock.sleep(120)
        metadata = {key: present["metadata"].get(key) for key in ("name", "namespace", "labels", "annotations")}
        changed = merge({"metadata": metadata, "spec": present["spec"]}, patch.merge)
        await client.create(resource, changed)


async def told_and_done(
    resource: Resource, workload: JSON, text: str, *, block: int = 4, quota: int | None = None, tainted: bool = False
) -> tuple[Remedy, list[Pod], list[PodGang]]:
    """Create a workload that waits, do what was recommended in these words, and return what is there a minute later."""
    async with a_small_cluster(block=block, quota=quota, tainted=tainted) as client:
        runtime = client.runtime
        await client.create(resource, workload)
        await runtime.clock.sleep(120)
        snapshot = await take(client)
        subject = find(snapshot, f"{resource.kind.lower()}/train", "default")
        answer = Advisor(snapshot, runtime=runtime, best=10).answer(subject)
        assert text in [each.text for each in answer.remedies]
        (remedy,) = [each for each in answer.remedies if each.text == text]
        await carry_out(client, remedy)
        await runtime.clock.sleep(120)
        pods = list((await client.list(POD, "default", type=Pod)).items)
        return remedy, pods, list((await client.list(POD_GANG, "default", type=PodGang)).items)


def placed(pods: list[Pod]) -> int:
    """Return how many pods have a node."""
    return sum(bool(pod.spec.node_name) for pod in pods)


@pytest.mark.parametrize("scheduler", ["spinney-scheduler", "kai-scheduler", "coscheduling", "volcano"])
def test_a_job_starts_with_fewer_pods_by_its_annotation(scheduler: str) -> None:
    """The minimum is said by the Job, whichever scheduler its gang was translated for, and stays as it was changed."""
    job = a_job(6, 6, scheduler=scheduler)

    remedy, pods, gangs = run_virtual(told_and_done(JOB, job, "let it start with 4 of 6 pods"))

    assert placed(pods) == 4
    assert [[group.min_replicas for group in gang.spec.pod_groups] for gang in gangs] == [[4]]
    assert [change.command for change in remedy.changes] == [
        "kubectl patch job.v1.batch train -n default --type merge -p "
        """'{"metadata":{"annotations":{"kai.scheduler/batch-min-member":"4"}}}'"""
    ]


@pytest.mark.parametrize("scheduler", ["spinney-scheduler", "kai-scheduler"])
@pytest.mark.parametrize(
    ("block", "text"), [(4, "require one block instead of one rack"), (2, "do not require one rack")]
)
def test_a_level_is_relaxed_by_the_annotation_of_a_job(scheduler: str, block: int, text: str) -> None:
    """The level that a whole gang requires is an annotation of its workload; empty, it requires none."""
    job = a_job(3, 3, scheduler=scheduler, **RACK)

    remedy, pods, _ = run_virtual(told_and_done(JOB, job, text, block=block))

    assert placed(pods) == 3
    assert [(each.kind, each.name) for each in remedy.patches] == [("Job", "train")]


@pytest.mark.parametrize("scheduler", ["spinney-scheduler", "kai-scheduler"])
def test_a_job_is_moved_to_another_queue_by_its_label(scheduler: str) -> None:
    """The label of the Job names the queue of its gang, and may change while it waits."""
    job = a_job(2, 2, scheduler=scheduler)

    remedy, pods, _ = run_virtual(told_and_done(JOB, job, "submit it to queue team", quota=-1))

    assert placed(pods) == 2
    assert [each.merge for each in remedy.patches] == [{"metadata": {"labels": {"kai.scheduler/queue": "team"}}}]


def test_a_job_is_let_go_beyond_a_quota_by_its_label() -> None:
    """Whether a gang may be preempted is a label of its workload."""
    job = a_job(2, 2)
    job["metadata"]["labels"] = {"kai.scheduler/queue": "team", "kai.scheduler/preemptibility": "non-preemptible"}
    text = "let it be preempted, so that it may go beyond the quota"

    remedy, pods, _ = run_virtual(told_and_done(JOB, job, text, quota=0))

    assert placed(pods) == 2
    assert [each.kind for each in remedy.patches] == ["Job"]


@pytest.mark.parametrize(
    ("resource", "workload", "text"),
    [
        (JOB, a_job(4, 4), f"{TOLERATE}; Job train {ANEW}"),
        (STATEFUL_SET, a_set(4), f"{TOLERATE}; StatefulSet train {ANEW}"),
        (DEPLOYMENT, a_set(4), TOLERATE),
    ],
)
def test_a_taint_is_tolerated_in_the_pod_template(resource: Resource, workload: JSON, text: str) -> None:
    """Pods that are made later tolerate it too, and what they tolerated before; a template that is fixed is new."""
    workload["spec"]["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]

    _, pods, _ = run_virtual(told_and_done(resource, workload, text, tainted=True))

    assert placed(pods) == len(pods) == 4
    assert {tuple(each.key for each in pod.spec.tolerations if each.key in ("team", "spot")) for pod in pods} == {
        ("spot", "team")
    }


def replicas(**counts: int) -> JSON:
    """Return the replica specs of a Kubeflow job."""
    return {role.capitalize(): {"replicas": count, "template": template()} for role, count in counts.items()}


GROUPS: Final = [
    {"groupName": name, "replicas": 3, "minReplicas": 3, "template": template()} for name in ("small", "large")
]
RAY: Final = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": GROUPS}
JOBS: Final = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template()}}}]
LEADER: Final = {"replicas": 1, "leaderWorkerTemplate": {"size": 6, "workerTemplate": template()}}


def remedies_on(cluster: Cluster) -> tuple[Remedy, ...]:
    """Return what is recommended for the only gang of a cluster."""
    snapshot = cluster.snapshot()
    (gang,) = snapshot.of(POD_GANG, PodGang)
    subject = find(snapshot, f"podgang/{gang.metadata.name}", "default")
    return Advisor(snapshot, runtime=Runtime.system(), best=10).answer(subject).remedies


def four_nodes_with(version: str, kind: str, workload: JSON) -> Cluster:
    """Return a cluster to which a workload was submitted, as the grouper groups it."""
    cluster = Cluster("4x8")
    cluster.submit({"apiVersion": version, "kind": kind, **workload})
    return cluster


@pytest.mark.parametrize(
    ("version", "kind", "spec"),
    [
        ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas(master=1, worker=5)}),
        ("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": replicas(chief=1, worker=5)}),
        ("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas(launcher=1, worker=5)}),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", LEADER),
    ],
)
def test_one_number_says_the_minimum_of_a_workload_with_roles(version: str, kind: str, spec: Mapping[str, Any]) -> None:
    """The grouper makes a gang from the changed workload that starts with the pods that were told."""
    workload = {"metadata": {"name": "train", "namespace": "default"}, "spec": dict(spec)}
    found = remedies_on(four_nodes_with(version, kind, workload))
    (patch,) = [each for remedy in found if remedy.changes[0].lever == "minimum" for each in remedy.patches]
    assert (patch.kind, patch.merge) == (kind, {"metadata": {"annotations": {"kai.scheduler/min-member": "4"}}})

    cluster = four_nodes_with(version, kind, merge(workload, patch.merge))
    cluster.step()

    assert placed(list(cluster.snapshot().pods)) == 4


@pytest.mark.parametrize(
    ("version", "kind", "spec"),
    [("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": JOBS}), ("ray.io/v1", "RayCluster", RAY)],
)
def test_what_labels_cannot_say_is_told_in_words(version: str, kind: str, spec: Mapping[str, Any]) -> None:
    """Where only fields of the workload say it, the answer names the workload, and gives no patch of the gang."""
    workload = {"metadata": {"name": "train", "namespace": "default"}, "spec": dict(spec)}
    found = remedies_on(four_nodes_with(version, kind, workload))

    (remedy,) = [each for each in found if each.changes[0].lever == "minimum"]

    assert remedy.text.endswith(f"; change the minimum of each part in {kind} train, from which it is made")
    assert (remedy.patches, remedy.changes[0].command) == ((), "")


def test_a_gang_of_pods_without_an_owner_is_changed_at_the_pods() -> None:
    """The grouper makes such a gang from what its pods say, and would undo a patch of it."""
    labels = {"spinney.dev/grouped": "gang", "grove.io/podgang": "train", "grove.io/podclique": "w"}
    pods = [{"namespace": "default", "name": f"train-{number}"} for number in range(6)]
    group = {"name": "w", "minReplicas": 6, "podReferences": pods}
    metadata = {"name": "train", "namespace": "default", "labels": {"spinney.dev/grouped": "gang"}}
    cluster = Cluster("4x8")
    cluster.submit(
        {"apiVersion": POD_GANG.api_version, "kind": "PodGang", "metadata": metadata, "spec": {"podgroups": [group]}},
        *({"apiVersion": "v1", "kind": "Pod", **template(), "metadata": {**pod, "labels": labels}} for pod in pods),
    )

    (remedy,) = [each for each in remedies_on(cluster) if each.changes[0].lever == "minimum"]

    assert remedy.text.endswith("; change this in the labels and annotations of its pods, from which it is made")
    assert (remedy.patches, remedy.changes[0].command) == ((), "")


@pytest.mark.parametrize(("needed", "sent"), [(4, True), (2, False)])
def test_a_gang_that_has_begun_is_not_sent_to_another_queue(needed: int, sent: bool) -> None:
    """The grouper keeps it in the queue where its first pods were placed, whatever its workload says then."""
    job = a_job(4, needed)
    job["metadata"]["labels"] = {"kai.scheduler/queue": "research"}
    cluster = four_nodes_with("batch/v1", "Job", job)
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for name, limit in (("research", 16), ("team", -1)):
        spec = {"resources": {"gpu": {**share, "limit": limit}, "cpu": share, "memory": share}}
        cluster.submit({"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec})
    cluster.step()
    assert placed(list(cluster.snapshot().pods)) == (0 if sent else 2)

    assert ("submit it to queue team" in [each.text for each in remedies_on(cluster)]) is sent


def test_a_job_that_a_larger_workload_makes_is_ended_with_that() -> None:
    """A JobSet would make its Jobs again, so that the whole of it is ended, and named."""
    small = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": template()}}}]
    cluster = Cluster("4x8")
    for name in ("old", "train"):
        metadata = {"name": name, "namespace": "default"}
        jobs = {"metadata": metadata, "spec": {"replicatedJobs": small}}
        cluster.submit({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **jobs})
        cluster.step()
    snapshot = cluster.snapshot()
    subject = find(snapshot, "jobset/train", "default")

    found = Advisor(snapshot, runtime=Runtime.system(), best=10).answer(subject).remedies

    (remedy,) = [each for each in found if each.changes[0].lever == "end"]
    assert remedy.text == "end default/old (32 GPUs)"
    assert remedy.changes[0].command == "kubectl delete jobset.v1alpha2.jobset.x-k8s.io old -n default"
    assert [(each.kind, each.name, each.delete) for each in remedy.patches] == [("JobSet", "old", True)]
