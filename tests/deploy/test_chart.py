"""The Helm chart grants what the code asks for, and renders to what ``spinney manifests`` prints."""

import asyncio
import runpy
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from structlog.testing import capture_logs

from spinney.api.core import POD, Pod
from spinney.api.grove import EXPLICIT, POD_CLIQUE_SET
from spinney.backends import every_backend
from spinney.cli import main
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.conftest import Cluster

from .rendering import CHART, ROOT, SYSTEM, installed, names, printed, rendered, rules_by_role

FILES: dict[str, str] = runpy.run_path(str(ROOT / "hack" / "chart.py"))["files"]()


@pytest.mark.parametrize("path", FILES)
def test_a_generated_file_has_not_drifted(path: str) -> None:
    """A generated file of the chart equals what ``make docs`` would write."""
    assert (CHART / path).read_text() == FILES[path], "run `make docs`"


def test_the_default_configuration_can_be_used(tmp_path: Path) -> None:
    """The configuration in the chart's values is one the operator accepts."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(values["config"]))

    answer = CliRunner().invoke(main, ["operator", "--check", "--config", str(file)])

    assert answer.exit_code == 0, answer.output
    assert "spinney-scheduler (default)" in answer.output


@pytest.mark.real
@pytest.mark.parametrize("profile", ["spinney-scheduler", "kai-scheduler", "kube-scheduler", "volcano", "coscheduling"])
def test_it_renders_to_the_same_rights(profile: str, helm: str, tmp_path: Path) -> None:
    """Rendered for a profile, the chart has the same roles, deployments and accounts as ``spinney manifests``."""
    scheduler = {"profiles": [{"name": profile, "default": True}]}
    configuration = tmp_path / "config.yaml"
    configuration.write_text(yaml.safe_dump({"scheduler": scheduler}))

    objects = rendered(helm, tmp_path, {"config": {"scheduler": scheduler}})

    expected = printed("--config", str(configuration))
    assert rules_by_role(objects) == rules_by_role(expected)
    for kind in ("Deployment", "ServiceAccount", "ClusterRoleBinding", "RoleBinding"):
        assert names(objects, kind) == names(expected, kind)


@pytest.mark.real
def test_the_configuration_given_reaches_the_operator(helm: str, tmp_path: Path) -> None:
    """``config.scheduler`` of the values is the scheduler block of the configuration the operator mounts."""
    profiles = [{"name": "kube-scheduler", "config": {"gangScheduling": True}}, {"name": "volcano", "default": True}]

    objects = rendered(helm, tmp_path, {"config": {"scheduler": {"profiles": profiles}}})

    (config,) = [each for each in objects if each["kind"] == "ConfigMap"]
    (deployment,) = [each for each in objects if each["kind"] == "Deployment"]
    (text,) = config["data"].values()
    assert yaml.safe_load(text)["scheduler"]["profiles"] == profiles
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert config["metadata"]["name"] in {each.get("configMap", {}).get("name") for each in volumes}
    file = tmp_path / "mounted.yaml"
    file.write_text(text)
    assert CliRunner().invoke(main, ["operator", "--check", "--config", str(file)]).exit_code == 0


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
async def test_the_operator_runs_on_what_was_rendered(cluster: Cluster, helm: str, tmp_path: Path) -> None:
    """Applied to a real API server with RBAC on, the chart lets the operator do its work."""
    assert cluster.plane is not None
    scheduler = {"profiles": [{"name": "spinney-scheduler", "default": True}]}
    objects = rendered(helm, tmp_path, {"config": {"scheduler": scheduler}})
    await install_crds(cluster.client)
    account = f"system:serviceaccount:{SYSTEM}:grove-operator"
    transport = load_kubeconfig(cluster.plane.kubeconfig_for(account), runtime=cluster.runtime)
    profiles = check(yaml.safe_dump({"scheduler": {"profiles": [{"name": "spinney-scheduler"}]}}), every_backend())
    operator = Operator(Client(transport, cluster.runtime), Settings(profiles=profiles.profiles))
    cliques = [a_clique("leader", 1), a_clique("worker", 2, after=["leader"])]
    groups = [a_scaling_group("sg", ["worker"], 2)]
    pcs = a_pod_clique_set("model", cliques, groups, startup=EXPLICIT, namespace=cluster.namespace)
    async with installed(cluster.client, objects):
        with capture_logs() as logs:
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                tasks.create_task(operator.run())
                await cluster.client.apply(POD_CLIQUE_SET, pcs)
                await _until(cluster, 5)
                await cluster.client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 2}}, cluster.namespace)
                await _until(cluster, 10)
                await cluster.client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 1}}, cluster.namespace)
                await _until(cluster, 5)
                await cluster.client.delete(POD_CLIQUE_SET, "model", cluster.namespace)
                await _until(cluster, 0)
                operator.stop()
    await transport.close()
    assert [each for each in logs if each.get("status") == 403] == []


async def _until(cluster: Cluster, count: int) -> None:
    """Wait for so many pods, those on their way out not counted; nothing is bound here, so they go at once."""
    alive: set[str] = set()
    async for event in cluster.client.watch(POD, cluster.namespace, type=Pod):
        here = event.type != "DELETED" and not event.object.metadata.deleting
        (alive.add if here else alive.discard)(event.object.metadata.name)
        if len(alive) == count:
            return
        if not count and not (await cluster.client.list(POD, cluster.namespace)).items:
            return
