"""Draw 10 000 nodes with 80 000 GPUs in a real Chromium: how long until they are seen, and how smoothly they pan."""

import asyncio
import statistics
import sys

from spinney.api.core import NODE, POD
from spinney.api.podgang import POD_GANG
from spinney.dashboard.access import Access
from spinney.dashboard.advising import Adviser
from spinney.dashboard.serving import Dashboard
from spinney.dashboard.viewers import Viewers
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.guarding import ReadOnlyTransport
from spinney.runtime import InlineExecutor, Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.chromium import Tab, a_chromium, chromium_path

GPUS, RACK, BLOCK, GANG = 8, 16, 128, 8
_PAN_SECONDS = 4.0


def node(number: int) -> dict[str, object]:
    """Return a node of 8 GPUs, 16 to a rack and 128 to a block."""
    labels = {
        "topology.kubernetes.io/zone": f"zone-{number // (BLOCK * 20)}",
        "topology.kubernetes.io/block": f"block-{number // BLOCK}",
        "topology.kubernetes.io/rack": f"rack-{number // RACK}",
    }
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": room, "allocatable": room, "conditions": ready}
    return {"metadata": {"name": f"gpu-{number:05d}", "labels": labels}, "status": status}


def pod(number: int) -> dict[str, object]:
    """Return a pod that holds a whole node."""
    labels = {"grove.io/podgang": f"gang-{number // GANG}", "grove.io/podclique": "worker"}
    resources = {"limits": {"nvidia.com/gpu": str(GPUS)}, "requests": {"nvidia.com/gpu": str(GPUS)}}
    containers = [{"name": "main", "image": "x", "resources": resources}]
    spec = {"nodeName": f"gpu-{number:05d}", "schedulerName": "spinney-scheduler", "containers": containers}
    return {"metadata": {"name": f"pod-{number}", "labels": labels}, "spec": spec}


async def fill(client: Client, nodes: int) -> None:
    """Create the nodes, and on three of four of them pods of gangs."""
    await install_crds(client)
    for number in range(nodes):
        await client.create(NODE, node(number))
        if number % 4:
            await client.create(POD, pod(number), "default")
    for number in range(nodes // GANG):
        groups = [{"name": "worker", "minReplicas": 1}]
        await client.create(
            POD_GANG, {"metadata": {"name": f"gang-{number}"}, "spec": {"podgroups": groups}}, "default"
        )


async def frames(tab: Tab) -> float:
    """Drag the map about and return how many times a second it was drawn."""
    await tab.mouse("mousePressed", 400, 400, button="left", clickCount=1)
    await tab.evaluate("performance.clearMeasures(); true")
    loop = asyncio.get_running_loop()
    began = loop.time()
    step = 0
    while loop.time() - began < _PAN_SECONDS:
        step += 1
        await tab.mouse("mouseMoved", 400 + (step * 7) % 300, 400 + (step * 5) % 200, button="left", buttons=1)
    spent = loop.time() - began
    await tab.mouse("mouseReleased", 400, 400, button="left", clickCount=1)
    return float(await tab.evaluate("performance.getEntriesByName('map-draw').length")) / spent


async def main(nodes: int) -> None:
    """Print the figures."""
    path = chromium_path()
    if path is None:
        print("skipped: Chromium is not installed")
        return
    runtime = Runtime.system()
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await fill(client, nodes)

        def connect(_: str | None) -> Client:
            return Client(ReadOnlyTransport(InProcessTransport(server)), runtime)

        viewers = Viewers(connect, runtime, source="benchmark", lasting=True)
        access = Access(host="127.0.0.1", mode="kubeconfig", tls=False)
        dashboard = Dashboard(viewers, access, Adviser(InlineExecutor()), version="benchmark")
        async with dashboard.serving(0) as url, a_chromium(path) as browser:
            tab = await browser.page(width=1280, height=800)
            await tab.open(url)
            await tab.until("performance.getEntriesByName('map-draw').length", within=120)
            shown = await tab.evaluate(
                "(() => { const drawn = performance.getEntriesByName('map-draw')[0];"
                "const got = performance.getEntriesByType('resource').find((each) => each.name.endsWith('api/state'));"
                "return [got.responseEnd - got.startTime, got.encodedBodySize, drawn.startTime + drawn.duration - "
                "got.responseEnd, drawn.duration]; })()"
            )
            panned = [await frames(tab)]
            for _ in range(4):
                await tab.key("+")
            panned.append(await frames(tab))
            draws = await tab.evaluate("performance.getEntriesByName('map-draw').map((each) => each.duration)")
    fetched, size, drawn, first = shown
    print(f"{nodes} nodes, {nodes * GPUS} GPUs in Chromium, 1280 x 800, without a GPU")
    print(f"  state fetched in {fetched:.0f} ms ({size / 1000:.0f} kB compressed)")
    print(f"  seen {drawn:.0f} ms after it had arrived (laid out, coloured and drawn; the drawing {first:.0f} ms)")
    print(f"  panning all of it: {panned[0]:.0f} frames/s; zoomed in: {panned[1]:.0f} frames/s")
    print(f"  a frame takes {statistics.median(draws):.1f} ms in the middle, {max(draws):.1f} ms at most")
    runtime.executor.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
