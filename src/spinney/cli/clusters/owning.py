"""Who writes a kubeconfig: one ``spinney up`` at a time.

A lock beside the file is held as long as the process lives and says who holds it, so a process that was killed owns
nothing. A second cluster takes a file of its own instead of cutting the first cluster off from its users.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import click


@dataclass(frozen=True)
class KubeconfigClaim:
    """A kubeconfig that is ours to write, and why it is not the one that was wanted."""

    path: Path
    owner: str = ""
    """Who has the one that was wanted; empty if it is this one."""


@contextmanager
def claimed(wanted: Path) -> Iterator[KubeconfigClaim]:
    """Own ``wanted``, or where it has an owner the next free name beside it, for the time of the block."""
    owner = ""
    for number in count(1):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        lock = _lock_beside(path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = owner or os.read(lock, 200).decode(errors="replace")
            os.close(lock)
            continue
        try:
            os.truncate(lock, 0)
            os.write(lock, f"process {os.getpid()}".encode())
            yield KubeconfigClaim(path, owner)
        finally:
            os.close(lock)
        return


def _lock_beside(path: Path) -> int:
    """Return the open lock of a file, in a directory that is made where it is missing."""
    if path.parts[0] == "~":
        raise click.ClickException(f"{path} cannot be written: HOME is not set; --kubeconfig names another file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        said = f"{path} cannot be written ({error.strerror}); --kubeconfig names another file"
        raise click.ClickException(said) from error
