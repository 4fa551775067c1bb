"""``spinney scheduler`` as people run it: a process of its own, over HTTPS, ended by a signal."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from spinney.api.coordination import LEASE
from spinney.api.core import NAMESPACE, POD
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer
from tests.scheduler.process.world import NS, World

COMMAND = "from spinney.cli import main; main()"


@asynccontextmanager
async def a_served_world(kubeconfig: Path) -> AsyncIterator[World]:
    """Serve an embedded cluster over HTTPS, in real time."""
    runtime = Runtime.system()
    server = ApiServer(runtime)
    async with server.running(), HttpServer(server) as http:
        http.write_kubeconfig(kubeconfig)
        world = World(server, runtime)
        await world.client.create(NAMESPACE, {"metadata": {"name": NS}})
        await world.client.create(NAMESPACE, {"metadata": {"name": "leases"}})
        yield world
    runtime.executor.close()


async def a_command(kubeconfig: Path, *options: str) -> asyncio.subprocess.Process:
    arguments = ("-c", COMMAND, "scheduler", "--kubeconfig", str(kubeconfig), *options)
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE, stderr=PIPE)


async def bound(world: World, pod: str) -> None:
    """Wait until a pod has a node."""
    async for event in world.client.watch(POD, NS, field_selector=f"metadata.name={pod}"):
        if event.object["spec"].get("nodeName"):
            return


async def test_it_schedules_under_its_lease_and_ends_gracefully(tmp_path: Path) -> None:
    """The command binds a pod while it holds the lease, and on SIGTERM gives the lease back and exits with 0."""
    kubeconfig = tmp_path / "kubeconfig"
    async with a_served_world(kubeconfig) as world:
        await world.add_node("n1")
        await world.add_pod("waits")
        options = ("--leader-elect", "--lease-namespace", "leases", "--metrics-port", "0", "--log-json")
        command = await a_command(kubeconfig, *options)
        await bound(world, "waits")
        command.terminate()
        _, said = await command.communicate()
        assert command.returncode == 0, said.decode()
        assert b'"event": "cycle decided"' in said
        lease = await world.client.get(LEASE, "spinney-scheduler", "leases")
        assert lease["spec"].get("holderIdentity", "") == ""


async def test_a_dry_run_prints_how_it_compares(tmp_path: Path) -> None:
    """Beside another scheduler the command writes nothing and ends with a comparison."""
    kubeconfig = tmp_path / "kubeconfig"
    async with a_served_world(kubeconfig) as world:
        await world.add_node("n1")
        await world.add_pod("theirs", schedulerName="another")
        command = await a_command(kubeconfig, "--dry-run", "--scheduler-name", "another", "-v", "1")
        assert command.stderr is not None
        async for line in command.stderr:
            if b"would bind" in line:
                break
        found = await world.client.get(POD, "theirs", NS)
        assert "nodeName" not in found["spec"]
        await world.client.bind(NS, "theirs", found["metadata"]["uid"], "n1")
        async for line in command.stderr:
            if b"other scheduler bound" in line:
                break
        command.terminate()
        said, _ = await command.communicate()
        assert command.returncode == 0
        assert "1 pod placed by either scheduler" in said.decode()
        assert "same node" in said.decode()
