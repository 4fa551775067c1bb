"""The pods of an installation: where they may run, what they may use, and how they are set up."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main

from .rendering import names, printed

EVERY = ("grove-operator", "spinney-scheduler", "spinney-coscheduler")


def pods(tmp_path: Path, values: JSON) -> dict[str, JSON]:
    """Return the pod spec of every deployment, by its name, for these values."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"coscheduler": {"enabled": True}, **values}))
    objects = printed("--values", str(file))
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in deployments}


@pytest.mark.parametrize("name", EVERY)
def test_a_restricted_namespace_with_a_quota_takes_them(name: str, tmp_path: Path) -> None:
    """Pods pass the Pod Security Standard `restricted`, and name requests and limits of what a quota counts."""
    pod = pods(tmp_path, {})[name]
    (container,) = pod["containers"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    for amounts in ("requests", "limits"):
        assert set(container["resources"][amounts]) == {"cpu", "memory"}


def test_losing_a_node_or_draining_one_stops_nothing() -> None:
    """By default there are two replicas, on different nodes where possible, of which one may be drained at a time."""
    objects = printed("--coscheduler")
    assert names(objects, "PodDisruptionBudget") == set(EVERY)
    for each in (each for each in objects if each["kind"] == "Deployment"):
        assert each["spec"]["replicas"] == 2
        spread = each["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert spread[0]["topologyKey"] == "kubernetes.io/hostname"
        assert spread[0]["labelSelector"] == each["spec"]["selector"]


def test_the_scheduler_is_configured_as_installed(tmp_path: Path) -> None:
    """Configuration, verbosity, plugins from a ConfigMap, arguments and volumes of the values reach the scheduler."""
    scheduler = {
        "config": {"actions": ["allocate"]},
        "verbosity": 4,
        "pluginsConfigMap": "our-plugins",
        "extraArgs": ["--scheduler-name=ours"],
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraVolumes": [{"name": "cache", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    }
    pod = pods(tmp_path, {"scheduler": scheduler})["spinney-scheduler"]
    (container,) = pod["containers"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "plugins"]
    assert f"--plugin={mount['mountPath']}" in container["args"]
    assert container["args"][-3:] == ["4", f"--plugin={mount['mountPath']}", "--scheduler-name=ours"]
    assert container["env"][-1] == {"name": "A", "value": "b"}
    assert {"name": "cache", "emptyDir": {}} in pod["volumes"]
    assert container["volumeMounts"][-1] == {"name": "cache", "mountPath": "/cache"}


def granted(directory: Path, config: JSON, verb: str) -> set[str]:
    """Return the resources on which a scheduler with this configuration is granted a verb."""
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump({"scheduler": {"config": config}}))
    roles = [each for each in printed("--values", str(file)) if each["kind"] == "ClusterRole"]
    (role,) = [each for each in roles if each["metadata"]["name"] == "spinney-scheduler"]
    return {name for rule in role["rules"] if verb in rule["verbs"] for name in rule["resources"]}


def test_workloads_may_be_resumed_only_of_the_kinds_that_wait_in_queues(tmp_path: Path) -> None:
    """The scheduler may patch Jobs where suspended Jobs wait in its queues; other kinds stay out of its reach."""
    kinds = {"jobs", "jobsets", "trainjobs"}
    assert not granted(tmp_path, {}, "patch") & kinds
    waiting = {"suspendedWorkloads": {"kinds": ["Job", "TrainJob"]}}
    assert granted(tmp_path, waiting, "patch") & kinds == {"jobs", "trainjobs"}


def test_requests_for_nodes_may_be_made_only_where_a_class_is_named(tmp_path: Path) -> None:
    """The scheduler may make ProvisioningRequests and PodTemplates where it is configured to, and nowhere else."""
    kinds = {"provisioningrequests", "podtemplates"}
    assert not granted(tmp_path, {}, "create") & kinds
    asked = {"provisioningRequests": {"className": "check-capacity.autoscaling.x-k8s.io"}}
    assert granted(tmp_path, asked, "create") & kinds == kinds


def test_certificates_of_ones_own_are_mounted(tmp_path: Path) -> None:
    """A Secret of one's own, or one that cert-manager fills, is mounted where the operator reads it, in manual mode."""
    for certificate, secret in (
        ({"secretName": "ours"}, "ours"),
        ({"certManager": {"enabled": True}}, "grove-webhook-server-cert"),
    ):
        values: JSON = {"webhooks": {"certificate": certificate}}
        pod = pods(tmp_path, values)["grove-operator"]
        assert {"name": "certificate", "secret": {"secretName": secret}} in pod["volumes"]
        objects = printed("--values", str(tmp_path / "values.yaml"))
        texts = [each["data"]["config.yaml"] for each in objects if each["kind"] == "ConfigMap"]
        assert "certProvisionMode: manual" in texts[0]


def test_values_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """A misspelt value is named with its line and the right word, and nothing is printed to apply."""
    file = tmp_path / "values.yaml"
    file.write_text("image:\n  repositroy: x\n")
    answer = CliRunner().invoke(main, ["manifests", "--values", str(file)])
    assert answer.exit_code == 1
    assert "values.yaml:2: image.repositroy" in answer.output
    assert "did you mean 'repository'?" in answer.output
    assert "kind:" not in answer.output


def test_replicas_without_an_election_are_refused(tmp_path: Path) -> None:
    """Two operators that both act are not installed: one runs by default, and more are refused."""
    file = tmp_path / "config.yaml"
    file.write_text("leaderElection: {enabled: false}")
    answer = CliRunner().invoke(main, ["manifests", "--config", str(file), "--replicas", "2"])
    assert answer.exit_code == 2
    assert "leaderElection.enabled" in answer.output
    objects = printed("--config", str(file))
    assert {each["spec"]["replicas"] for each in objects if each["kind"] == "Deployment"} == {1}


@pytest.mark.parametrize(
    ("elects", "strategy"), [(True, None), (False, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})]
)
def test_without_election_a_rollout_starts_no_second_operator(
    elects: bool, strategy: JSON | None, tmp_path: Path
) -> None:
    """Two operators that both act would be one too many, also for the time of a rollout; schedulers always elect."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"replicaCount": 1, "config": {"leaderElection": {"enabled": elects}}}))
    found = {each["metadata"]["name"]: each for each in printed("--values", str(file)) if each["kind"] == "Deployment"}
    assert found["grove-operator"]["spec"].get("strategy") == strategy
    assert "strategy" not in found["spinney-scheduler"]["spec"]
