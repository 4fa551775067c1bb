"""Every page in a real Chromium, on an embedded cluster: it is read, used, cut off and resumed, and harms nobody."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spinney.api.core import NODE, POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG
from spinney.cli import main
from spinney.cli.demo.workloads import inference, training
from spinney.testing.chromium import Tab, a_chromium, chromium_path
from tests.dashboard.clusters import Page, a_page
from tests.sim.replay.test_readers import philly

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = chromium_path()
EVIL = '<img src=x onerror="window.harmed=1">'

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]


class Wire:
    """A wire between browser and dashboard that can be cut. Mutable."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self.whole = True

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection both ways."""
        if not self.whole:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, back]
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    def cut(self) -> None:
        """End every connection, and take no more."""
        self.whole = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass  # the other side has cut it
    finally:
        writer.close()


@asynccontextmanager
async def a_wire(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """Lead a wire to a dashboard; gives the address at its other end."""
    wire = Wire(int(url.rsplit(":", 1)[1].strip("/")))
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    try:
        yield wire, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        wire.cut()
        server.close()


async def apply(page: Page, manifest: Any) -> None:
    """Apply a set as a user would."""
    await page.client.apply(POD_CLIQUE_SET, manifest, "default", field_manager="test")


async def serious(tab: Tab) -> list[str]:
    """Return what axe-core finds wrong with the page as it is, as far as it is serious."""
    await tab.evaluate(AXE.read_text() + "; true")
    found = json.loads(await tab.evaluate("axe.run().then((result) => JSON.stringify(result.violations))"))
    return [
        f"{each['id']}: {node['html'][:200]} {node['any'][:1] and node['any'][0]['message']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """Where screenshots go: the directory that SPINNEY_ARTEFACTS names, or one of pytest's."""
    found = Path(os.environ.get("SPINNEY_ARTEFACTS") or tmp_path)
    found.mkdir(parents=True, exist_ok=True)
    return found


async def test_every_page_in_chromium(artefacts: Path, tmp_path: Path) -> None:
    """A gang comes up, one waits and its remedy is read, what-if is tried, and a cut stream goes on where it was."""
    assert CHROMIUM is not None
    if not AXE.is_file():
        pytest.skip("needs axe-core: `npm ci` in web/")
    report = tmp_path / "report.json"
    replayed = CliRunner().invoke(main, ["replay", str(philly(tmp_path)), "-o", "json", "--timeline"])
    report.write_text(replayed.stdout)
    async with a_page(nodes=16) as page, a_wire(page.url) as (wire, url), a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.open(f"{url}#/gangs")
        await tab.shows("0 of 0")
        await apply(page, inference("chat", "spinney-scheduler"))
        await tab.until(
            "[...document.querySelectorAll('tbody tr')].some((row) => /chat-0\\b.*running/s.test(row.innerText))"
        )

        await apply(page, training(workers=6, within="rack"))
        await tab.until(
            "[...document.querySelectorAll('tbody tr')].some((row) => /train-0.*pending/s.test(row.innerText))"
        )
        await _harm(page)
        await tab.shows(EVIL)
        await _looked_at(tab, artefacts / "gangs.png")

        await tab.open(f"{url}#/gang?key=podgang/default/train-0")
        await tab.until("document.querySelector('.remedies li')")
        remedy = await tab.evaluate("document.querySelector('.remedies').innerText")
        assert "tried: it starts" in remedy
        assert "kubectl get podcliqueset.v1alpha1.grove.io train -n default" in remedy
        await tab.shows("initialized")
        await tab.click(".objects > summary")
        await tab.shows("kind: PodCliqueSet")
        await _looked_at(tab, artefacts / "gang.png")

        await tab.open(f"{url}#/map?gang=podgang/default/train-0")
        await tab.shows("Where it could go")
        await tab.until("performance.getEntriesByName('map-draw').length")
        await _keyboard(tab)
        await _looked_at(tab, artefacts / "map.png")

        await tab.open(f"{url}#/what-if?example=inference")
        await tab.click("button.primary")
        await tab.shows("It starts: 2 pods")
        await tab.shows("Nobody would be evicted.")
        await _looked_at(tab, artefacts / "what-if.png")
        names = {pod["metadata"]["name"] for pod in (await page.client.list(POD, "default")).items}
        assert not [name for name in names if name.startswith("what-if")]

        await tab.open(f"{url}#/queues?queue=training")
        await tab.shows("training over time")
        await _looked_at(tab, artefacts / "queues.png")

        await tab.open(f"{url}#/cycles")
        await tab.shows("what was decided")
        await tab.until("document.querySelectorAll('tbody tr').length > 1")
        await _looked_at(tab, artefacts / "cycles.png")

        await tab.open(f"{url}#/replay")
        await tab.until("document.querySelector('input[type=file]')")
        await tab.choose_file("input[type=file]", report)
        await tab.until("document.querySelector('input[type=range]')")
        await tab.evaluate(
            "(() => { const slider = document.querySelector('input[type=range]'); slider.value = slider.max;"
            "slider.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        await _looked_at(tab, artefacts / "replay.png")

        await _cut_and_resumed(page, tab, wire, url)
        assert await tab.evaluate("window.harmed") is None
        assert tab.complaints == []
        assert {address.split("#")[0].rsplit("/", 1)[0] for address in tab.requests if address.startswith("http")} <= {
            f"{url}{path}".rstrip("/") for path in ("", "assets", "api", "api/queues")
        } | {f"{url}api/gangs/podgang/default", f"{url}api/gangs/podgang/default/train-0"}


async def _harm(page: Page) -> None:
    """Have a gang wait with a message that is markup."""
    labels = {"grove.io/podgang": "harm", "grove.io/podclique": "harm"}
    gang = {"metadata": {"name": "harm"}, "spec": {"podgroups": [{"name": "harm", "minReplicas": 1}]}}
    await page.client.create(POD_GANG, gang, "default")
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}
    await page.client.create(POD, {"metadata": {"name": "harm", "labels": labels}, "spec": spec}, "default")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": EVIL}
    await page.client.patch(POD, "harm", {"status": {"conditions": [condition]}}, "default", subresource="status")


async def _looked_at(tab: Tab, path: Path) -> None:
    """Leave a screenshot; the page must pass axe-core in light and dark, and fit a phone without scrolling sideways."""
    await tab.resize(1280, 800)
    _write(path, await tab.screenshot())
    assert await serious(tab) == [], path.stem
    await tab.resize(390, 844, dark=True)
    _write(path.with_stem(f"{path.stem}-phone"), await tab.screenshot())
    assert await serious(tab) == [], f"{path.stem}, dark"
    assert await tab.evaluate("document.documentElement.scrollWidth") <= 390, f"{path.stem} on a phone"
    await tab.resize(1280, 800)


def _write(path: Path, picture: bytes) -> None:
    path.write_bytes(picture)


async def _keyboard(tab: Tab) -> None:
    """The map moves with the keyboard, and the way to every page is a link that can be focused."""
    await tab.evaluate("document.querySelector('canvas').focus()")
    drawn = await tab.evaluate("performance.getEntriesByName('map-draw').length")
    await tab.key("ArrowRight")
    await tab.until(f"performance.getEntriesByName('map-draw').length > {drawn}")
    assert await tab.evaluate("[...document.querySelectorAll('nav a')].every((link) => link.tabIndex === 0)")


async def _cut_and_resumed(page: Page, tab: Tab, wire: Wire, url: str) -> None:
    """While the wire is cut a node is cordoned; when it is whole again the page shows that, without reading it all."""
    await tab.open("about:blank")
    await tab.open(f"{url}#/map?node=gpu-009")
    await tab.until("document.querySelector('.connection-live')")
    wire.cut()
    await tab.shows("connection broken")
    await page.client.patch(NODE, "gpu-009", {"spec": {"unschedulable": True}})
    asked = len([address for address in tab.requests if address.endswith("api/state")])

    wire.whole = True
    await tab.until("document.querySelector('.connection-live')")
    await tab.shows("cordoned: spec.unschedulable")

    assert len([address for address in tab.requests if address.endswith("api/state")]) == asked
