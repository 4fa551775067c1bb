"""What a peer is: the programs it consists of, how each is started, and where ``make peers`` has put them."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.testing.controlplane.process import free_port

_BUILD_SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "peers" / "build.sh"

LOOPBACK = "127.0.0.1"


class PeerMissing(RuntimeError):
    """A peer has not been built; the message says how to."""


@dataclass(frozen=True)
class Ground:
    """Where the programs of a peer run: the API server they are told of, and a directory for what they are given."""

    kubeconfig: Path
    directory: Path

    def address(self) -> str:
        """Return an address on loopback that nobody listens on."""
        return f"{LOOPBACK}:{free_port()}"

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file for a program, readable by its owner alone."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@dataclass(frozen=True)
class Program:
    """One program of a peer, and its arguments on some ground."""

    name: str
    arguments: Callable[[Ground], list[str]]


@dataclass(frozen=True)
class Peer:
    """A scheduler or an operator of others."""

    name: str
    """What ``hack/peers/build.sh`` calls it."""
    version: str
    programs: tuple[Program, ...]
    objects: tuple[tuple[Resource, JSON], ...] = ()
    """What it expects to find in a cluster, beside its CRDs."""
    environment: tuple[tuple[str, str], ...] = ()
    remark: str = ""
    """How what is run differs from what is shipped."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def built(peer: Peer) -> Path:
    """Return the directory of a built peer, with ``bin`` and ``crds`` in it; :class:`PeerMissing` if there is none."""
    if not _BUILD_SCRIPT.is_file():
        raise PeerMissing(f"{peer.name} is built by {_BUILD_SCRIPT}, which is not there: run from a source tree")
    command = [str(_BUILD_SCRIPT), "--check", peer.name]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode != 0:
        raise PeerMissing(found.stderr.strip())
    return Path(found.stdout.strip()) / peer.name
