"""Programs that do not outlive the process that started them, also if that ends by ``kill -9``.

A watchman, a tiny process of its own, leads a process group and reads from a pipe whose other end only the parent
holds. The programs are started into that group. However the parent ends, the operating system closes the pipe; then
the watchman steps out of its group, kills it, and removes the programs' directory. Nothing has to be noted down per
program, so there is no moment at which one of them is unwatched. (A death signal by ``prctl`` would be simpler, but it
is tied to the thread that started a program, and only Linux has it.)
"""

import subprocess
import sys
from pathlib import Path
from typing import Self

_WATCHMAN = """
import os, shutil, signal, sys
released, group = sys.stdin.buffer.read(), os.getpgrp()
if os.fork() == 0:
    os.setpgid(0, 0)
    os.killpg(group, signal.SIGKILL)
    for directory in () if released else sys.argv[1:]:
        shutil.rmtree(directory, ignore_errors=True)
else:
    signal.pause()
"""


class Tether:
    """Ties programs to the life of this process, from construction to :meth:`release`. Mutable."""

    def __init__(self, *directories: Path) -> None:
        """Start the watchman; ``directories`` are removed if this process ends without releasing."""
        self._watchman = subprocess.Popen(  # noqa: S603 - the interpreter that runs this
            [sys.executable, "-I", "-S", "-c", _WATCHMAN, *map(str, directories)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def group(self) -> int:
        """Return the process group that programs are to be started in (``process_group=`` of ``Popen``)."""
        return self._watchman.pid

    def release(self) -> None:
        """End the watchman, and every program of the group that still runs. Releasing twice does nothing."""
        if self._watchman.returncode is None:
            self._watchman.communicate(b"released")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
