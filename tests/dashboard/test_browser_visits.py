"""What becomes of a page in a real Chromium when nobody looks at it, its rights change, or its token ends."""

import json
from pathlib import Path

import pytest

from spinney.api.core import NODE, SERVICE_ACCOUNT
from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from spinney.cli.demo.workloads import training
from spinney.kube.crds import install_crds
from spinney.testing.chromium import a_chromium, chromium_path
from tests.dashboard.clusters import a_page
from tests.dashboard.test_browser import a_wire, apply
from tests.dashboard.test_tokens import READ, a_served

CHROMIUM = chromium_path()
LIVE = "document.querySelector('.connection-live')"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]


async def test_many_tabs_are_open_and_the_one_that_is_chosen_is_live() -> None:
    """A browser has six connections for a server: tabs that are hidden take none, and miss nothing."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tabs = [await browser.page() for _ in range(8)]
        for tab in tabs:
            await tab.choose()
            await tab.open(f"{page.url}#/map?node=gpu-001")
            await tab.until(LIVE)
        await page.client.patch(NODE, "gpu-001", {"spec": {"unschedulable": True}})
        asked = len([address for address in tabs[0].requests if address.endswith("api/state")])

        await tabs[0].choose()
        await tabs[0].shows("cordoned: spec.unschedulable")

        assert len([address for address in tabs[0].requests if address.endswith("api/state")]) == asked


async def test_a_hidden_tab_asks_for_nothing() -> None:
    """The cycles, which are asked for every few seconds, are not while nobody can see them."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        hidden, seen = await browser.page(), await browser.page()
        for tab in (hidden, seen):
            await tab.choose()
            await tab.open(f"{page.url}#/cycles")
            await tab.until(LIVE)
        await hidden.until("document.hidden")
        asked, looked = len(hidden.requests), len(seen.requests)
        while len(seen.requests) < looked + 4:
            await browser.clock_tick()
        assert len(hidden.requests) <= asked + 1, "one may have been due when the tab was hidden"


async def test_a_hidden_tab_says_now_and_then_that_it_is_there() -> None:
    """The view of a viewer with a token is closed when nobody looks, and what it has seen would be gone with it."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        hidden, seen = await browser.page(), await browser.page()
        await hidden.choose()
        await hidden.open(f"{page.url}#/map")
        await hidden.until(LIVE)
        await hidden.evaluate("{ const set = setTimeout; window.setTimeout = (what, ms) => set(what, ms / 1000); }")
        await seen.choose()
        await hidden.until("document.hidden")
        while not any("api/queues/history" in address for address in hidden.requests):
            await browser.clock_tick()


async def test_a_page_keeps_what_was_written_when_rights_change_and_asks_again_when_the_token_ends() -> None:
    """What may be seen is read again under the page; a token that ended while the page was away is asked for."""
    assert CHROMIUM is not None
    async with a_served() as served, a_wire(served.url) as (wire, url), a_chromium(CHROMIUM) as browser:
        token = await served.token("all", {"": ["pods", "nodes"]}, None)
        tab = await browser.page()
        await tab.open(f"{url}#/what-if")
        await tab.until("document.querySelector('input[type=password]')")
        await tab.type("input[type=password]", token)
        await tab.click("button.primary")
        await tab.until("document.querySelector('textarea')")
        await tab.type("textarea", "kind: Mine")
        await tab.until("document.querySelector('.notes').textContent.includes('namespaces')")

        rules = [{"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": READ}]
        await served.admin.patch(CLUSTER_ROLE, "all", {"rules": rules})
        await tab.until("!document.querySelector('.notes').textContent.includes('namespaces')")
        assert await tab.evaluate("document.querySelector('textarea').value") == "kind: Mine"

        wire.cut()
        await tab.shows("connection broken")
        await served.admin.delete(CLUSTER_ROLE_BINDING, "all")
        await served.admin.delete(SERVICE_ACCOUNT, "all", "default")
        while (await served.state(token))[0] != 401:
            pass  # the API server is asked each time
        wire.whole = True
        await tab.shows("Give a bearer token")


async def test_the_map_says_nothing_of_the_gang_that_was_chosen_before() -> None:
    """While the next gang's answer is on its way, no domain is lit with what the one before it lacked."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        for name in ("one", "two"):
            await apply(page, training(name, workers=6, within="rack"))
        tab = await browser.page()
        await tab.open(f"{page.url}#/map?gang=podgang/default/one-0")
        await tab.shows("Where it could go")
        await tab.evaluate(
            "{ const get = window.fetch; window.fetch = (url, how) =>"
            " url.includes('two-0/why') ? new Promise(() => {}) : get(url, how); }"
        )
        await tab.evaluate("location.hash = '#/map?gang=podgang/default/two-0'")
        await tab.shows("looking at what each domain lacks")
        assert "Where it could go" not in await tab.evaluate("document.body.innerText")


async def test_what_could_not_be_fetched_is_fetched_after_the_break() -> None:
    """A gang that was opened while the wire was cut is shown when it is whole again."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_wire(page.url) as (wire, url), a_chromium(CHROMIUM) as browser:
        await apply(page, training("one", workers=1, within="rack"))
        tab = await browser.page()
        await tab.open(f"{url}#/gangs")
        await tab.shows("one-0")
        wire.cut()
        await tab.evaluate("location.hash = '#/gang?key=podgang/default/one-0'")
        await tab.shows("Failed to fetch")
        wire.whole = True
        await tab.shows("Members")


async def test_what_was_written_and_opened_is_there_on_the_way_back(tmp_path: Path) -> None:
    """A workload that is written and a report that was opened stay while other pages are looked at."""
    assert CHROMIUM is not None
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"trace": "mine", "runs": [{"config": "c", "seed": None, "figures": {}}]}))
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.open(f"{page.url}#/what-if?example=constructor")
        await tab.until("document.querySelector('textarea')")
        await tab.type("textarea", "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}")
        await tab.click("button.primary")
        await tab.shows("It has no pods to place")
        await tab.type("textarea", "kind: Mine")
        await tab.evaluate("location.hash = '#/replay'")
        await tab.until("document.querySelector('input[type=file]')")
        await tab.choose_file("input[type=file]", report)
        await tab.shows("mine")

        await tab.evaluate("location.hash = '#/what-if'")
        await tab.until("document.querySelector('textarea')?.value === 'kind: Mine'")
        await tab.shows("It has no pods to place")
        await tab.evaluate("location.hash = '#/replay'")
        await tab.shows("mine")
        assert tab.complaints == []


async def test_a_report_that_cannot_be_shown_says_so_and_another_one_can_be_opened(tmp_path: Path) -> None:
    """A timeline that names jobs it does not have ends what shows it, not the page."""
    assert CHROMIUM is not None
    timeline = {"levels": [], "machines": [["a", 8, []]], "jobs": [], "events": [[0, "started", 0, [0]]]}
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    run: dict[str, object] = {"config": "c", "seed": None, "figures": {}}
    bad.write_text(json.dumps({"trace": "bad", "runs": [{**run, "timeline": timeline}]}))
    good.write_text(json.dumps({"trace": "good", "runs": [run]}))
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.open(f"{page.url}#/replay")
        await tab.until("document.querySelector('input[type=file]')")
        await tab.choose_file("input[type=file]", bad)
        await tab.shows("This cannot be shown")
        await tab.choose_file("input[type=file]", good)
        await tab.shows("Figures")


async def test_ages_are_right_where_the_browsers_clock_is_not() -> None:
    """A clock that is a day ahead makes no gang a day old."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        await apply(page, training("one", workers=1, within="rack"))
        tab = await browser.page()
        await tab.open(f"{page.url}#/gangs")
        await tab.shows("one-0")
        await tab.evaluate("{ const now = Date.now; Date.now = () => now() + 24 * 3600 * 1000; }")
        await tab.evaluate("location.hash = '#/gang?key=podgang/default/one-0'")
        await tab.until(
            "[...document.querySelectorAll('.facts div')].some((fact) =>"
            " /^age\\s+([1-9]m )?\\d+s$/.test(fact.innerText))"
        )


async def test_what_may_not_be_listed_is_not_said_to_be_absent() -> None:
    """Who may list neither nodes nor queues reads that; who may reads that there are none."""
    assert CHROMIUM is not None
    async with a_served() as served, a_chromium(CHROMIUM) as browser:
        await install_crds(served.admin)
        some = await served.token("some", {"": ["pods"]}, None)
        every = await served.token("every", {"*": ["*"]}, None)
        told = {
            some: ("You may not list nodes.", "You may not list queues.", "queues.scheduling.run.ai"),
            every: ("The cluster has no nodes.", "There are no queues", "read only"),
        }
        for token, (nodes, queues, notes) in told.items():
            tab = await browser.page()
            await tab.open(f"{served.url}#/map")
            await tab.until("document.querySelector('input[type=password]')")
            await tab.type("input[type=password]", token)
            await tab.click("button.primary")
            await tab.shows(nodes)
            await tab.evaluate("location.hash = '#/queues'")
            await tab.shows(queues)
            assert notes in await tab.evaluate("document.body.textContent")
