"""The Helm chart grants what the code asks for, and renders to what ``spinney manifests`` prints."""

import asyncio
import re
import runpy
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from structlog.testing import capture_logs

from spinney.api.core import POD, Pod
from spinney.api.grove import EXPLICIT, POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.backends import every_backend
from spinney.cli import main
from spinney.cli.installing.values import SECTIONS
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.conftest import Cluster

from .rendering import CHART, ROOT, SYSTEM, installed, rendered

FILES: dict[str, str] = runpy.run_path(str(ROOT / "hack" / "chart.py"))["files"]()


def test_every_section_that_the_chart_reads_may_not_be_empty() -> None:
    """The chart looks into sections of the processes' configurations; Helm fails in a template where one is null."""
    looked_into = re.compile(r'dig "(\w+)" "\w+" (?:"[^"]*"|\w+) \.Values\.(\w+)\.config')
    templates = (CHART / "templates").iterdir()
    read = {(process, name) for each in templates for name, process in looked_into.findall(each.read_text())}

    assert read == {(process, name) for process, sections in SECTIONS.items() for name in sections}


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


VALUES: dict[str, JSON] = {
    "defaults": {},
    **{
        name: {"config": {"scheduler": {"profiles": [{"name": name, "default": True}]}}}
        for name in ("kai-scheduler", "kube-scheduler", "volcano", "coscheduling")
    },
    "everything": {
        "replicaCount": 3,
        "image": {
            "repository": "registry.example.com/spinney",
            "tag": "1",
            "digest": "sha256:0",
            "pullPolicy": "Always",
        },
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"team": 'a "quoted" one'},
        "podLabels": {"team": "a"},
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}], "egress": [{"ports": [{"port": 443}]}]},
        "metrics": {
            "service": {"annotations": {"prometheus.io/scrape": "true"}},
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": True, "labels": {"grafana_dashboard": "yes"}},
        },
        "webhooks": {"certificate": {"certManager": {"enabled": True}}},
        "operator": {
            "extraRules": [{"apiGroups": ["example.com"], "resources": ["gangs"], "verbs": ["create"]}],
            "extraEnv": [{"name": "A", "value": "b"}],
            "serviceAccountAnnotations": {"role": "x"},
        },
        "scheduler": {
            "config": {"actions": ["allocate"], "deviceReservation": True},
            "verbosity": 4,
            "pluginsConfigMap": "our-plugins",
            "extraArgs": ["--scheduler-name=ours"],
            "extraVolumes": [{"name": "cache", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "cache", "mountPath": "/cache"}],
        },
        "coscheduler": {"enabled": True},
        "dashboard": {"enabled": True, "certificate": {"secretName": "page-tls"}, "extraArgs": ["-v"]},
        "config": {"network": {"autoMNNVLEnabled": True}, "server": {"webhooks": {"port": 9443}}},
    },
    "nothing optional": {
        "replicaCount": 1,
        "topologySpread": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "metrics": {"service": {"enabled": False}},
        "webhooks": {"certificate": {"secretName": "ours"}},
        "config": {"leaderElection": {"enabled": False}},
    },
    "grouper with settings of its own": {
        "grouper": {"enabled": True, "config": {"scheduler": {"profiles": []}, "queueLabel": "team"}},
        "scheduler": {"config": {"waitForGrouper": False}},
        "config": {"scheduler": {"profiles": [{"name": "kai-scheduler", "default": True}]}},
    },
    "grouper with the operator's profiles": {
        "grouper": {"enabled": True},
        "config": {"scheduler": {"profiles": [{"name": "kai-scheduler", "default": True}]}},
    },
    "coscheduler alone": {"operator": {"enabled": False}, "coscheduler": {"enabled": True}},
    "grouper alone": {"operator": {"enabled": False}, "grouper": {"enabled": True}},
}


@pytest.mark.real
def test_helm_finds_nothing_wrong(helm: str) -> None:
    """``helm lint --strict`` passes."""
    done = subprocess.run([helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


UNSCRAPED: JSON = {"metrics": {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}}
LEASE_ELSEWHERE: JSON = {"config": {"leaderElection": {"resourceNamespace": "elsewhere"}}}
UNPROBED: JSON = {"config": {"server": {"healthProbes": {"enable": False}}}}
UNENCRYPTED: JSON = {"dashboard": {"enabled": True}}


@pytest.mark.real
@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"replicaCuont": 2}, "replicaCuont"),
        ({"config": {"schedular": {}}}, "schedular"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"config": {"leaderElection": {"enabled": False}}}, "leaderElection"),
        ({"operator": {"enabled": False}}, "nothing would be installed"),
        (UNSCRAPED, "metrics.service.enabled: true"),
        (LEASE_ELSEWHERE, "config.leaderElection.resourceNamespace is elsewhere"),
        (UNPROBED, "config.server.healthProbes.enable is false"),
        (UNENCRYPTED, "dashboard.enabled needs dashboard.certificate.secretName"),
        ({"config": None}, "missing property 'config'"),
        ({"metrics": {"service": None}}, "missing property 'service'"),
    ],
)
def test_values_that_cannot_work_are_refused(values: JSON, told: str, helm: str, tmp_path: Path) -> None:
    """A misspelt word, a wrong value and an installation that cannot work are named before anything is installed."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [helm, "template", "spinney", str(CHART), "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr


@pytest.mark.real
def test_the_configuration_given_reaches_the_operator(helm: str, tmp_path: Path) -> None:
    """``config.scheduler`` of the values is the scheduler block of the configuration the operator mounts."""
    profiles = [{"name": "kube-scheduler", "config": {"gangScheduling": True}}, {"name": "volcano", "default": True}]

    objects = rendered(helm, tmp_path, {"config": {"scheduler": {"profiles": profiles}}})

    (config,) = [
        each
        for each in objects
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith("grove-operator")
    ]
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
            async with asyncio.timeout(110), asyncio.TaskGroup() as tasks:
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
    """Wait for so many pods, those on their way out not counted."""
    listing = await cluster.client.list(POD, cluster.namespace, type=Pod)
    alive = {pod.metadata.name for pod in listing.items if not pod.metadata.deleting}
    if len(alive) == count:
        return
    version = listing.resource_version
    async for event in cluster.client.watch(POD, cluster.namespace, type=Pod, resource_version=version):
        here = event.type != "DELETED" and not event.object.metadata.deleting
        (alive.add if here else alive.discard)(event.object.metadata.name)
        if len(alive) == count:
            return
