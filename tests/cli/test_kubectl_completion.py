"""``kubectl spinney`` is completed by kubectl itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.kubectl import kubectl_binary

_COMPLETING = "from spinney.cli.kubectl_completing import main; main()"


def offered(*words: str) -> list[str]:
    """Return what the executable prints for the last of ``words``."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPLETING, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_words_come_with_their_meaning_and_no_files() -> None:
    """A command is offered with what it does, and the shell adds no files."""
    assert offered("si") == ["simulate\tSay what would be placed where, on a snapshot.", ":4"]


def test_where_a_file_is_expected_the_shell_finds_it() -> None:
    """Nothing is offered for a path, and the shell may complete files."""
    assert offered("scheduler", "--config", "") == [":0"]


@pytest.mark.real
def test_kubectl_completes_the_plugin(tmp_path: Path) -> None:
    """With both executables on the path kubectl offers what the plugin does."""
    for name, script in (("kubectl-spinney", "pass"), ("kubectl_complete-spinney", _COMPLETING)):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{script}" "$@"\n')
        path.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(kubectl_binary()), "__complete", "spinney", "si"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.splitlines() == ["simulate\tSay what would be placed where, on a snapshot.", ":4"]
