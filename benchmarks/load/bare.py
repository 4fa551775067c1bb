"""A client that only binds: no caches, no decisions. What it reaches is the most that any scheduler can, with our HTTP.

usage: python -m benchmarks.load.bare [--no-events] KUBECONFIG
"""

import asyncio
import signal
import sys
from pathlib import Path

from benchmarks.load.cluster import NAMESPACE_NAME
from spinney.api.core import NODE, POD
from spinney.binding.binder import Binder
from spinney.binding.placement import GangPlacement, Placement
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.runtime import Runtime, settle_garbage_collector


class Silence(EventRecorder):
    """Records nothing."""

    def event(self, *_: object) -> None:
        """Say nothing."""


async def bind_all(kubeconfig: Path, *, events: bool) -> None:
    """Bind every pod, round robin over the nodes."""
    runtime = Runtime.system()
    client = Client(load_kubeconfig(kubeconfig, runtime=runtime), runtime)
    recorder = (EventRecorder if events else Silence)(client, "bare")
    nodes = [node["metadata"]["name"] for node in (await client.list(NODE)).items]
    pods = (await client.list(POD, NAMESPACE_NAME)).items
    placements = tuple(
        Placement(Key(NAMESPACE_NAME, pod["metadata"]["name"]), pod["metadata"]["uid"], nodes[n % len(nodes)])
        for n, pod in enumerate(pods)
    )
    await Binder(client, recorder).bind(GangPlacement("all", placements))
    await recorder.flush()
    await client.close()
    runtime.executor.close()


if __name__ == "__main__":
    settle_garbage_collector()
    asyncio.run(bind_all(Path(sys.argv[-1]), events="--no-events" not in sys.argv))
    signal.pause()  # a process that has ended cannot be asked how much memory it had
