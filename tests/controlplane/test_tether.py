"""A control plane ends with whoever started it, also when that is killed."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinney.runtime import SystemClock
from spinney.testing.controlplane.binaries import GoMissing, find_binaries
from spinney.testing.controlplane.tether import Tether

_PLANE = """
import sys
from spinney.testing.controlplane import ControlPlane
with ControlPlane(controller_manager=False) as plane:
    print(plane.directory, *plane.pids, flush=True)
    sys.stdin.read()
"""
_SLEEPER = """
import subprocess, sys
from spinney.testing.controlplane.tether import Tether
tether = Tether()
sleeper = subprocess.Popen(["sleep", "600"], process_group=tether.group)
print(tether.group, sleeper.pid, flush=True)
sys.stdin.read()
"""


def _said_then_killed(script: str) -> list[str]:
    """Run a script until it has said a line, kill it with ``kill -9``, and return the words of the line."""
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None
    assert parent.stdout is not None
    words = parent.stdout.readline().split()
    watched = [os.pidfd_open(int(word)) for word in words if word.isdecimal()]
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    for each in watched:
        _wait_for_end(each)
    return words


def _wait_for_end(process: int) -> None:
    """Return when the process behind a descriptor has ended; fail after a minute."""
    ended, _, _ = select.select([process], [], [], 60)
    os.close(process)
    assert ended, "the process outlived its parent by a minute"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the end of a process that is not a child is seen on Linux")
def test_a_program_ends_with_a_killed_parent() -> None:
    """Killing whoever holds a tether ends what was started into its group, and the watchman."""
    assert len(_said_then_killed(_SLEEPER)) == 2


def test_releasing_ends_what_still_runs(tmp_path: Path) -> None:
    """A program that was forgotten ends when the tether is released; releasing twice does nothing."""
    tether = Tether()
    sleeper = subprocess.Popen(["sleep", "600"], process_group=tether.group)
    tether.release()
    tether.release()
    assert sleeper.wait(60) == -9


@pytest.mark.real
def test_a_plane_ends_with_a_killed_parent() -> None:
    """``kill -9`` of a test or benchmark leaves no etcd, no kube-apiserver and no data behind."""
    try:
        find_binaries("1.37")
    except GoMissing as missing:
        pytest.skip(f"NO REAL CONTROL PLANE: {missing}")
    directory, *pids = _said_then_killed(_PLANE)
    assert len(pids) == 2
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while Path(directory).exists():
        assert clock.monotonic() < deadline, f"{directory} is left behind"
        time.sleep(0.02)  # whoever removes it is nobody's child any more
