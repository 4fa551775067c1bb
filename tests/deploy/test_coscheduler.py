"""The coscheduler in a cluster: installed when asked for, alone or beside the others, with only the rights it needs."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api import workload_v1beta1
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.cli import main
from spinney.coscheduling.process.configuration import parse_configuration
from tests.conftest import Cluster
from tests.coscheduling.world import World, a_node, a_pod, a_world

from .deployment import configuration_of, deployed
from .rendering import CHART, installed, names, printed, rendered

NAME = "spinney-coscheduler"
CONFIGURATION = "profiles:\n- schedulerName: trainers\npodMaxBackoffSeconds: 20\n"


def test_it_is_installed_only_when_asked_for() -> None:
    """Without being named it is not there; alone, it comes with nothing of the operator's."""
    assert NAME not in names(printed(), "Deployment")
    assert NAME in names(printed("--coscheduler"), "Deployment")
    alone = printed("--no-operator", "--coscheduler")
    for kind in ("Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        assert names(alone, kind) == {NAME}


def test_it_brings_no_kind() -> None:
    """Alone it comes without CRDs: the PodGroup is that of scheduler-plugins."""
    answer = CliRunner().invoke(main, ["manifests", "--no-operator", "--coscheduler"])
    assert names(list(yaml.safe_load_all(answer.output)), "CustomResourceDefinition") == set()


def test_it_leaves_the_default_scheduler_alone() -> None:
    """By default it serves a name of its own, in the chart as in the manifests, not that of the cluster's scheduler."""
    by_chart = yaml.safe_load((CHART / "values.yaml").read_text())["coscheduler"]["config"]
    by_command = yaml.safe_load(configuration_of(printed("--coscheduler"), NAME))
    assert by_chart == by_command
    assert parse_configuration(by_chart).scheduler_names == ("coscheduling",)


def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A misspelt field is named with the right one; an installation of nothing is refused too."""
    file = tmp_path / "config.yaml"
    file.write_text("profils: []")
    answer = CliRunner().invoke(main, ["manifests", "--coscheduler-config", str(file)])
    assert answer.exit_code == 1
    assert "did you mean 'profiles'?" in answer.output
    assert "add --coscheduler" in CliRunner().invoke(main, ["manifests", "--no-operator"]).output


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
async def test_it_works_under_exactly_these_rights(cluster: Cluster, helm: str, tmp_path: Path) -> None:
    """As its service account, called as its deployment calls it, it does all of its work and is refused nothing."""
    objects = rendered(helm, tmp_path, {"operator": {"enabled": False}, "coscheduler": {"enabled": True}})
    log = tmp_path / "log"
    async with a_world(cluster) as world, installed(cluster.client, objects), deployed(cluster, objects, NAME, log):
        await a_gang_is_placed(world)
        await a_native_gang_is_placed(world)
        await a_pod_is_preempted(world)
        await a_device_is_given(world)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line for line in lines if "forbidden" in str(line).lower() or line.get("level") == "error"] == []


async def a_gang_is_placed(world: World) -> None:
    """Pods and the status of their group are written."""
    await world.nodes(a_node("n1", cpu="8"))
    await world.gang("train", 2)
    await world.until(lambda: len(world.bound("train")) == 2)
    await world.until(lambda: world.status("train").scheduled == 2)
    await world.until(lambda: world.status("train").schedule_start_time is not None)


async def a_native_gang_is_placed(world: World) -> None:
    """The condition of a group of Kubernetes is written."""
    group = {"metadata": {"name": "native"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    await world.client.create(workload_v1beta1.POD_GROUP, group, world.namespace)
    await world.create(*(a_pod(f"native-{n}", schedulingGroup={"podGroupName": "native"}) for n in range(2)))
    await world.until(lambda: len(world.bound("native")) == 2)
    async for event in world.client.watch(workload_v1beta1.POD_GROUP, world.namespace, type=workload_v1beta1.PodGroup):
        if any(condition.status == "True" for condition in event.object.status.conditions):
            return


async def a_pod_is_preempted(world: World) -> None:
    """A pod that waits says why and is nominated; its victim is told, and deleted."""
    await world.priority("high", 1000)
    await world.priority("low", -1)
    await world.create(a_pod("low", cpu="4", priority_class="low"))
    await world.until(lambda: bool(world.node_of("low")))
    await world.create(a_pod("high", cpu="4", priority_class="high"))
    await world.until(lambda: bool(world.node_of("high")) and "low" not in world.pods)


async def a_device_is_given(world: World) -> None:
    """A device claim is allocated and reserved."""
    await world.nodes(a_node("n2"))
    await world.client.create(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})
    pool = {"name": "n2", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n2", "devices": [{"name": "gpu-0"}]}
    await world.client.create(RESOURCE_SLICE, {"metadata": {"name": "n2"}, "spec": spec})
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [request]}}}
    await world.client.create(RESOURCE_CLAIM, claim, world.namespace)
    await world.create(a_pod("computes", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
    await world.until(lambda: world.node_of("computes") == "n2")
    await world.client.delete(RESOURCE_SLICE, "n2")
    await world.client.delete(DEVICE_CLASS, "gpu")
