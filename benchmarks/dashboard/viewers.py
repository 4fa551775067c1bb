"""Fifty viewers of a cluster of 1 000 nodes where gangs come and go: how much of a core the dashboard takes.

The cluster (``spinney up``), the dashboard and the viewers are processes of their own; the dashboard's processor time
is read from the kernel, so other load on the machine does not count. By default all viewers have the same credentials
and share a view; with ``--own-tokens`` each brings a token of their own, and the cluster is read once for each.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp

from benchmarks.load.processes import SPINNEY, cpu_seconds
from spinney.api.core import SERVICE_ACCOUNT
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from spinney.cli.demo.workloads import training
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.errors import NotFound
from spinney.runtime import Runtime
from spinney.runtime.tasks import end

TARGET: Final = 0.20
_STANDING: Final = 50
"""Gangs of 16 pods that run before anything is measured."""


async def started(*arguments: str, says: bytes) -> tuple[asyncio.subprocess.Process, bytes]:
    """Start a command and return when it has said something, with the line it said it in."""
    process = await asyncio.create_subprocess_exec(*SPINNEY, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if says in line:
            return process, line
    raise RuntimeError(f"spinney {arguments[0]} ended before it said {says!r}")


async def tokens(client: Client, number: int) -> list[str]:
    """Return tokens of as many service accounts, which may read everything."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    await client.create(CLUSTER_ROLE, {"metadata": {"name": "viewers"}, "rules": rules})
    bound = {
        "metadata": {"name": "viewers"},
        "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": "viewers"},
        "subjects": [
            {"apiGroup": CLUSTER_ROLE.group, "kind": "Group", "name": "system:serviceaccounts:default"},
        ],
    }
    await client.create(CLUSTER_ROLE_BINDING, bound)
    made = []
    for each in range(number):
        await client.create(SERVICE_ACCOUNT, {"metadata": {"name": f"viewer-{each}"}}, "default")
        path = SERVICE_ACCOUNT.path("default", f"viewer-{each}", "token")
        answer = await client.raw("POST", path, body=b'{"spec": {}}')
        made.append(str(json.loads(answer.body)["status"]["token"]))
    return made


async def view(session: aiohttp.ClientSession, url: str, token: str | None, seen: list[int]) -> None:
    """Read the state and follow events, as a page does; counts bytes and events."""
    own = {"authorization": f"Bearer {token}"} if token else {}
    async with session.get(f"{url}api/state", headers=own) as answer:
        revision = (await answer.json())["revision"]
    async with session.get(f"{url}api/events", headers={**own, "last-event-id": revision}) as answer:
        async for line in answer.content:
            seen[0] += len(line)
            seen[1] += line.startswith(b"event: change")


async def churn(client: Client, every: float) -> None:
    """Bring a gang of eight up and take one down, again and again."""
    number = 0
    while True:
        await client.apply(POD_CLIQUE_SET, training(f"churn-{number}", workers=8, within="block"), "default")
        if number >= 10:
            with suppress(NotFound):
                await client.delete(POD_CLIQUE_SET, f"churn-{number - 10}", "default")
        number += 1
        await asyncio.sleep(every)


async def main(viewers: int, nodes: int, seconds: float, every: float, *, own_tokens: bool = False) -> int:
    """Measure and print; returns 1 if the target is missed."""
    with tempfile.TemporaryDirectory() as directory:
        config = str(Path(directory) / "kubeconfig")
        cluster, _ = await started(
            "up", "--nodes", f"{nodes}x8", "--no-dashboard", "--kubeconfig", config, says=b"is up at"
        )
        processes = [cluster]
        runtime = Runtime.system()
        try:
            mode = ("--authentication", "token" if own_tokens else "kubeconfig")
            board, line = await started("dashboard", "--kubeconfig", config, "--port", "0", *mode, says=b" is at ")
            processes.append(board)
            url = line.decode().split()[-1]
            client = Client(load_kubeconfig(config, runtime=runtime), runtime)
            for number in range(_STANDING):
                await client.apply(POD_CLIQUE_SET, training(f"stand-{number}", workers=16, within="block"), "default")
            await asyncio.sleep(15)
            idle = await _spent(board.pid, 10)
            seen = [0, 0]
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                brought = await tokens(client, viewers) if own_tokens else [None] * viewers
                watching = [asyncio.create_task(view(session, url, each, seen)) for each in brought]
                watching.append(asyncio.create_task(churn(client, every)))
                await asyncio.sleep(60 if own_tokens else 10)
                seen[:] = [0, 0]
                busy = await _spent(board.pid, seconds)
                told = list(seen)
                own = {"authorization": f"Bearer {brought[0]}"}
                async with session.get(f"{url}api/state", headers=own) as answer:
                    states = Counter(gang["state"] for gang in (await answer.json())["gangs"])
                await end(*watching)
            await client.transport.close()
        finally:
            runtime.executor.close()
            for process in reversed(processes):
                process.terminate()
                await process.wait()
    whose = "with tokens of their own" if own_tokens else "with the same credentials"
    print(f"{viewers} viewers {whose} of {nodes} nodes; a gang of 8 pods comes and one goes every {every:g} s")
    print(f"  at the end: {', '.join(f'{number} gangs {state}' for state, number in sorted(states.items()))}")
    print(
        f"  {told[1] / viewers / seconds:.1f} events/s, {told[0] / viewers / seconds / 1000:.1f} kB/s for each viewer"
    )
    print(f"  {busy:.1%} of a core; {idle:.1%} without viewers and without changes ({TARGET:.0%} at most)")
    return 0 if busy <= TARGET else 1


async def _spent(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(seconds)
    return (cpu_seconds(pid) - before) / (asyncio.get_running_loop().time() - began)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--own-tokens", action="store_true", help="each viewer brings a token of their own")
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.viewers, asked.nodes, asked.seconds, asked.every, own_tokens=asked.own_tokens)))
