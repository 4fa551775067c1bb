"""The servers that are compared: each in processes of its own, on loopback, with TLS and a bearer token."""

import asyncio
import base64
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from benchmarks.load.processes import cpu_seconds, peak_memory
from spinney.testing.controlplane import ControlPlane
from spinney.testing.controlplane.tether import Tether

_EMBEDDED = """
import asyncio, sys
from pathlib import Path
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server import HttpServer

async def main():
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    server = ApiServer(Runtime.system(), ServerOptions(data_directory=directory, track_all_managers=True))
    async with server.running(), HttpServer(server) as http:
        http.write_kubeconfig(Path(sys.argv[1]))
        print("ready", file=sys.stderr, flush=True)
        await asyncio.get_running_loop().create_future()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Contender:
    """A running server: how to reach it, and its processes."""

    name: str
    kubeconfig: Path
    url: str
    token: str
    trust: ssl.SSLContext
    pids: tuple[int, ...]

    def busy(self) -> float:
        """Return the CPU seconds that its processes have used."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def memory(self) -> float:
        """Return the most memory that its processes have held, in MiB."""
        return sum(peak_memory(pid) for pid in self.pids)


@asynccontextmanager
async def embedded(*, keeping: bool) -> AsyncIterator[Contender]:
    """Run the embedded server, in memory or with a data directory."""
    with TemporaryDirectory() as home, Tether(Path(home)) as tether:
        kubeconfig = Path(home) / "kubeconfig"
        arguments = [str(kubeconfig), *([str(Path(home) / "data")] if keeping else [])]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _EMBEDDED,
            *arguments,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            process_group=tether.group,
        )
        assert process.stderr is not None
        said = await process.stderr.readline()
        if said.strip() != b"ready":
            raise SystemExit((said + await process.stderr.read()).decode())
        name = "embedded, --data-dir" if keeping else "embedded"
        yield _from_kubeconfig(name, kubeconfig, (process.pid,))
        process.terminate()
        await process.wait()


@asynccontextmanager
async def kubernetes(minor: str) -> AsyncIterator[Contender]:
    """Run kube-apiserver and etcd."""
    async with ControlPlane(minor, controller_manager=False) as plane:
        yield _from_kubeconfig(f"kube-apiserver {minor} + etcd", plane.kubeconfig, plane.pids)


def _from_kubeconfig(name: str, path: Path, pids: tuple[int, ...]) -> Contender:
    content = yaml.safe_load(path.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    data, file = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    if data:
        trust = ssl.create_default_context(cadata=base64.b64decode(data).decode())
    else:
        trust = ssl.create_default_context(cafile=file)
    return Contender(name, path, cluster["server"], user["token"], trust, pids)
