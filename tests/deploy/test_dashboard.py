"""The dashboard in a cluster: installed when asked for, with TLS, and with no rights of its own."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main

from .rendering import names, printed, rendered

NAME = "spinney-dashboard"
SERVED: JSON = {"dashboard": {"enabled": True, "certificate": {"secretName": "page-tls"}}}

OFF: JSON = {"enabled": False}


def installed(tmp_path: Path, values: JSON) -> list[JSON]:
    """Return what an installation with values has."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return printed("--values", str(file))


def of(objects: list[JSON], kind: str, name: str = NAME) -> JSON:
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_it_is_installed_only_when_asked_for(tmp_path: Path) -> None:
    """By default nothing of it is there."""
    assert not [each for each in printed() if each["metadata"]["name"].startswith(NAME)]
    assert NAME in names(installed(tmp_path, SERVED), "Deployment")


def test_it_may_do_nothing_itself(tmp_path: Path) -> None:
    """Its account is bound to no role; the role for viewers only reads."""
    objects = installed(tmp_path, SERVED)
    bindings = [each for each in objects if each["kind"].endswith("RoleBinding")]
    assert not [each for each in bindings if any(subject["name"] == NAME for subject in each["subjects"])]
    rules = of(objects, "ClusterRole", f"{NAME}-viewer")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not [rule for rule in rules if "secrets" in rule.get("resources", ())]


def test_it_serves_tls_to_people_with_tokens(tmp_path: Path) -> None:
    """The certificate is mounted; the command, as the pod runs it, accepts what it is given."""
    container = of(installed(tmp_path, SERVED), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--tls-cert-file=/etc/spinney-tls/tls.crt" in container["args"]
    assert "--behind-proxy" not in container["args"]
    assert "--config" not in container["args"]
    known = CliRunner().invoke(main, ["dashboard", "--help"]).output
    for argument in container["args"][1:]:
        assert argument.partition("=")[0] in known


def test_it_finds_every_replica_of_the_scheduler(tmp_path: Path) -> None:
    """Only the leader has cycles to tell, so its Service has an address for each; the policy lets the page in."""
    values = {**SERVED, "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]}, "metrics": {"service": OFF}}
    objects = installed(tmp_path, values)
    scheduler = of(objects, "Deployment", "spinney-scheduler")["spec"]["template"]
    replicas = of(objects, "Service", "spinney-scheduler-replicas")["spec"]
    assert replicas["clusterIP"] == "None"
    assert replicas["selector"].items() <= scheduler["metadata"]["labels"].items()
    container = of(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--scheduler=http://spinney-scheduler-replicas.spinney-system.svc:8080" in container["args"]
    lets_in = of(objects, "NetworkPolicy", "spinney-scheduler")["spec"]["ingress"]
    page = {"podSelector": {"matchLabels": of(objects, "Deployment")["spec"]["selector"]["matchLabels"]}}
    assert {"ports": [{"port": "metrics"}], "from": [page]} in lets_in
    alone = {**values, "config": {"scheduler": {"profiles": [{"name": "kai-scheduler", "default": True}]}}}
    assert "spinney-scheduler-replicas" not in names(installed(tmp_path, alone), "Service")


def test_without_a_certificate_or_a_proxy_it_is_refused(tmp_path: Path) -> None:
    """Tokens would cross the network in the clear."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"dashboard": {"enabled": True}}))
    answer = CliRunner().invoke(main, ["manifests", "--values", str(file)])
    assert answer.exit_code == 2
    assert "dashboard.certificate.secretName" in answer.output


@pytest.mark.real
def test_the_chart_refuses_it_likewise(helm: str, tmp_path: Path) -> None:
    """Helm says the same before anything is installed, and renders it where it can work."""
    with pytest.raises(AssertionError, match=r"dashboard\.certificate\.secretName"):
        rendered(helm, tmp_path, {"dashboard": {"enabled": True}})
    assert NAME in names(rendered(helm, tmp_path, SERVED), "Deployment")
