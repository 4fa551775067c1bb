"""``spinney scheduler --check`` says what is wrong with a configuration, or what it means, without a cluster."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.cli import main


def check(*arguments: object) -> Result:
    """Check a configuration."""
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
