"""Shells can complete commands and options, and kubectl finds the plugin."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest


def complete(*words: str) -> list[str]:
    """Return what bash would offer for the last of ``words``."""
    environment = os.environ | {
        "_SPINNEY_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    script = "from spinney.cli import main; main(prog_name='spinney')"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    """The beginning of a command, or of an option of one, is completed."""
    assert complete("spinney", "si") == ["simulate"]
    assert "--context" in complete("spinney", "why", "--con")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell_is_printed(shell: str) -> None:
    """The documented command prints a completion script."""
    environment = os.environ | {"_SPINNEY_COMPLETE": f"{shell}_source"}
    script = "from spinney.cli import main; main(prog_name='spinney')"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)

    assert "_SPINNEY_COMPLETE" in done.stdout


def test_kubectl_finds_the_plugin() -> None:
    """The package installs kubectl-spinney, which is how kubectl finds a plugin."""
    names = {entry.name: entry.value for entry in entry_points(group="console_scripts")}

    assert names["kubectl-spinney"] == names["spinney"] == "spinney.cli:main"
