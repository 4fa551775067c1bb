"""What is printed suits the terminal: none that takes no commands is sent any."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.cli.workloads import as_yaml

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"schedulerName": "spinney-scheduler", "containers": [{"name": "main"}]},
}


def shown(directory: Path, *arguments: str, **environment: str) -> str:
    """Return what a command shows on a terminal."""
    file = directory / "cluster.yaml"
    file.write_text(as_yaml({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, POD))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from spinney.cli import main; main()", *arguments, "--from", str(file)]
    kept = {key: text for key, text in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=kept | environment)
    os.close(theirs)
    read = b""
    while True:
        try:
            read += (part := os.read(ours, 4096))
        except OSError:  # how Linux says that the terminal has no other end any more
            part = b""
        if not part:
            break
    os.close(ours)
    assert process.wait(timeout=60) == 0, read
    return read.decode()


def test_a_dumb_terminal_is_sent_text_alone(tmp_path: Path) -> None:
    """It would show every command for its cursor and its colours as text."""
    assert "\x1b" in shown(tmp_path, "why", "p", TERM="xterm")
    assert "\x1b" not in shown(tmp_path, "why", "p", TERM="dumb")
