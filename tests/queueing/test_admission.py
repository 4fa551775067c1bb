"""Suspended workloads wait in queues without pods, and are resumed when their gang would start."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from spinney.api import kai, labels
from spinney.api.core import EVENT, POD
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.manager import Manager
from spinney.queueing.admission import SuspendedAdmission
from spinney.runtime.tasks import end
from spinney.scheduler.config import SuspendedWorkloads
from spinney.scheduler.intake.inventory import Inventory
from tests.conftest import Cluster
from tests.grouping.test_controller import install
from tests.grouping.world import JOB, World, a_pod, a_world, reference

embedded = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

JOB_SET = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
TRAIN_JOB = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
RUNTIME = Resource(
    "trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
BRIEFLY = {"suspended_workloads": SuspendedWorkloads(kinds=("Job",), hold_seconds=30)}
JOBS = {"suspended_workloads": SuspendedWorkloads(kinds=("Job",))}


async def suspended_job(
    world: World, name: str, pods: int, *, queue: str = "", seconds: int = 0, labels: Mapping[str, str] | None = None
) -> None:
    """Create a suspended Job whose pods start together and, if told, end by themselves."""
    await create_job(world.client, world.namespace, name, pods, queue=queue, seconds=seconds, labels=labels)


async def create_job(
    client: Client,
    namespace: str,
    name: str,
    pods: int,
    *,
    queue: str = "",
    seconds: int = 0,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Create it where there is no world."""
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    metadata: JSON = {"annotations": {"spinney.dev/complete-after": f"{seconds}s"} if seconds else {}}
    template = {
        "metadata": metadata,
        "spec": {
            "schedulerName": "spinney-scheduler",
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        },
    }
    own = {"kai.scheduler/queue": queue} if queue else {}
    marks = {"spinney.dev/admission": "queue", **own, **(labels or {})}
    manifest = {
        "metadata": {"name": name, "labels": marks, "annotations": {"kai.scheduler/batch-min-member": str(pods)}},
        "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": template},
    }
    await client.create(JOB, manifest, namespace)


async def jobs(world: World) -> dict[str, bool]:
    """Return whether each Job is suspended."""
    found = (await world.client.list(JOB, world.namespace)).items
    return {job["metadata"]["name"]: bool(job["spec"].get("suspend")) for job in found}


async def said(world: World, name: str) -> dict[str, str]:
    """Return what events on a Job say, by reason."""
    events = (await world.client.list(EVENT, world.namespace)).items
    return {each["reason"]: each["message"] for each in events if each["involvedObject"]["name"] == name}


@embedded
async def test_jobs_are_resumed_as_room_comes(cluster: Cluster) -> None:
    """Of three Jobs that need the whole cluster one runs at a time, in order of age; the others have no pods."""
    async with a_world(cluster, workloads=True, scheduler=JOBS) as world:
        for number in range(3):
            await suspended_job(world, f"train-{number}", 4, seconds=600)
            await world.settle(2)
        await world.until(lambda: len(world.placed("train-0")) == 4)
        await world.settle(60)
        assert await jobs(world) == {"train-0": False, "train-1": True, "train-2": True}
        assert len(world.pods) == 4
        assert "of 4 pods" in (await said(world, "train-1"))["WaitingInQueue"]
        await world.until(lambda: len(world.placed("train-1")) == 4, 900)
        await world.settle(60)
        assert (await jobs(world))["train-2"]
        assert "suspended no longer" in (await said(world, "train-1"))["Admitted"]


@embedded
async def test_nodes_are_kept_until_the_pods_have_come(cluster: Cluster) -> None:
    """A Job that is resumed while its controller is slow keeps its nodes from a Job that comes later, then gives up."""
    async with a_world(cluster, scheduler=BRIEFLY) as world:
        await suspended_job(world, "slow", 4)
        await world.settle(2)
        assert not (await jobs(world))["slow"]
        await world.job("other", 1)
        await world.settle(20)
        assert world.placed() == []
        await world.settle(20)
        assert world.placed() == ["other-0"]


@embedded
async def test_nodes_are_kept_until_the_gang_of_the_pods_is_known(cluster: Cluster) -> None:
    """Pods of a resumed Job that name a PodGang before it exists keep the Job's nodes from a pod that comes later."""
    async with a_world(cluster, scheduler=JOBS, grouper=False) as world:
        await suspended_job(world, "first", 4)
        await world.settle(2)
        job = (await world.client.list(JOB, world.namespace)).items[0]
        assert not job["spec"].get("suspend")
        gang = f"pg-first-{job['metadata']['uid']}"
        for number in range(4):
            marks = {labels.POD_GANG: gang, labels.POD_CLIQUE: "default"}
            await world.pod(f"first-{number}", reference(JOB, job), labels=marks)
        await world.pod("later")
        await world.settle(20)
        assert world.placed() == []
        members = [{"namespace": world.namespace, "name": f"first-{number}"} for number in range(4)]
        spec = {"podgroups": [{"name": "default", "minReplicas": 4, "podReferences": members}]}
        await world.client.create(POD_GANG, {"metadata": {"name": gang}, "spec": spec}, world.namespace)
        await world.until(lambda: len(world.placed("first")) == 4)
        await world.settle(20)
        assert world.placed("later") == []


@embedded
async def test_kept_nodes_go_to_a_gang_of_higher_priority(cluster: Cluster) -> None:
    """A resumed Job whose pods have not come is suspended again for it, and resumed when the nodes are free."""
    long = {"suspended_workloads": SuspendedWorkloads(kinds=("Job",), hold_seconds=600)}
    async with a_world(cluster, scheduler=long) as world:
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        await suspended_job(world, "slow", 4)
        await world.settle(2)
        assert await jobs(world) == {"slow": False}
        pod = a_pod("urgent")
        await world.client.create(POD, {**pod, "spec": {**pod["spec"], "priorityClassName": "urgent"}}, world.namespace)
        await world.settle(20)
        assert world.placed() == ["urgent"]
        assert await jobs(world) == {"slow": True}
        assert "it waits in its queue again" in (await said(world, "slow"))["SuspendedAgain"]
        await world.client.delete(POD, "urgent", world.namespace)
        await world.settle(90)
        assert await jobs(world) == {"slow": False}


@embedded
async def test_what_is_not_asked_for_stays_as_it_is(cluster: Cluster) -> None:
    """Jobs without the label, and jobs that Kueue admits, are nobody's business here."""
    async with a_world(cluster, workloads=True, scheduler=JOBS) as world:
        await suspended_job(world, "mine", 1)
        await suspended_job(world, "unlabelled", 1, labels={"spinney.dev/admission": "none"})
        await suspended_job(world, "kueues", 1, labels={"kueue.x-k8s.io/queue-name": "team"})
        await world.until(lambda: len(world.placed("mine")) == 1)
        await world.settle(30)
        assert await jobs(world) == {"mine": False, "unlabelled": True, "kueues": True}


@embedded
async def test_a_queue_has_its_limit(cluster: Cluster) -> None:
    """A queue that may hold 8 GPUs runs one Job of 8 GPUs at a time, though there is room for four."""
    async with a_world(cluster, workloads=True, scheduler=JOBS) as world:
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        spec: dict[str, Any] = {"resources": {"cpu": free, "memory": free, "gpu": {**free, "quota": 8, "limit": 8}}}
        await world.client.create(kai.QUEUE, {"metadata": {"name": "team"}, "spec": spec})
        for name in ("a", "b"):
            await suspended_job(world, name, 1, queue="team")
        await world.until(lambda: len(world.placed()) == 1)
        await world.settle(60)
        waiting = [name for name, suspended in (await jobs(world)).items() if suspended]
        assert len(waiting) == 1
        assert "queue team" in (await said(world, waiting[0]))["WaitingInQueue"]


@embedded
async def test_a_job_of_another_scheduler_says_why_it_stays(cluster: Cluster) -> None:
    """Whose pods nobody here would place cannot be judged; an event says what to change."""
    async with a_world(cluster, workloads=True, scheduler=JOBS) as world:
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        job = {
            "metadata": {"name": "theirs", "labels": {"spinney.dev/admission": "queue"}},
            "spec": {"suspend": True, "template": {"spec": spec}},
        }
        await world.client.create(JOB, job, world.namespace)
        await world.settle(10)
        assert (await jobs(world)) == {"theirs": True}
        assert "schedulerName" in (await said(world, "theirs"))["NotQueueable"]


@embedded
async def test_a_workload_whose_pods_cannot_be_read_says_so_and_keeps_nobody_from_their_turn(cluster: Cluster) -> None:
    """A CRD lets through what a pod may not say: the older JobSet is told, and the one that came with it is resumed."""
    kinds = {"suspended_workloads": SuspendedWorkloads(kinds=("JobSet",))}
    async with a_world(cluster, scheduler=kinds) as world:
        await install(world, JOB_SET)
        for name, cpu in (("odd", "much"), ("sound", "1")):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
            template = {"spec": {"schedulerName": "spinney-scheduler", "containers": [container]}}
            job = {"spec": {"parallelism": 1, "completions": 1, "template": template}}
            replicated = [{"name": "workers", "replicas": 1, "template": job}]
            metadata = {"name": name, "labels": {"spinney.dev/admission": "queue"}}
            manifest = {"metadata": metadata, "spec": {"suspend": True, "replicatedJobs": replicated}}
            await world.client.create(JOB_SET, manifest, world.namespace)
        await world.settle(90)
        found = (await world.client.list(JOB_SET, world.namespace)).items
        assert {each["metadata"]["name"]: each["spec"]["suspend"] for each in found} == {"odd": True, "sound": False}
        assert "could not read its pods: InvalidQuantity: 'much'" in (await said(world, "odd"))["NotQueueable"]


@embedded
async def test_a_train_job_follows_the_runtime_that_it_names(cluster: Cluster) -> None:
    """It is told that there is none, waits while what the runtime describes has no room, and is resumed when it has."""
    kinds = {"suspended_workloads": SuspendedWorkloads(kinds=("TrainJob",))}
    async with a_world(cluster, scheduler=kinds) as world:
        for kind in (TRAIN_JOB, RUNTIME):
            await install(world, kind)
        metadata = {"name": "train", "labels": {"spinney.dev/admission": "queue"}}
        spec = {"suspend": True, "runtimeRef": {"name": "torch"}}
        await world.client.create(TRAIN_JOB, {"metadata": metadata, "spec": spec}, world.namespace)
        await world.settle(90)
        assert "torch" in (await said(world, "train"))["NotQueueable"]
        container = {"name": "node", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        pods = {"spec": {"schedulerName": "spinney-scheduler", "containers": [container]}}
        job = {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": pods},
        }
        template = {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}
        runtime = {"metadata": {"name": "torch"}, "spec": {"mlPolicy": {"numNodes": 5}, "template": template}}
        await world.client.create(RUNTIME, runtime)
        await world.settle(20)
        assert "of 5 pods" in (await said(world, "train"))["WaitingInQueue"]
        await world.client.patch(RUNTIME, "torch", {"spec": {"mlPolicy": {"numNodes": 4}}})
        await world.settle(20)
        assert "of 4 pods" in (await said(world, "train")).get("Admitted", "")


@embedded
async def test_jobs_that_cannot_wait_keep_nobody_from_their_turn(cluster: Cluster) -> None:
    """Older Jobs of a scheduler that is not served stand in front for ever, and the one behind them is resumed."""
    one = {"suspended_workloads": SuspendedWorkloads(kinds=("Job",), per_queue=1)}
    async with a_world(cluster, workloads=True, scheduler=one) as world:
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        for name in ("a", "b"):
            metadata = {"name": name, "labels": {"spinney.dev/admission": "queue"}}
            await world.client.create(
                JOB, {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": spec}}}, world.namespace
            )
        await world.settle(2)
        await suspended_job(world, "mine", 1)
        await world.until(lambda: len(world.placed("mine")) == 1)
        assert await jobs(world) == {"a": True, "b": True, "mine": False}


@embedded
async def test_a_replica_that_stands_by_keeps_no_virtual_gangs(cluster: Cluster) -> None:
    """What waits is taken out of the inventory with the lease, and is there again with the next one."""
    manager, inventory = Manager(cluster.client, cluster.runtime), Inventory()
    admission = SuspendedAdmission(manager, inventory, SuspendedWorkloads(kinds=("Job",)))
    await create_job(cluster.client, cluster.namespace, "train", 4)
    for _ in range(2):
        leading = asyncio.create_task(admission.run())
        await asyncio.sleep(5)
        assert len(list(inventory.cluster.pods())) == 4
        await end(leading)
        assert list(inventory.cluster.pods()) == []


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_the_jobs_controller_of_kubernetes_makes_the_pods(cluster: Cluster) -> None:
    """On a real control plane a suspended Job is resumed, its pods come up as one gang, and its event says so."""
    async with a_world(cluster, scheduler=JOBS) as world:
        await suspended_job(world, "queued", 2)
        await suspended_job(world, "held", 1, labels={"spinney.dev/admission": "none"})
        await world.until(lambda: len(world.placed("queued")) == 2, 110)
        assert await jobs(world) == {"queued": False, "held": True}
        await world.until(lambda: world.floors("queued") == {"default": 2})
