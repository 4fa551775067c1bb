"""On the embedded cluster what people apply first becomes pods, as a controller manager would have it."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api.core import EVENT, POD
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.server import ServerOptions
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.sim.overview.gang_table import gang_lines
from spinney.sim.snapshots.snapshot import take
from spinney.workloads import NOT_RUN
from spinney.workloads.job import intervals
from spinney.workloads.objects import DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET
from tests.virtual_time import on_virtual_time, opening

Objects = Sequence[dict[str, Any]]


@asynccontextmanager
async def a_cluster() -> AsyncIterator[Client]:
    """Run an embedded cluster with everything."""
    cluster = EmbeddedCluster(Runtime.virtual(seed=1), StackOptions.whole(gpu_cluster(4, 8)))
    async with cluster.running():
        yield cluster.client


given_a_cluster = opening(a_cluster)


async def until(client: Client, resource: Resource, holds: Callable[[Objects], bool]) -> Objects:
    """Return the objects of a kind once something holds of them."""
    async for _ in client.watch(resource, "default", type=dict):
        found = (await client.list(resource, "default")).items
        if holds(found):
            return found
    raise AssertionError("the watch has ended")


def running(pods: Objects, *, image: str = "one") -> list[str]:
    """Return the names of the pods that are ready with an image."""
    return [
        pod["metadata"]["name"]
        for pod in pods
        if pod["status"].get("phase") == "Running"
        and any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
        and pod["spec"]["containers"][0]["image"] == image
        and "deletionTimestamp" not in pod["metadata"]
    ]


def a_workload(kind: str, name: str, *, image: str = "one", scheduler: str = "default-scheduler", **spec: Any) -> JSON:
    """Return a workload of pods that ask for a GPU each."""
    container = {"name": "main", "image": image, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod: JSON = {"schedulerName": scheduler, "containers": [container]}
    labels = {"app": name}
    if kind == "Job":
        return {"metadata": {"name": name}, "spec": {**spec, "template": {"spec": {**pod, "restartPolicy": "Never"}}}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"metadata": {"name": name}, "spec": {**spec, "selector": {"matchLabels": labels}, "template": template}}


@given_a_cluster
async def test_a_deployment_becomes_pods_and_is_updated_without_a_gap(client: Client) -> None:
    """Its pods belong to a ReplicaSet; a new image replaces them while enough of them stay ready."""
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", replicas=4), "default")
    await until(client, POD, lambda pods: len(running(pods)) == 4)
    await until(client, DEPLOYMENT, lambda found: found[0].get("status", {}).get("availableReplicas") == 4)
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", image="two", replicas=4), "default")
    fewest = 4

    def updated(pods: Objects) -> bool:
        nonlocal fewest
        fewest = min(fewest, len(running(pods)) + len(running(pods, image="two")))
        return len(running(pods, image="two")) == 4 and len(pods) == 4

    await until(client, POD, updated)
    assert fewest >= 3, "maxUnavailable is a quarter"
    sets = (await client.list(REPLICA_SET, "default")).items
    assert sorted(each["spec"]["replicas"] for each in sets) == [0, 4]


@given_a_cluster
async def test_a_deployment_is_scaled_and_deleted_with_its_pods(client: Client) -> None:
    """Fewer replicas give pods up; deleting the Deployment leaves nothing."""
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", replicas=3), "default")
    await until(client, POD, lambda pods: len(running(pods)) == 3)
    await client.patch(DEPLOYMENT, "web", {"spec": {"replicas": 1}}, "default", subresource="scale")
    await until(client, POD, lambda pods: len(pods) == 1)
    await client.delete(DEPLOYMENT, "web", "default")
    await until(client, POD, lambda pods: not pods)
    assert not (await client.list(REPLICA_SET, "default")).items


@given_a_cluster
async def test_a_paused_deployment_is_scaled_and_keeps_its_template(client: Client) -> None:
    """Pausing holds back new templates, not numbers; they are rolled out when it goes on."""
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", replicas=2), "default")
    await until(client, POD, lambda pods: len(running(pods)) == 2)
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", replicas=4, image="two", paused=True), "default")
    await until(client, POD, lambda pods: len(running(pods)) == 4)
    (said,) = await until(client, DEPLOYMENT, lambda found: found[0]["status"].get("readyReplicas") == 4)
    progressing = next(each for each in said["status"]["conditions"] if each["type"] == "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("Unknown", "DeploymentPaused")
    await client.apply(DEPLOYMENT, a_workload("Deployment", "web", replicas=4, image="two"), "default")
    await until(client, POD, lambda pods: len(pods) == len(running(pods, image="two")) == 4)


@given_a_cluster
async def test_a_deployment_paused_within_a_rollout_is_scaled_in_proportion(client: Client) -> None:
    """The example of Kubernetes' documentation: of ten pods and three beyond eight are old; then fifteen are wanted."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    web = a_workload("Deployment", "web", replicas=10, strategy=rolling)
    await client.apply(DEPLOYMENT, web, "default")
    await until(client, POD, lambda pods: len(running(pods)) == 10)
    stuck = a_workload("Deployment", "web", replicas=10, strategy=rolling, image="two")
    stuck["spec"]["template"]["metadata"]["annotations"] = {"spinney.dev/never-ready": "true"}
    await client.apply(DEPLOYMENT, stuck, "default")

    def sized(*sizes: int) -> Callable[[Objects], bool]:
        return lambda found: sorted(each["spec"]["replicas"] for each in found) == list(sizes)

    await until(client, REPLICA_SET, sized(5, 8))
    for wanted, expected in ((15, [7, 11]), (15, [7, 11]), (5, [3, 5]), (0, [0, 0])):
        if wanted == 0:  # by somebody's hand; what the sets have now counts then
            for each in (await client.list(REPLICA_SET, "default")).items:
                odd = {"metadata": {"annotations": {"deployment.kubernetes.io/max-replicas": "many"}}}
                await client.patch(REPLICA_SET, each["metadata"]["name"], odd, "default")
        scaled = {"spec": {"replicas": wanted, "paused": True}}
        await client.patch(DEPLOYMENT, "web", scaled, "default")
        await until(client, REPLICA_SET, sized(*expected))


@given_a_cluster
async def test_a_stateful_set_comes_up_in_order_and_is_replaced_from_the_end(client: Client) -> None:
    """Pods have their numbers, each is made when those before it are ready, and the highest is replaced first."""
    set_ = a_workload("StatefulSet", "db", replicas=3, serviceName="db")
    await client.apply(STATEFUL_SET, set_, "default")

    def in_order(pods: Objects) -> bool:
        names = sorted(pod["metadata"]["name"] for pod in pods)
        assert names == [f"db-{number}" for number in range(len(names))]
        assert len(names) <= len(running(pods)) + 1, "one pod at a time"
        return len(running(pods)) == 3

    await until(client, POD, in_order)
    await client.apply(STATEFUL_SET, set_ | a_workload("StatefulSet", "db", image="two", replicas=3), "default")
    order: list[str] = []

    def replaced(pods: Objects) -> bool:
        order.extend(name for name in running(pods, image="two") if name not in order)
        return len(running(pods, image="two")) == 3

    await until(client, POD, replaced)
    assert order == ["db-2", "db-1", "db-0"]


@given_a_cluster
async def test_an_indexed_job_is_a_gang_and_completes(client: Client) -> None:
    """Its pods have their indexes, start together or not at all, and the Job is complete when all have succeeded."""
    job = a_workload(
        "Job", "train", scheduler="spinney-scheduler", parallelism=3, completions=3, completionMode="Indexed"
    )
    job["metadata"]["annotations"] = {"kai.scheduler/batch-min-member": "3"}
    await client.apply(JOB, job, "default")
    pods = await until(client, POD, lambda found: len(running(found)) == 3)
    indexes = {pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods}
    assert indexes == {"0", "1", "2"}
    assert len((await client.list(POD_GANG, "default")).items) == 1
    for pod in pods:
        await client.patch(
            POD, pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}, "default", subresource="status"
        )
    (done,) = await until(client, JOB, lambda found: bool(found[0]["status"].get("completionTime")))
    assert done["status"]["completedIndexes"] == "0-2"
    assert [each["type"] for each in done["status"]["conditions"] if each["status"] == "True"] == ["Complete"]


@given_a_cluster
async def test_a_workload_whose_pods_are_refused_says_why(client: Client) -> None:
    """The event on it has the words of the API server."""
    quota = Resource("", "v1", "ResourceQuota", "resourcequotas")
    await client.create(quota, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}, "default")
    await client.create(STATEFUL_SET, a_workload("StatefulSet", "db", replicas=1, serviceName="db"), "default")

    events = await until(client, EVENT, lambda found: any(each["reason"] == "FailedCreate" for each in found))

    (said,) = [each for each in events if each["reason"] == "FailedCreate"]
    assert (said["involvedObject"]["kind"], said["involvedObject"]["name"]) == ("StatefulSet", "db")
    assert said["message"].startswith('Error creating: pods "db-0" is forbidden: exceeded quota: none')


@given_a_cluster
async def test_a_suspended_job_has_no_pods_until_it_is_resumed(client: Client) -> None:
    """``suspend`` takes the pods away and gives them back."""
    await client.apply(JOB, a_workload("Job", "later", parallelism=2, completions=2, suspend=True), "default")
    await until(client, JOB, lambda found: bool(found[0].get("status", {}).get("conditions")))
    assert not (await client.list(POD, "default")).items
    await client.patch(JOB, "later", {"spec": {"suspend": False}}, "default")
    await until(client, POD, lambda pods: len(running(pods)) == 2)
    await client.patch(JOB, "later", {"spec": {"suspend": True}}, "default")
    await until(client, POD, lambda pods: not pods)


@given_a_cluster
async def test_a_job_that_fails_too_often_is_given_up(client: Client) -> None:
    """After ``backoffLimit`` failures the Job has failed, and no further pod is made."""
    await client.apply(JOB, a_workload("Job", "bad", backoffLimit=1), "default")
    for _ in range(2):
        pods = await until(client, POD, lambda found: len(running(found)) == 1)
        (name,) = running(pods)
        await client.patch(POD, name, {"status": {"phase": "Failed"}}, "default", subresource="status")
    (job,) = await until(client, JOB, lambda found: bool(found[0]["status"].get("conditions")))
    assert job["status"]["conditions"][0]["reason"] == "BackoffLimitExceeded"
    assert job["status"]["failed"] == 2


@given_a_cluster
async def test_an_index_that_fails_too_often_is_given_up_alone(client: Client) -> None:
    """The others go on; the Job has failed when all have ended, or when too many indexes failed."""
    job = a_workload("Job", "sweep", parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=0)
    await client.create(JOB, job, "default")
    pods = await until(client, POD, lambda found: len(running(found)) == 2)
    bad, good = sorted(pod["metadata"]["name"] for pod in pods)
    await client.patch(POD, bad, {"status": {"phase": "Failed"}}, "default", subresource="status")
    await until(client, JOB, lambda found: found[0]["status"].get("failedIndexes") == "0")
    assert len((await client.list(POD, "default")).items) == 2
    await client.patch(POD, good, {"status": {"phase": "Succeeded"}}, "default", subresource="status")
    (job,) = await until(client, JOB, lambda found: bool(found[0]["status"].get("conditions")))
    assert (job["spec"]["backoffLimit"], job["status"]["completedIndexes"]) == (2**31 - 1, "1")
    assert job["status"]["conditions"][0]["reason"] == "FailedIndexes"

    impatient = a_workload("Job", "the-strict", parallelism=2, completions=2, completionMode="Indexed")
    impatient["spec"] |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    await client.create(JOB, impatient, "default")
    pods = await until(client, POD, lambda found: len(running(found)) == 2)
    await client.patch(POD, running(pods)[0], {"status": {"phase": "Failed"}}, "default", subresource="status")
    _, job = await until(client, JOB, lambda found: bool(found[1]["status"].get("conditions")))
    assert job["status"]["conditions"][0]["reason"] == "MaxFailedIndexesExceeded"


@given_a_cluster
async def test_a_gang_whose_job_is_over_waits_for_nothing(client: Client) -> None:
    """Its PodGang says that it has ended, and the list of gangs names no reason to wait."""
    for name, phase in (("done", "Succeeded"), ("lost", "Failed")):
        job = a_workload("Job", name, scheduler="spinney-scheduler", parallelism=2, completions=2, backoffLimit=0)
        await client.create(JOB, job, "default")
        pods = await until(client, POD, lambda found: len(running(found)) == 2)
        for pod in running(pods):
            await client.patch(POD, pod, {"status": {"phase": phase}}, "default", subresource="status")
    gangs = await until(client, POD_GANG, lambda found: [said_of(gang)[1] for gang in found] == ["Ended", "Ended"])
    assert [said_of(gang) for gang in gangs] == [("True", "Ended"), ("False", "Ended")]
    lines = gang_lines(await take(client))
    assert [(line.state, line.reason) for line in lines] == [("ended", ""), ("ended", "")]


def said_of(gang: JSON) -> tuple[str, str]:
    """Return status and reason of the condition Scheduled."""
    conditions = gang.get("status", {}).get("conditions", ())
    found = next((each for each in conditions if each["type"] == "Scheduled"), {"status": "", "reason": ""})
    return found["status"], found["reason"]


@on_virtual_time
async def test_what_nobody_runs_is_answered_with_a_warning() -> None:
    """A CronJob is stored, and whoever creates it is told that nothing will come of it."""
    cluster = EmbeddedCluster(Runtime.virtual(seed=1), StackOptions(), server=ServerOptions(inert=NOT_RUN))
    async with cluster.server.running():
        spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": a_workload("Job", "hourly")["spec"]}}
        manifest = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hourly"}, "spec": spec}
        path = "/apis/batch/v1/namespaces/default/cronjobs"
        answer = await cluster.client.raw("POST", path, body=json.dumps(manifest).encode())
    assert any("no controller runs CronJobs" in text for text in answer.headers.values())


@pytest.mark.parametrize(("indexes", "text"), [((), ""), ((3,), "3"), ((0, 1, 2), "0-2"), ((5, 0, 1, 3), "0-1,3,5")])
def test_indexes_are_written_as_intervals(indexes: tuple[int, ...], text: str) -> None:
    """Completed indexes read as Kubernetes writes them."""
    assert intervals(indexes) == text
