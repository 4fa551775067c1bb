"""``spinney scheduler --check`` says what is wrong with a configuration, or what it means, without a cluster."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.cli import main
from spinney.scheduler.config import DEFAULT_PLUGINS


def check(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["scheduler", "--check", *map(str, arguments)])


def test_a_mistake_is_named_with_line_path_and_what_is_allowed(tmp_path: Path) -> None:
    """A misspelt argument of a built-in plugin is no longer ignored."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("plugins:\n- name: nodeplacement\n  arguments:\n    gpuu: spread\n")

    answer = check("--config", path)

    assert answer.exit_code == 1
    assert f"{path}:4: plugins[0].arguments.gpuu: plugin nodeplacement: unknown argument; did you mean 'gpu'?" in (
        answer.stderr
    )


def test_an_action_nobody_has_is_named(tmp_path: Path) -> None:
    """What can be told without a cluster is told."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("actions: [alocate]\n")

    assert "no action is called 'alocate'" in check("--config", path).stderr


def test_what_is_printed_means_the_same(tmp_path: Path) -> None:
    """The configuration is printed with every default, and can be used as it is."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("plugins: [predicates, {name: nodeplacement, arguments: {gpu: spread}}]\nbacktracking: false\n")
    first = check("--config", path)
    path.write_text(first.stdout)
    second = check("--config", path)

    assert "valid" in first.stdout
    assert "gpu: spread\n    cpu: binpack\n" in first.stdout
    assert second.stdout == first.stdout


def test_what_a_shorter_list_loses_is_said(tmp_path: Path) -> None:
    """Whoever replaces the default list is told what no longer happens; the default list loses nothing."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("plugins: [predicates, proportion]\n")
    said = check("--config", path).stdout
    assert "# plugins: without plugin topology gangs that require a topology level wait" in said
    assert "without plugin predicates" not in said
    assert "without" not in check().stdout


def test_extra_plugins_extend_the_default_list(tmp_path: Path) -> None:
    """A plugin is added, another's arguments are set where it is, and nothing is lost."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("extraPlugins: [reservation, {name: proportion, arguments: {kValue: 2}}]\n")
    answer = check("--config", path)
    assert answer.exit_code == 0, answer.stderr
    assert "without" not in answer.stdout
    names = [option["name"] for option in yaml.safe_load(answer.stdout)["plugins"]]
    assert names == [*DEFAULT_PLUGINS, "reservation"]
    assert "kValue: '2" in answer.stdout

    path.write_text("extraPlugins:\n- name: proportion\n  arguments: {kValeu: 2}\n- {name: topology, enabled: false}\n")
    assert f"{path}:3: extraPlugins[0].arguments.kValeu: plugin proportion" in check("--config", path).stderr
    path.write_text("extraPlugins: [{name: topology, enabled: false}]\n")
    assert "without plugin topology" in check("--config", path).stdout


def test_plugins_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    """A file that enables two of which one excludes the other is refused, in any order; one that is off is no harm."""
    path = tmp_path / "scheduler.yaml"
    for first, second in (("backfill", "reservation"), ("reservation", "backfill")):
        path.write_text(f"extraPlugins:\n- name: {first}\n- name: {second}\n")
        answer = check("--config", path)
        assert answer.exit_code == 1
        said = f"{path}:3: extraPlugins[1]: plugin {second} contradicts plugin {first}; leave one of the two out"
        assert said in answer.stderr
    path.write_text("extraPlugins:\n- name: backfill\n- {name: reservation, enabled: false}\n")
    assert check("--config", path).exit_code == 0


def test_only_plugins_that_are_named_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose plugin cannot be imported stops nobody who does not use it, and is named to who does."""
    described = tmp_path / "broken-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[spinney.plugins]\nbroken-one = no_such_module:Plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "scheduler.yaml"

    path.write_text("plugins: [predicates]\n")
    assert check("--config", path).exit_code == 0
    path.write_text("plugins: [predicates, broken-one]\n")
    answer = check("--config", path)

    assert answer.exit_code == 1
    assert "entry point 'broken-one' of broken" in answer.stderr
    assert "No module named 'no_such_module'" in answer.stderr


def test_plugins_in_a_directory_are_taken(tmp_path: Path) -> None:
    """``--plugin`` takes every plugin of a file or of a directory's files, as a mounted ConfigMap has them."""
    plugin = "from spinney.scheduler import Plugin\n\n\nclass Quiet(Plugin):\n    name = 'quiet'\n\n"
    (tmp_path / "quiet.py").write_text(plugin + "    def on_session_open(self, session): ...\n")
    answer = CliRunner().invoke(main, ["scheduler", "--check", "--plugin", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "- name: quiet" in answer.output
    (tmp_path / "broken.py").write_text("import nowhere\n")
    answer = CliRunner().invoke(main, ["scheduler", "--check", "--plugin", str(tmp_path)])
    assert answer.exit_code == 1
    assert "broken.py:1: ModuleNotFoundError" in answer.output
