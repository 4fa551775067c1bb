"""``spinney scheduler --check`` says what is wrong with a configuration, or what it means, without a cluster."""

from pathlib import Path

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
