"""Workflows, hooks and the CI script run what a developer runs: targets of the Makefile, on the Pythons we name."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.test_dependencies import PROJECT, ROOT

TARGETS = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
CALLERS = [ROOT / ".ci" / "run", ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github" / "workflows").iterdir())]
HOME: str = PROJECT["project"]["urls"]["Homepage"]


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.name)
def test_what_is_called_exists(path: Path) -> None:
    """Every ``make`` in the file names a target that is there."""
    called = re.findall(r"(?<![\w`])(?:run\.sh \S+|make)((?: [a-z][a-z-]+\b(?!=))+)", path.read_text(encoding="utf-8"))
    assert called
    assert {target for line in called for target in line.split()} <= TARGETS


def test_every_python_we_name_is_tested() -> None:
    """The classifiers are the versions of the workflow's matrix, and the first is the least that is required."""
    prefix = "Programming Language :: Python :: "
    named = [each.removeprefix(prefix) for each in PROJECT["project"]["classifiers"] if each.startswith(prefix)]
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["suite"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_make_runs_every_search_that_is_described() -> None:
    """What CONTRIBUTING.md lists as a search is in ``make searches``, with its number and its tests."""
    makefile, described = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "CONTRIBUTING.md"))
    searches = re.findall(r"^(SPINNEY_\w+=\d+) pytest (?:-\S+ \d )?(\S+)", described, re.MULTILINE)
    assert len(searches) >= 9
    for setting, tests in searches:
        assert re.search(rf"\b{setting}\b", makefile), setting
        assert list(ROOT.glob(tests)), tests
        assert re.search(rf"\s{re.escape(tests)}(?:\s|$)", makefile), tests


@pytest.mark.parametrize(("given", "refused"), [((), ""), (("TAG=v9.9.9",), "does not say")])
def test_package_chart_and_changelog_are_of_one_version(given: tuple[str, ...], refused: str) -> None:
    """A release is refused whose tag is not the version that all three name."""
    answer = subprocess.run(["make", "version-check", *given], cwd=ROOT, capture_output=True, text=True, check=False)
    assert bool(answer.returncode) == bool(refused)
    assert refused in answer.stdout


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", ".github/ISSUE_TEMPLATE/config.yml"])
def test_there_is_one_address(name: str) -> None:
    """What leads people to the project leads to the address that pyproject.toml gives."""
    found = re.findall(r"https://github\.com/[\w.-]+/[\w.-]+(?=/security)", (ROOT / name).read_text(encoding="utf-8"))
    assert found
    assert set(found) == {HOME}
