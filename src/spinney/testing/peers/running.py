"""Installing a peer on an API server and running its programs beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import SystemClock
from spinney.testing.controlplane.process import ProcessFailed, ServerProcess
from spinney.testing.controlplane.tether import Tether
from spinney.testing.peers.peer import Ground, Peer, built


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


def _end(process: ServerProcess) -> str:
    return process.log.read_text(errors="replace")[-4000:]


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
