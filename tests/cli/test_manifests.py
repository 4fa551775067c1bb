"""What ``spinney manifests`` prints is accepted, and is exactly enough to run on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.backends.profiles import Profile, Profiles
from spinney.cli import main
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.nodes import ClusterSpec, Fleet, NodeGroup
from spinney.operator.operator import Operator, Settings
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.process.process import SchedulerProcess
from tests.conftest import Cluster
from tests.deploy.rendering import installed

OURS = "scheduler: {profiles: [{name: spinney-scheduler, default: true}]}"
NAMESPACE = "spinney-system"


def printed(tmp_path: Path, configuration: str, *options: str) -> list[JSON]:
    """Return the manifests for a configuration."""
    file = tmp_path / "config.yaml"
    file.write_text(configuration)
    answer = CliRunner().invoke(main, ["manifests", "--config", str(file), *options])
    assert answer.exit_code == 0, answer.output
    return [document for document in yaml.safe_load_all(answer.output) if document]


def groups_of(objects: list[JSON], role: str) -> set[str]:
    """Return the API groups a cluster role speaks of."""
    (found,) = [each for each in objects if each["kind"] == "ClusterRole" and each["metadata"]["name"] == role]
    return {group for rule in found["rules"] for group in rule["apiGroups"]}


def test_rights_follow_the_enabled_profiles(tmp_path: Path) -> None:
    """Rights on KAI's objects are granted only when its profile is enabled."""
    without = printed(tmp_path, OURS)
    with_kai = printed(tmp_path, "scheduler: {profiles: [{name: kai-scheduler, default: true}]}")

    assert "scheduling.run.ai" not in groups_of(without, "grove-operator")
    assert "scheduling.run.ai" in groups_of(with_kai, "grove-operator")


@pytest.mark.parametrize(
    ("values", "granted"),
    [
        ("{}", ["leases", "leases", "secrets", "secrets"]),
        ("{replicaCount: 1, config: {leaderElection: {enabled: false}}}", ["secrets", "secrets"]),
        ("{webhooks: {certificate: {secretName: ours}}}", ["leases", "leases"]),
        ("{webhooks: {certificate: {certManager: {enabled: true}}}}", ["leases", "leases"]),
    ],
)
def test_the_operator_may_keep_only_what_it_keeps(values: str, granted: list[str], tmp_path: Path) -> None:
    """Without an election it has no right to Leases, with a certificate of somebody else none to its Secret."""
    file = tmp_path / "values.yaml"
    file.write_text(values)
    answer = CliRunner().invoke(main, ["manifests", "--no-crds", "--values", str(file)])
    (role,) = [
        each
        for each in yaml.safe_load_all(answer.output)
        if each["kind"] == "Role" and each["metadata"]["name"] == "grove-operator"
    ]
    assert [resource for rule in role["rules"] for resource in rule["resources"]] == granted


def test_our_scheduler_is_deployed_only_for_its_profile(tmp_path: Path) -> None:
    """Without the spinney-scheduler profile there is one deployment, the operator's."""
    for configuration, expected in ((OURS, {"grove-operator", "spinney-scheduler"}), ("{}", {"grove-operator"})):
        objects = printed(tmp_path, configuration)
        assert {each["metadata"]["name"] for each in objects if each["kind"] == "Deployment"} == expected


@pytest.mark.parametrize("profile", ["spinney-scheduler", "kai-scheduler", "volcano", "coscheduling"])
def test_only_groves_kinds_are_brought(tmp_path: Path, profile: str) -> None:
    """The CRDs of KAI, Volcano and scheduler-plugins are never printed: their owners install and remove them."""
    configuration = f"scheduler: {{profiles: [{{name: {profile}, default: true}}]}}"
    objects = printed(tmp_path, configuration, "--coscheduler")
    groups = {each["spec"]["group"] for each in objects if each["kind"] == "CustomResourceDefinition"}
    assert groups == {"grove.io", "scheduler.grove.io"}


def test_what_holds_users_objects_is_not_marked_for_removal(tmp_path: Path) -> None:
    """The label by which an installation is removed is on every object but CRDs and the namespace."""
    for each in printed(tmp_path, OURS, "--coscheduler"):
        marked = each["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") == "spinney"
        assert marked == (each["kind"] not in ("CustomResourceDefinition", "Namespace")), each


def test_nobody_is_given_everything(tmp_path: Path) -> None:
    """No rule has a wildcard, and secrets are not the scheduler's business."""
    for each in printed(tmp_path, OURS):
        for rule in each.get("rules", []):
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert each["metadata"]["name"] == "grove-operator" or "secrets" not in rule["resources"]


def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A misspelt key is named, and nothing is printed to apply."""
    file = tmp_path / "config.yaml"
    file.write_text("schedular: {}")

    answer = CliRunner().invoke(main, ["manifests", "--config", str(file)])

    assert answer.exit_code == 1
    assert "schedular" in answer.output
    assert "kind:" not in answer.output


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("scheduler: {config: {actoins: []}}", "scheduler.config: actoins: unknown key; did you mean 'actions'?"),
        (
            "coscheduler: {config: {profils: []}}",
            "coscheduler.config: profils: no such field; did you mean 'profiles'?",
        ),
        ("grouper: {enabled: true, config: {fallbak: Wait}}", "fallbak: unknown key; did you mean 'fallback'?"),
        ("grouper: {enabled: true, config: {rules: [{kind: Job}]}}", "rules[0].kind: found 'Job', expected group/Kind"),
        ("replicaCount: 1\nconfig:\n", "values.yaml:2: config: found nothing; leave the key out for its defaults"),
        ("grouper: {enabled: true, config: null}", "grouper.config: found nothing"),
        ("scheduler: {config: {suspendedWorkloads: null}}", "scheduler.config.suspendedWorkloads: found nothing"),
        ("grouper: {config: {admission: }}", "grouper.config.admission: found nothing; leave the key out"),
        ("grouper: {config: {admission: {port: }}}", "grouper.config.admission.port: found nothing; leave the key out"),
    ],
)
def test_what_the_other_processes_are_told_is_checked_too(tmp_path: Path, values: str, said: str) -> None:
    """A configuration in the values with which a pod would not start is refused before there is a pod."""
    (tmp_path / "values.yaml").write_text(values)
    answer = CliRunner().invoke(main, ["manifests", "--values", str(tmp_path / "values.yaml")])
    assert answer.exit_code == 1
    assert said in answer.output


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
async def test_the_processes_run_under_exactly_these_rights(cluster: Cluster, tmp_path: Path) -> None:
    """On a real API server with RBAC, operator and scheduler bring a gang up as their service accounts."""
    plane = cluster.plane
    assert plane is not None
    await install_crds(cluster.client)
    objects = printed(tmp_path, OURS, "--no-crds")
    operator = _as(cluster, plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:grove-operator"))
    scheduler = _as(cluster, plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:spinney-scheduler"))
    profiles = Profiles((Profile("default-scheduler"), Profile("spinney-scheduler")), "spinney-scheduler")
    group = NodeGroup(name="n-{index}", count=2, capacity={"cpu": 4, "memory": "8Gi"})
    fleet = Fleet(cluster.client, ClusterSpec(nodes=(group,)), runtime=cluster.runtime)
    running = Operator(operator, Settings(profiles=profiles, topology_enabled=True))
    deciding = SchedulerProcess(scheduler, SchedulerConfig())
    pods = WatchCache(cluster.client, POD, Pod, runtime=cluster.runtime, namespace=cluster.namespace)
    ready = asyncio.Event()
    pods.subscribe(lambda _: ready.set() if sum(pod.is_true("Ready") for pod in pods.values()) == 3 else None)
    async with (
        installed(cluster.client, objects),
        fleet.running(),
        asyncio.timeout(110),
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(running.run())
        tasks.create_task(deciding.run())
        watching = tasks.create_task(pods.run())
        await cluster.client.create(POD_CLIQUE_SET, _ordered_set(), cluster.namespace)
        await ready.wait()
        await cluster.client.delete(POD_CLIQUE_SET, "ordered", cluster.namespace)
        running.stop()
        deciding.stop()
        watching.cancel()
    for client in (operator, scheduler):
        await client.transport.close()


def _as(cluster: Cluster, kubeconfig: Path) -> Client:
    return Client(load_kubeconfig(kubeconfig, runtime=cluster.runtime), cluster.runtime, field_manager="installed")


def _ordered_set() -> JSON:
    """Return a set whose second clique starts after its first, which needs a Role and a token."""

    def clique(name: str, replicas: int, **more: Any) -> JSON:
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
        spec = {"roleName": name, "replicas": replicas, "podSpec": {"containers": [container]}, **more}
        return {"name": name, "spec": spec}

    cliques = [clique("leader", 1), clique("worker", 2, startsAfter=["leader"])]
    template = {"cliqueStartupType": "CliqueStartupTypeExplicit", "cliques": cliques}
    return {"metadata": {"name": "ordered"}, "spec": {"replicas": 1, "template": template}}
