"""The grouper in a cluster: installed when asked for, with rights on the kinds of its enabled rules and no others."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main

from .deployment import configuration_of
from .rendering import names, printed, rendered

NAME = "spinney-grouper"
CONFIGURATION = """
kind: GrouperConfiguration
without: [ray.io/RayJob]
rules:
- {kind: jobs.example.com/PyFlow, floor: spec.workers}
scheduler: {profiles: [{name: spinney-scheduler, default: true}]}
"""


def granted(objects: list[JSON]) -> list[JSON]:
    """Return what the grouper may do everywhere."""
    (role,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("ClusterRole", NAME)]
    return list(role["rules"])


def readable(objects: list[JSON]) -> set[str]:
    """Return the kinds of workloads that the grouper may read."""
    rules = granted(objects)
    return {
        f"{rule['apiGroups'][0]}/{name}" for rule in rules for name in rule["resources"] if "watch" in rule["verbs"]
    }


def test_it_is_installed_only_when_asked_for() -> None:
    """Without being named it is not there."""
    assert NAME not in names(printed(), "Deployment")
    assert NAME in names(printed("--grouper"), "Deployment")


def test_the_kind_it_writes_is_there_without_the_operator() -> None:
    """Beside the coscheduler alone, too: its gangs are PodGangs, which somebody has to bring."""
    answer = CliRunner().invoke(main, ["manifests", "--no-operator", "--coscheduler", "--grouper"])
    kinds = names([each for each in yaml.safe_load_all(answer.output) if each], "CustomResourceDefinition")
    assert "podgangs.scheduler.grove.io" in kinds


def test_it_may_read_the_kinds_of_its_rules_and_no_others(tmp_path: Path) -> None:
    """A kind that is left out is not readable, and one of the user's own is."""
    file = tmp_path / "grouper.yaml"
    file.write_text(CONFIGURATION)
    ours, theirs = readable(printed("--grouper")), readable(printed("--grouper-config", str(file)))
    assert {"batch/jobs", "ray.io/rayjobs", "jobset.x-k8s.io/jobsets"} <= ours
    assert theirs - ours == {"jobs.example.com/pyflows"}
    assert ours - theirs == {"ray.io/rayjobs"}


def test_the_printed_rights_are_those_of_the_installation(tmp_path: Path) -> None:
    """What ``--rights`` prints is what ``spinney manifests`` grants."""
    file = tmp_path / "grouper.yaml"
    file.write_text(CONFIGURATION)
    answer = CliRunner().invoke(main, ["grouper", "--rights", "--config", str(file)])
    assert answer.exit_code == 0, answer.output
    printed_role = {**yaml.safe_load(answer.output), "metadata": {"name": NAME}}
    assert readable([printed_role]) == readable(printed("--grouper-config", str(file)))


def test_its_webhook_has_a_service_unless_it_is_switched_off(tmp_path: Path) -> None:
    """The Service points at the port of the process; where pods are told afterwards there is none."""
    objects = printed("--grouper")
    (service,) = [each for each in objects if each["kind"] == "Service" and each["metadata"]["name"] == NAME]
    (deployment,) = [each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"] == NAME]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert service["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]
    assert {"name": "webhooks", "containerPort": 2750} in container["ports"]
    (policy,) = [each for each in objects if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == NAME]
    assert {"ports": [{"port": "webhooks"}]} in policy["spec"]["ingress"]
    file = tmp_path / "grouper.yaml"
    file.write_text("kind: GrouperConfiguration\nadmission: {enabled: false}\n")
    assert NAME not in names(printed("--grouper-config", str(file)), "Service")


def test_the_session_scheduler_waits_for_it_unless_told_not_to(tmp_path: Path) -> None:
    """Where both are installed no pod of a workload starts before it is grouped."""
    own = tmp_path / "scheduler.yaml"
    own.write_text("waitForGrouper: false\n")
    assert configuration_of(printed(), "spinney-scheduler") == "{}"
    assert configuration_of(printed("--grouper"), "spinney-scheduler") == "waitForGrouper: true"
    told = printed("--grouper", "--scheduler-config", str(own))
    assert configuration_of(told, "spinney-scheduler") == "waitForGrouper: false"


@pytest.mark.real
def test_the_chart_grants_what_the_manifests_grant(helm: str, tmp_path: Path) -> None:
    """Both ways of installing give the grouper the same rights, also for kinds that are left out or added."""
    own = {"apiGroups": ["jobs.example.com"], "resources": ["pyflows"], "verbs": ["get", "list", "watch"]}
    settings = {"without": ["ray.io/RayJob"], "rules": [{"kind": "jobs.example.com/PyFlow", "floor": "spec.workers"}]}
    chart = rendered(helm, tmp_path, {"grouper": {"enabled": True, "config": settings, "extraRules": [own]}})
    assert NAME in names(chart, "Service")
    off = {**settings, "admission": {"enabled": False}}
    assert NAME not in names(rendered(helm, tmp_path, {"grouper": {"enabled": True, "config": off}}), "Service")
    file = tmp_path / "grouper.yaml"
    file.write_text(CONFIGURATION)
    manifests = printed("--grouper-config", str(file))
    assert granted(chart) == granted(manifests)
    assert configuration_of(chart, "spinney-scheduler") == configuration_of(manifests, "spinney-scheduler")
    assert yaml.safe_load(configuration_of(chart, NAME))["without"] == ["ray.io/RayJob"]
