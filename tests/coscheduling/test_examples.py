"""The files people start from work as they are, and so does the command."""

import importlib.util
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.coscheduling import PodGroup
from spinney.api.struct import convert
from spinney.cli.commands.processes import coscheduler
from spinney.coscheduling.framework import FrameworkRegistry
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.process.configuration import load_configuration
from spinney.runtime import VirtualClock
from spinney.testing.kube_api import KubeApi

from .bench import Bench, a_node, a_pod

EXAMPLES = Path(__file__).parents[2] / "examples" / "coscheduling"


def test_the_configuration_is_valid() -> None:
    """The example configuration, which docs/coscheduling.md installs in a cluster, leaves kube-scheduler its name."""
    assert load_configuration(EXAMPLES / "configuration.yaml").scheduler_names == ("coscheduling",)


def test_the_group_is_one() -> None:
    """The example group asks for the pods of the example job."""
    group, job = yaml.safe_load_all((EXAMPLES / "pod-group.yaml").read_text())
    assert convert(PodGroup, group).spec.min_member == job["spec"]["parallelism"]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels == {"scheduling.x-k8s.io/pod-group": group["metadata"]["name"]}


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
@pytest.mark.parametrize(("hour", "node"), [(12, ""), (23, "owl")])
async def test_the_plugin_filters(cluster_name: str, hour: int, node: str) -> None:
    """The example plugin keeps pods off night nodes by day and lets them on at night."""
    spec = importlib.util.spec_from_file_location("night_shift", EXAMPLES / "night_shift.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    registry = FrameworkRegistry(BUILT_IN)
    registry.register("NightShift", module.NightShift)
    bench = Bench(registry=registry, plugins={"multiPoint": {"enabled": [{"name": "NightShift"}]}})
    clock = bench.runtime.clock
    assert isinstance(clock, VirtualClock)
    clock._epoch = datetime(2026, 1, 1, hour, tzinfo=UTC)
    bench.put(a_node("owl", labels={module.LABEL: "true"}), a_pod("p"))
    await bench.run()
    assert bench.binds == ({"p": node} if node else {})
    if not node:
        found = bench.refused["p"].found
        assert found is not None
        assert found.refusals[-1].reason == "node(s) only work at night"


def installed(directory: Path, name: str) -> None:
    """Lay out a package as pip would: the example's module, and the entry point that offers its plugin."""
    shutil.copy(EXAMPLES / "night_shift.py", directory)
    described = directory / "night_shift-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: night-shift\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[{FrameworkRegistry.group}]\n{name} = night_shift:NightShift\n")


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_a_plugin_that_is_installed_is_there(
    cluster_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that offers a plugin as an entry point only has to be installed; a profile enables it by name."""
    installed(tmp_path, "NightShift")
    monkeypatch.syspath_prepend(tmp_path)
    everywhere = {"multiPoint": {"enabled": [{"name": "NightShift"}]}}
    arguments = [{"name": "NightShift", "args": {"from": 0, "to": 0}}]
    bench = Bench(registry=FrameworkRegistry.installed(BUILT_IN), plugins=everywhere, plugin_config=arguments)
    bench.put(a_node("owl", labels={"example.com/night-only": "true"}), a_pod("p"))
    await bench.run()
    assert bench.binds == {"p": "owl"}


def test_a_name_that_is_taken_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose plugin has the name of a built-in one is refused, naming the entry point."""
    installed(tmp_path, "Coscheduling")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"night_shift:NightShift.* 'Coscheduling' is taken"):
        FrameworkRegistry.installed(BUILT_IN)


def test_the_command_names_what_is_wrong(tmp_path: Path, kube_api: KubeApi) -> None:
    """A configuration that cannot be used ends the command with one line that names the file and the field."""
    path = tmp_path / "wrong.yaml"
    path.write_text("profilse: []\n")
    result = CliRunner().invoke(coscheduler, ["--config", str(path), "--kubeconfig", str(kube_api.kubeconfig)])
    assert result.exit_code == 1
    assert "wrong.yaml: profilse: no such field; did you mean 'profiles'?" in result.output
