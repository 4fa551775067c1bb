"""The chart and ``spinney manifests`` answer the same values in the same way: the same objects, or the same refusal."""

import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main
from spinney.cli.installing.checks import REFUSALS
from spinney.cli.installing.computed import as_yaml, named_for
from spinney.cli.installing.description import ChartSetting
from spinney.cli.installing.values import default_values

from .rendering import CHART, SYSTEM
from .test_chart import VALUES

SWITCHES: Final[Sequence[Sequence[JSON]]] = (
    ({}, {"operator": {"enabled": False}}),
    ({}, {"coscheduler": {"enabled": True}}),
    ({}, {"replicaCount": 1}, {"replicaCount": 3}),
    ({}, {"config": {"leaderElection": {"enabled": False}}}, {"config": {"leaderElection": None}}),
    ({}, *({"config": {"leaderElection": {"resourceNamespace": name}}} for name in ("", SYSTEM, "elsewhere"))),
    ({}, *({"config": {"server": {"healthProbes": {"enable": answers}}}} for answers in (True, False))),
    (
        {},
        {"dashboard": {"enabled": True}},
        {"dashboard": {"enabled": True, "behindProxy": True}},
        {"dashboard": {"enabled": True, "certificate": {"secretName": "page-tls"}}},
    ),
    ({}, {"metrics": {"service": {"enabled": False}}}),
    ({}, {"metrics": {"serviceMonitor": {"enabled": True}}}),
)
"""What the checks read, each with the answers that make a difference."""
CONFIGURATIONS: Final[dict[str, JSON]] = {
    "config.server": {"config": {"server": None}},
    "config.server.webhooks": {"config": {"server": {"webhooks": None}}},
    "config.initContainer": {"config": {"initContainer": None}},
    "config.initContainer.enabled": {"config": {"initContainer": {"enabled": None}}},
    **{
        f"grouper.config.admission.{key}": {"grouper": {"enabled": True, "config": {"admission": {key: None}}}}
        for key in ("enabled", "port", "secretName")
    },
    "scheduler.config.provisioningRequests.className": {
        "scheduler": {"config": {"provisioningRequests": {"className": None}}}
    },
}
"""Empty keys of the processes' configurations for which the chart has no default."""


TEXTS: Final = ("", "2", "yes", "~", "2026-01-01", "a: b", "two\nlines", "ends\n", "#", "ü", " before", "long " * 40)
"""What YAML can be written of in several ways."""


def answer_of_the_chart(helm: str, file: Path) -> list[JSON] | str:
    """Return the objects that the chart renders to, or the sentence with which it refuses."""
    command = [helm, "template", "spinney", str(CHART), "--namespace", SYSTEM, "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return in_order(yaml.safe_load_all(done.stdout)) if done.returncode == 0 else done.stderr


def answer_of_the_command(file: Path) -> list[JSON] | str:
    """Return the objects that the command prints, or the sentence with which it refuses."""
    answer = CliRunner().invoke(main, ["manifests", "--no-crds", "--values", str(file)])
    if answer.exit_code == 0:
        return in_order(each for each in yaml.safe_load_all(answer.output) if each["kind"] != "Namespace")
    told = answer.output.strip().rpartition("Error: ")[2]
    assert "should not have happened" not in told
    return told


def in_order(objects: Iterator[JSON]) -> list[JSON]:
    """Return objects by kind and name; an empty list and no list are the same to an API server."""
    found: list[JSON] = [_without_empty_lists(each) for each in objects if each]
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))


def _without_empty_lists(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_empty_lists(value) for key, value in part.items()}
    return [_without_empty_lists(each) for each in part] or None if isinstance(part, list) else part


def expect_the_same(helm: str, values: JSON, tmp_path: Path) -> None:
    """Expect the same objects, or a refusal by both: in the same words where the values can be read."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart, command = answer_of_the_chart(helm, file), answer_of_the_command(file)
    if isinstance(chart, str) and isinstance(command, str):
        assert command in chart or "specifications of the schema" in chart
    else:
        assert chart == command


def _empty(values: JSON, path: tuple[str, ...] = ()) -> Iterator[tuple[str, JSON]]:
    """Yield each value of the chart with the values in which it is empty."""
    for key, value in values.items():
        found: JSON = {}
        place = (*path, key)
        innermost: Any = None
        for step in reversed(place):
            innermost = found = {step: innermost}
        yield ".".join(place), found
        if isinstance(value, dict) and place[:1] != ("resources",):
            yield from _empty(value, place)


EMPTY: Final = dict(_empty(default_values()))


@pytest.mark.real
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_it_installs_what_the_command_prints(values: JSON, helm: str, tmp_path: Path) -> None:
    """With the same values, Helm renders to exactly the objects of ``spinney manifests``."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    assert isinstance(answer_of_the_command(file), list)
    expect_the_same(helm, values, tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("seed", range(40))
def test_what_cannot_work_is_refused_by_both(seed: int, helm: str, tmp_path: Path) -> None:
    """Of any values that the checks read, both say that they work, or both why not, in the same words."""
    draw = random.Random(seed)
    values: JSON = {}
    for answers in SWITCHES:
        chosen = draw.choice(answers)
        if draw.random() < 0.5:
            values = _with(values, chosen)
    expect_the_same(helm, values, tmp_path)


def _with(values: JSON, changes: JSON) -> JSON:
    """Return values with changes; what is empty in either stays so."""
    both = {key: (values.get(key), change) for key, change in changes.items()}
    mixed = {key: _with(a, b) if isinstance(a, dict) and isinstance(b, dict) else b for key, (a, b) in both.items()}
    return {**values, **mixed}


@pytest.mark.real
@pytest.mark.parametrize("values", (EMPTY | CONFIGURATIONS).values(), ids=EMPTY | CONFIGURATIONS)
def test_an_empty_value_means_the_same_to_both(values: JSON, helm: str, tmp_path: Path) -> None:
    """A key with nothing after it takes the default away, or is refused where nothing can stand in its place."""
    expect_the_same(helm, values, tmp_path)


@pytest.mark.real
def test_any_text_has_the_same_name(helm: str, tmp_path: Path) -> None:
    """A configuration is in a ConfigMap that is named for its text, so both write the same text."""
    config = {"texts": [*TEXTS]}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"scheduler": {"config": config}}))
    setting = ChartSetting({"scheduler": {"config": config}}, SYSTEM, "")
    (rendered,) = [
        each["metadata"]["name"]
        for each in answer_of_the_chart(helm, file)
        if isinstance(each, dict) and each["kind"] == "ConfigMap" and "scheduler" in each["metadata"]["name"]
    ]
    assert named_for("spinney-scheduler", as_yaml("scheduler.config")).of(setting) == rendered


@pytest.mark.parametrize("values", (EMPTY | CONFIGURATIONS).values(), ids=EMPTY | CONFIGURATIONS)
def test_the_command_has_an_answer_to_every_empty_value(values: JSON, tmp_path: Path) -> None:
    """No empty key ends the command with a fault of its own."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    answer_of_the_command(file)


REFUSED: Final[dict[str, JSON]] = {
    "replicaCount 3 needs config.leaderElection.enabled: true": {
        "replicaCount": 3,
        "config": {"leaderElection": {"enabled": False}},
    },
    "operator.enabled, coscheduler.enabled and grouper.enabled": {"operator": {"enabled": False}},
    "dashboard.enabled needs dashboard.certificate.secretName": {"dashboard": {"enabled": True}},
    "metrics.serviceMonitor.enabled needs metrics.service.enabled: true": {
        "metrics": {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}
    },
    "config.leaderElection.resourceNamespace is elsewhere; the operator may keep a Lease in spinney-system only": {
        "config": {"leaderElection": {"resourceNamespace": "elsewhere"}}
    },
    "config.server.healthProbes.enable is false": {"config": {"server": {"healthProbes": {"enable": False}}}},
}


@pytest.mark.parametrize("told", REFUSED)
def test_the_command_says_what_cannot_work(told: str, tmp_path: Path) -> None:
    """Every refusal names the value and what was found."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(REFUSED[told]))
    said = answer_of_the_command(file)
    assert isinstance(said, str)
    assert said.startswith(told)


def test_every_refusal_is_tried() -> None:
    """A new check has an example above."""
    assert len(REFUSED) == len(REFUSALS)


def test_a_file_of_the_operators_without_election_has_one_replica(tmp_path: Path) -> None:
    """``--config`` alone says nothing of replicas, so without an election there is one; asked for two it is refused."""
    file = tmp_path / "operator.yaml"
    file.write_text("kind: OperatorConfiguration\napiVersion: operator.config.grove.io/v1alpha1\n")
    command = ["manifests", "--no-crds", "--config", str(file)]

    printed = CliRunner().invoke(main, command)
    refused = CliRunner().invoke(main, [*command, "--replicas", "2"])

    found = [each for each in yaml.safe_load_all(printed.output) if each["kind"] == "Deployment"]
    assert {each["spec"]["replicas"] for each in found} == {1}
    assert refused.exit_code == 2
    assert "replicaCount 2 needs config.leaderElection.enabled: true" in refused.output
