"""``spinney up --config`` takes the file of any process and gives it to the one it is for."""

from pathlib import Path
from typing import ClassVar

import click
import pytest

from spinney.api.podgang import PodGang
from spinney.backends import Capabilities, PodManifest, SchedulerBackend, every_backend
from spinney.cli.settings.stack import embedded_settings, ungrouped_names
from spinney.nodes import ClusterSpec
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import StackOptions


class Mine(SchedulerBackend):
    """A backend of a third party."""

    name: ClassVar[str] = "mine"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(gang_scheduling=True)

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name


def _written(directory: Path, text: str) -> Path:
    path = directory / "config.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def spec() -> ClusterSpec:
    """Two nodes of eight GPUs."""
    return gpu_cluster(2, 8)


def test_without_files_everything_runs_as_it_comes(spec: ClusterSpec) -> None:
    """Without a file every backend is enabled and served."""
    assert embedded_settings(spec, ()) == StackOptions.whole(spec)


def test_an_operator_configuration_is_the_operators(spec: ClusterSpec, tmp_path: Path) -> None:
    """An OperatorConfiguration decides which profiles are enabled."""
    path = _written(
        tmp_path,
        "apiVersion: operator.config.grove.io/v1alpha1\n"
        "kind: OperatorConfiguration\n"
        "scheduler: {profiles: [{name: spinney-scheduler, default: true}]}\n",
    )

    options = embedded_settings(spec, [path])

    assert options.operator.profiles.default == "spinney-scheduler"
    assert "kai-scheduler" not in options.operator.profiles.names()


def test_files_without_a_kind_are_told_apart_by_their_keys(spec: ClusterSpec, tmp_path: Path) -> None:
    """What the pages show in a few lines, and operator and grouper take as it is, is taken here, too."""
    profiles = "scheduler: {profiles: [{name: spinney-scheduler, default: true}]}\n"
    rules = "rules: [{kind: jobs.example.com/PyFlow, floor: spec.workers}]\n"

    operator = embedded_settings(spec, [_written(tmp_path, profiles)])
    grouper = embedded_settings(spec, [_written(tmp_path, profiles + rules)])
    scheduler = embedded_settings(spec, [_written(tmp_path, "schedulerNames: [mine]\n")])

    assert "kai-scheduler" not in operator.operator.profiles.names()
    assert grouper.grouper is not None
    assert "jobs.example.com/PyFlow" in grouper.grouper.rules.rules
    assert "mine" in scheduler.scheduler.scheduler_names


def test_the_grouper_serves_the_backends_of_the_operators_file(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workloads for a scheduler of a third party are grouped, too; for a name without a backend that is said."""
    catalogue = every_backend()
    catalogue.register(Mine)
    monkeypatch.setattr("spinney.cli.settings.stack.every_backend", lambda: catalogue)
    profiles = "kind: OperatorConfiguration\nscheduler: {profiles: [{name: mine, default: true}]}\n"

    options = embedded_settings(spec, [_written(tmp_path, profiles)])

    assert options.grouper is not None
    assert "mine" in options.grouper.written.scheduler_names
    assert "mine" in options.grouper.profiles.names()
    assert ungrouped_names(options) == []
    assert ungrouped_names(embedded_settings(spec, [_written(tmp_path, "schedulerNames: [other]\n")])) == ["other"]


def test_a_shard_is_the_session_schedulers(spec: ClusterSpec, tmp_path: Path) -> None:
    """A SchedulingShard configures the session scheduler, which still serves every name it serves here."""
    path = _written(tmp_path, "kind: SchedulingShard\nspec: {placementStrategy: {gpu: spread, cpu: spread}}\n")

    options = embedded_settings(spec, [path])

    assert {"spinney-scheduler", "kai-scheduler", "volcano"} <= set(options.scheduler.scheduler_names)
    assert options.scheduler != StackOptions.whole(spec).scheduler


def test_profiles_are_the_coschedulers(spec: ClusterSpec, tmp_path: Path) -> None:
    """A file in kube-scheduler's grammar configures the coscheduler."""
    path = _written(tmp_path, "profiles: [{schedulerName: default-scheduler}]\n")

    options = embedded_settings(spec, [path])

    assert options.coscheduler is not None
    assert [each.scheduler_name for each in options.coscheduler.profiles] == ["default-scheduler"]


def test_a_typo_is_named(spec: ClusterSpec, tmp_path: Path) -> None:
    """A key nobody knows is one sentence with the file and the key."""
    path = _written(tmp_path, "plugns: []\n")

    with pytest.raises(click.ClickException) as refused:
        embedded_settings(spec, [path])

    assert "config.yaml:1: plugns: unknown key; did you mean 'plugins'?" in refused.value.message
