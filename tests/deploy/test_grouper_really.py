"""The grouper on a real control plane, as its account: what Kubernetes' own controllers make becomes gangs."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spinney.api.admission import MUTATING_WEBHOOK_CONFIGURATION
from spinney.api.core import EVENT, POD
from spinney.api.struct import JSON
from spinney.grouping.configuration import AdmissionConfiguration, GrouperConfiguration, LoadedGrouperConfiguration
from spinney.grouping.grouper import Grouper
from spinney.grouping.loading import built_in
from spinney.grouping.webhook import WEBHOOK, webhook_process
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.kube.errors import Forbidden, NotFound
from spinney.kube.webhooks.registration import unregister
from spinney.runtime.tasks import end
from spinney.sim.embedded.stack import OUR_BACKENDS
from spinney.workloads.objects import STATEFUL_SET
from tests.conftest import Cluster
from tests.grouping.staging import Stage
from tests.grouping.world import JOB, a_pod, a_world

from .deployment import deployed
from .rendering import SYSTEM, installed, printed

pytestmark = [
    pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)]),
    pytest.mark.timeout(600),
]

NAME = "spinney-grouper"
RIGHTS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
LEAST = {"kai.scheduler/min-member": "3"}
TEMPLATE: JSON = {"metadata": {"labels": {"app": "three"}}, "spec": a_pod("x")["spec"]}
REPLICAS: JSON = {"replicas": 3, "selector": {"matchLabels": {"app": "three"}}, "template": TEMPLATE}
WORKLOADS: dict[str, JSON] = {
    "StatefulSet": {**REPLICAS, "serviceName": "three", "podManagementPolicy": "Parallel"},
    "Deployment": REPLICAS,
    "ReplicaSet": REPLICAS,
}


@asynccontextmanager
async def a_stage(cluster: Cluster, directory: Path, *options: str) -> AsyncIterator[Stage]:
    """Run the grouper as installed with these options, and the scheduler on two nodes; nothing may be refused to it."""
    objects = printed("--grouper", *options)
    rights = [each for each in objects if each["kind"] in RIGHTS and NAME in each["metadata"]["name"]]
    log = directory / "log"
    async with (
        a_world(cluster, nodes=2, grouper=False) as world,
        installed(cluster.client, rights),
        deployed(cluster, objects, NAME, log),
    ):
        yield Stage(world, log.read_text)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line for line in lines if "forbidden" in str(line).lower() or line.get("level") == "error"] == []


async def comes_up_whole(stage: Stage) -> None:
    """See that three pods wait whole on two nodes, and run on three."""
    await stage.until_floors({"default": 3})
    await stage.until_refused(3)
    await stage.add_nodes(1)
    await stage.until_running(3)


async def test_what_kubernetes_own_controllers_make_comes_up_whole(cluster: Cluster, tmp_path: Path) -> None:
    """Sets and deployments that say how many they need are gangs, and so are pods that nobody owns."""
    async with a_stage(cluster, tmp_path) as stage:
        for kind, spec in WORKLOADS.items():
            metadata = {"name": "three", "annotations": LEAST}
            async with stage.applied({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}):
                await comes_up_whole(stage)
            await stage.remove_node()
        for number in range(3):
            await stage.world.pod(f"bare-{number}", labels={"spinney.dev/gang": "sweep"}, annotations=LEAST)
        await comes_up_whole(stage)
        await cluster.client.delete_collection(POD, cluster.namespace, grace_period_seconds=0)
        await stage.until(lambda: not stage.pods())


async def test_a_job_and_a_job_of_a_cron_job_come_up_whole(cluster: Cluster, tmp_path: Path) -> None:
    """More parallelism than is needed changes nothing for those that run; what a CronJob makes counts as a Job."""
    pod = {**a_pod("x")["spec"], "restartPolicy": "Never"}
    spec = {"parallelism": 3, "completions": 9, "template": {"spec": pod}}
    least = {"kai.scheduler/batch-min-member": "3"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "three", "annotations": least}, "spec": spec}
    async with a_stage(cluster, tmp_path) as stage:
        async with stage.applied(job) as resource:
            await comes_up_whole(stage)
            await stage.patch(resource, "three", {"spec": {"parallelism": 4}})
            await stage.until_refused(1)
            assert (len(stage.running()), stage.floors()) == (3, [{"default": 3}])
        await stage.remove_node()
        every_year = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": spec}}
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly"}, "spec": every_year}
        async with stage.applied(cron) as resource:
            made = await cluster.client.get(resource, "yearly", cluster.namespace)
            owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "yearly", "uid": made["metadata"]["uid"]}
            by_hand = {"name": "now", "annotations": least, "ownerReferences": [{**owner, "controller": True}]}
            await cluster.client.create(JOB, {"metadata": by_hand, "spec": spec}, cluster.namespace)
            await comes_up_whole(stage)


async def test_it_may_not_read_kinds_whose_rule_is_left_out(cluster: Cluster, tmp_path: Path) -> None:
    """Without a rule for StatefulSets the account may not read them, and their pods are scheduled nevertheless."""
    assert cluster.plane is not None
    file = tmp_path / "grouper.yaml"
    profiles = "scheduler: {profiles: [{name: spinney-scheduler, default: true}]}\n"
    file.write_text(f"kind: GrouperConfiguration\nwithout: [apps/StatefulSet]\n{profiles}")
    async with a_stage(cluster, tmp_path, "--grouper-config", str(file)) as stage:
        account = cluster.plane.kubeconfig_for(f"system:serviceaccount:{SYSTEM}:{NAME}")
        client = Client(load_kubeconfig(account, runtime=cluster.runtime), cluster.runtime)
        await client.list(JOB)
        with pytest.raises(Forbidden):
            await client.list(STATEFUL_SET)
        await client.transport.close()
        spec = {**WORKLOADS["StatefulSet"], "replicas": 2}
        two = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "two"}, "spec": spec}
        async with stage.applied(two):
            await stage.until_running(2)


async def test_pods_that_cannot_join_a_native_group_say_so(cluster: Cluster, tmp_path: Path) -> None:
    """kube-scheduler's pods that were to be one gang each get an event with what to do, under the granted rights."""
    file = tmp_path / "grouper.yaml"
    profile = "{name: default-scheduler, default: true, config: {gangScheduling: true}}"
    served = "schedulerNames: [default-scheduler]"
    file.write_text(f"kind: GrouperConfiguration\n{served}\nscheduler: {{profiles: [{profile}]}}\n")
    pod = {**a_pod("x", scheduler="default-scheduler")["spec"], "restartPolicy": "Never"}
    metadata = {"name": "three", "annotations": {"kai.scheduler/batch-min-member": "3"}}
    spec = {"parallelism": 3, "completions": 3, "template": {"spec": pod}}
    async with (
        a_stage(cluster, tmp_path, "--grouper-config", str(file)) as stage,
        stage.applied({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}),
    ):
        await stage.until(lambda: len(stage.pods()) == 3)
        async for event in cluster.client.watch(EVENT, cluster.namespace):
            if event.object.get("reason") == "CannotJoin":
                break
        assert "spec.schedulingGroup" in event.object["message"]
        assert stage.floors() == []


async def test_its_account_may_register_the_webhook_and_take_it_back(cluster: Cluster) -> None:
    """The certificate is made, and an API server that reads the registration would trust it."""
    assert cluster.plane is not None
    rights = [each for each in printed("--grouper") if each["kind"] in RIGHTS and NAME in each["metadata"]["name"]]
    account = cluster.plane.kubeconfig_for(f"system:serviceaccount:{SYSTEM}:{NAME}")
    client = Client(load_kubeconfig(account, runtime=cluster.runtime), cluster.runtime)
    only_here = {"kubernetes.io/metadata.name": cluster.namespace}  # nobody answers where the API server would ask
    listening = AdmissionConfiguration(bind_address="127.0.0.1", port=0)
    written = GrouperConfiguration(admission=listening, namespace_labels=only_here)
    await install_crds(cluster.client)
    async with installed(cluster.client, rights):
        grouper = Grouper(client, LoadedGrouperConfiguration(written, built_in(), OUR_BACKENDS))
        await grouper.prepare()
        process = webhook_process(grouper, client, written, namespace=SYSTEM)
        serving = asyncio.create_task(process.run())
        try:
            async with asyncio.timeout(120):
                while process.unready() is not None and not serving.done():  # noqa: ASYNC110 - as a probe does
                    await asyncio.sleep(0.1)
            assert process.unready() is None, serving
        finally:
            await end(serving)
        found = await cluster.client.get(MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        assert [each["kind"] for each in found["metadata"]["ownerReferences"]] == ["ClusterRole"]
        await unregister(client, MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        with pytest.raises(NotFound):
            await cluster.client.get(MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        with pytest.raises(Forbidden):
            await client.delete(MUTATING_WEBHOOK_CONFIGURATION, "somebody-elses")
    await client.transport.close()
