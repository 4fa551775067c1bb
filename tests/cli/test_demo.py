"""The demo tells its whole story, on a terminal and without, and ends well or stays."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from spinney.cli import main

WITHOUT_READERS = """
from spinney.cli import main
from spinney.cli.demo.screen import LiveScreen
LiveScreen.reading_time = 0.1
main()
"""
"""Runs a command with a screen that nobody has to follow."""


def test_the_demo_runs_to_its_end() -> None:
    """It brings an inference service up twice, shows a refused gang's reason, lets it in, and says what to do next."""
    answer = CliRunner().invoke(main, ["demo", "--plain"])

    assert answer.exit_code == 0, answer.output
    assert "chat-0 running: 7 pods, 7 bound, 7 ready" in answer.output
    assert "chat-kai-0 running: 7 pods, 7 bound, 7 ready" in answer.output
    assert "PodGroup chat-kai-0 with 7 sub-groups" in answer.output
    assert "4 of 6 pods fit in rack" in answer.output
    assert "has room for all 6 pods" in answer.output
    assert "train-0 running: 6 pods, 6 bound, 6 ready" in answer.output
    following = answer.output.partition("Next:\n")[2].splitlines()
    assert [line.split()[1] for line in following] == ["up", "apply", "why"]


def test_on_a_terminal_it_is_a_live_view_that_can_be_left_running(tmp_path: Path) -> None:
    """On a terminal racks, queues and gangs are redrawn in place; with ``--keep`` kubectl can be pointed at it."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"HOME": str(tmp_path), "COLUMNS": "120", "LINES": "50", "TERM": "xterm-256color"}
    command = [sys.executable, "-c", WITHOUT_READERS, "demo", "--keep"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while b"export KUBECONFIG=" not in shown:
        shown += os.read(ours, 65536)
    text = shown.decode(errors="replace")

    assert (tmp_path / ".spinney" / "demo-kubeconfig").exists()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    os.close(ours)
    assert "rack-7" in text
    assert "serving" in text
    assert "\x1b[1A" in text  # drawn again in place
    assert "Scheduled PodGang train-0" in text
    assert "Traceback" not in text
