"""Workloads that the real Kueue admits are gangs: where it says, when it says, and not before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import NODE
from spinney.api.kueue import QUOTA_RESERVED, WORKLOAD, Workload
from spinney.api.struct import JSON
from spinney.scheduler.config import SuspendedWorkloads
from spinney.scheduler.fairshare.amounts import GPU
from spinney.sim.advice.subjects import NoSuchSubject, find
from spinney.sim.embedded.shapes import HOST, RACK
from spinney.sim.snapshots.snapshot import take
from spinney.sim.whatif.loading import KueueQueues
from tests.grouping.staging import WITHIN, Stage
from tests.grouping.world import JOB
from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

API = "kueue.x-k8s.io/v1beta2"
REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
QUEUE = "kueue.x-k8s.io/queue-name"
CONTAINER = {"name": "c", "image": "i"}
TAINT = {"key": "reserved", "value": "yes", "effect": "NoSchedule"}


@asynccontextmanager
async def beside_kueue(ground: Ground, *, nodes: int, gpus: int, racks: bool = False) -> AsyncIterator[Stage]:
    """Have Kueue with a queue of so many GPUs, which may know racks, and our own admission of suspended Jobs."""
    ours = SuspendedWorkloads(kinds=("Job",))
    async with ground.visited_by("kueue"), a_stage(ground, nodes=nodes, suspended_workloads=ours) as stage:
        for each in queues(stage.world.namespace, gpus, racks=racks):
            await stage.create(each)
        yield stage


def queues(name: str, gpus: int, *, racks: bool) -> list[JSON]:
    """Return a flavour of reserved nodes, a queue in a cohort that may give so many GPUs of them, and the way in."""
    topology = {"topologyName": name} if racks else {}
    toleration = {"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}
    quota = [{"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}]
    specs: dict[str, JSON] = {
        "Topology": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]},
        "ResourceFlavor": {"nodeLabels": {"pool": name}, "tolerations": [toleration], **topology},
        "Cohort": {},
        "ClusterQueue": {
            "cohortName": name,
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": quota}],
        },
        "LocalQueue": {"clusterQueue": name},
    }
    return [{"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec} for kind, spec in specs.items()]


async def reserve(stage: Stage, *nodes: str) -> None:
    """Make nodes those of the flavour: a label and a taint."""
    label = {"labels": {"pool": stage.world.namespace}}
    for node in nodes:
        await stage.world.client.patch(NODE, node, {"metadata": label, "spec": {"taints": [TAINT]}})


def a_job(stage: Stage, name: str, pods: int, *, template: JSON | None = None, **spec: JSON) -> JSON:
    """Return a Job in Kueue's queue, of pods that start together; it also asks to wait in ours, in vain."""
    labels = {QUEUE: stage.world.namespace, "spinney.dev/admission": "queue"}
    annotations = {"kai.scheduler/batch-min-member": str(pods)}
    pod = {"metadata": template or {}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER], **spec}}
    manifest: JSON = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": pod},
    }
    return for_our_nodes(manifest)


async def until_refused_by_kueue(stage: Stage, job: str) -> str:
    """Wait until Kueue says that it has no quota for a Job; return its words."""
    async with asyncio.timeout(WITHIN):
        async for event in stage.world.client.watch(WORKLOAD, stage.world.namespace, type=Workload):
            said = find_condition(event.object.status.conditions, QUOTA_RESERVED)
            if job in event.object.metadata.name and said is not None and said.status == "False":
                return said.message
    raise AssertionError("the watch ended")


def nodes_of(stage: Stage, job: str) -> set[str]:
    """Return the nodes that the pods of a Job are on."""
    return {pod.spec.node_name for name, pod in stage.pods().items() if name.startswith(f"{job}-")}


async def test_a_job_starts_when_kueue_admits_it_on_the_nodes_of_its_flavour(ground: Ground) -> None:
    """The first runs on reserved nodes; the second stays suspended, though we could resume it, until the first ends."""
    async with beside_kueue(ground, nodes=4, gpus=16) as stage:
        client, namespace = stage.world.client, stage.world.namespace
        await reserve(stage, "gpu-001", "gpu-003")
        await stage.create(a_job(stage, "first", 2))
        await stage.until_running(2)
        assert stage.floors() == [{"default": 2}]
        assert nodes_of(stage, "first") == {"gpu-001", "gpu-003"}

        async with stage.applied(a_job(stage, "second", 2)):
            said = await until_refused_by_kueue(stage, "second")
            snapshot = await take(client, namespace=namespace)
            with pytest.raises(NoSuchSubject) as refused:
                find(snapshot, "job/second", namespace)
            assert f"Kueue has not admitted it: {said}" in str(refused.value)
            known = {queue.name: queue for queue in KueueQueues.of(snapshot).queues}
            assert known[namespace].parent == f"cohort/{namespace}"
            assert known[namespace].quota.gpu == 16 * GPU
            assert (await client.get(JOB, "second", namespace))["spec"]["suspend"] is True
            assert {name.rpartition("-")[0] for name in stage.pods()} == {"first"}

            await client.delete(JOB, "first", namespace, propagation_policy="Background")
            await stage.until(lambda: nodes_of(stage, "second") == {"gpu-001", "gpu-003"})


async def test_a_jobset_goes_to_the_rack_that_kueue_assigns(ground: Ground) -> None:
    """Four pods that Kueue wants in one rack wait until it has assigned them, and start there as one gang."""
    async with beside_kueue(ground, nodes=8, gpus=64, racks=True) as stage:
        await reserve(stage, *(f"gpu-{number:03d}" for number in range(1, 8)))
        annotations = {REQUIRED_TOPOLOGY: RACK}
        pod = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        job = {"parallelism": 4, "completions": 4, "backoffLimit": 0, "template": pod}
        replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
        manifest: JSON = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "racked", "labels": {QUEUE: stage.world.namespace}},
            "spec": {"replicatedJobs": replicated},
        }
        async with stage.applied(for_our_nodes(manifest)):
            await stage.until_running(4)
            assert stage.floors() == [{"workers-replica-0": 4}]
            assert nodes_of(stage, "racked") == {f"gpu-{number:03d}" for number in range(4, 8)}


async def test_an_assignment_that_no_node_can_meet_is_refused_with_the_reason(ground: Ground) -> None:
    """Pods that Kueue sends to a rack want to be beside another pod, which is not there: all wait, and say so."""
    beside = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": RACK}
    affinity: JSON = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}
    template = {"annotations": {REQUIRED_TOPOLOGY: RACK}}
    async with beside_kueue(ground, nodes=8, gpus=64, racks=True) as stage:
        await reserve(stage, *(f"gpu-{number:03d}" for number in range(8)))
        async with stage.applied(a_job(stage, "lonely", 2, template=template, affinity=affinity)):
            await stage.until_refused(2)
            said = {
                each.message for pod in stage.pods().values() if (each := pod.condition("PodScheduled")) is not None
            }
            assert all("didn't match pod affinity rules" in each for each in said), said
