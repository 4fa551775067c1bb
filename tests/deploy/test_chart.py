"""The Helm chart grants what the code asks for, and renders to what ``spinney manifests`` prints."""

import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "spinney"
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
@pytest.mark.parametrize("profile", ["spinney-scheduler", "kai-scheduler", "kube-scheduler"])
def test_it_renders_to_the_same_rights(profile: str, tmp_path: Path) -> None:
    """Rendered for a profile, the chart has the same cluster roles and deployments as ``spinney manifests``."""
    helm = os.environ.get("HELM") or shutil.which("helm")
    if helm is None:
        pytest.skip("NO HELM: install it, or name it in HELM, to render the chart")
    scheduler = {"profiles": [{"name": profile, "default": True}]}
    values, configuration = tmp_path / "values.yaml", tmp_path / "config.yaml"
    values.write_text(yaml.safe_dump({"config": {"scheduler": scheduler}}))
    configuration.write_text(yaml.safe_dump({"scheduler": scheduler}))
    command = [helm, "template", "spinney", str(CHART), "--namespace", "spinney-system", "--values", str(values)]

    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    printed = CliRunner().invoke(main, ["manifests", "--no-crds", "--config", str(configuration)]).output
    assert _rights(rendered) == _rights(printed)
    assert _names(rendered, "Deployment") == _names(printed, "Deployment")


def _rights(text: str) -> dict[str, list[JSON]]:
    roles = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "ClusterRole"]
    return {role["metadata"]["name"]: role["rules"] for role in roles}


def _names(text: str, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in yaml.safe_load_all(text) if each and each["kind"] == kind}
