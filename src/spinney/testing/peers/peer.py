"""What a peer is: its programs, where ``make peers`` has put them, and how it is installed and run on an API server."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import SystemClock
from spinney.runtime.private_files import write_private
from spinney.testing.controlplane.process import ProcessFailed, ServerProcess, free_port
from spinney.testing.controlplane.tether import Tether

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
        write_private(path, content if isinstance(content, bytes) else content.encode())
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


def crds(peer: Peer) -> list[JSON]:
    """Return the CRDs of a peer, as its source has them."""
    files = sorted((built(peer) / "crds").glob("*.yaml"))
    return [found for file in files for found in yaml.safe_load_all(file.read_text()) if found]


async def install(peer: Peer, client: Client) -> None:
    """Apply the CRDs of a peer and what it expects to find."""
    await install_crds(client, crds(peer))
    for resource, manifest in peer.objects:
        await client.apply(resource, manifest)


@dataclass(frozen=True)
class RunningPeer:
    """The programs of a peer, which were started."""

    peer: Peer
    processes: tuple[ServerProcess, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the process ids."""
        return tuple(process.pid for process in self.processes)

    def logs(self) -> str:
        """Return what the programs have logged last."""
        return "\n".join(f"{process.name} of {self.peer} logged: {_end(process)}" for process in self.processes)

    def check(self) -> None:
        """Raise :class:`ProcessFailed`, with the end of its log, if a program has ended."""
        for process in self.processes:
            if not process.alive:
                raise ProcessFailed(f"{process.name} of {self.peer} ended: {_end(process)}")


@contextmanager
def running(peer: Peer, kubeconfig: Path, directory: Path) -> Iterator[RunningPeer]:
    """Run the programs of a peer for the time of the block, with their files and logs below ``directory``."""
    programs = built(peer) / "bin"
    ground = Ground(kubeconfig, directory / peer.name)
    ground.directory.mkdir(exist_ok=True)
    environment = {"KUBECONFIG": str(kubeconfig), "TMPDIR": str(ground.directory), **dict(peer.environment)}
    processes: list[ServerProcess] = []
    with Tether() as tether:
        try:
            for program in peer.programs:
                process = ServerProcess(
                    program.name,
                    [programs / program.name, *program.arguments(ground)],
                    directory=ground.directory,
                    clock=SystemClock(),
                    tether=tether,
                    environment=environment,
                )
                processes.append(process)
            yield RunningPeer(peer, tuple(processes))
        finally:
            for process in reversed(processes):
                process.stop()


def _end(process: ServerProcess) -> str:
    return process.log.read_text(errors="replace")[-4000:]
