"""Takes the pictures of the dashboard in the documentation, in a real Chromium on the demo's cluster.

``python hack/screenshots.py`` writes docs/pictures/dashboard-*.png; ``make docs`` runs it where Chromium is installed.
Pictures differ from run to run (names of pods, times), so nothing compares them.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from spinney.api.core import NODE
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.kai import QUEUE
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cli.demo.workloads import inference, queues, training
from spinney.dashboard.local import dashboard_of
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.testing.chromium import Tab, a_chromium, chromium_path

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
_WAITS: Final = "podgang/default/train-0"
_SHOTS: Final[tuple[tuple[str, str, str, int, int, bool], ...]] = (
    ("map", "map", "document.querySelector('canvas')", 1280, 720, False),
    ("lacks", f"map?gang={_WAITS}", "/Where it could go/.test(document.body.innerText)", 1280, 720, True),
    ("gang", f"gang?key={_WAITS}", "document.querySelector('.remedies li')", 1280, 720, False),
    ("phone", "map", "document.querySelector('canvas')", 390, 780, False),
)
"""Name, address, what must be true before it is taken, window, and whether it is dark."""


async def fill(cluster: EmbeddedCluster) -> None:
    """Have services and jobs on the cluster, one that no rack can hold, and a node that is cordoned."""
    await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
    for queue in queues():
        await cluster.client.apply(QUEUE, queue)
    workloads = [inference(f"chat-{letter}", "spinney-scheduler") for letter in "abc"]
    workloads += [training("llm", workers=10, within="block"), training(workers=6, within="rack")]
    for manifest in workloads:
        await cluster.client.apply(POD_CLIQUE_SET, manifest, "default", field_manager="docs")
    await cluster.client.patch(NODE, "gpu-031", {"spec": {"unschedulable": True}})


async def take(tab: Tab, url: str, write: Callable[[str, bytes], None]) -> None:
    """Take every picture."""
    await tab.open(f"{url}#/gangs?state=running")
    await tab.until("/\\b7 of 8\\b/.test(document.body.innerText)")
    for name, page, ready, width, height, dark in _SHOTS:
        await tab.resize(width, height, dark=dark)
        await tab.open("about:blank")
        await tab.open(f"{url}#/{page}")
        await tab.until(ready)
        await tab.until("performance.getEntriesByName('map-draw').length || !document.querySelector('canvas')")
        write(name, await tab.screenshot())


async def main(path: str) -> None:
    """Run the cluster and take the pictures."""
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime, StackOptions.whole(gpu_cluster(32, 8)))
    try:
        async with cluster.running(), dashboard_of(cluster) as url, a_chromium(path) as browser:
            await fill(cluster)
            tab = await browser.page()
            await take(tab, url, lambda name, found: _write(PICTURES / f"dashboard-{name}.png", found))
    finally:
        runtime.executor.close()


def _write(path: Path, picture: bytes) -> None:
    path.write_bytes(picture)
    print(f"wrote {path.name}: {len(picture) // 1000} kB")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    found = chromium_path()
    if found is None:
        sys.exit("Chromium is not installed: the pictures stay as they are")
    asyncio.run(main(found))
