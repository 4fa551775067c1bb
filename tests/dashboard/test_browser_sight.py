"""How the page looks and reads in a real Chromium: narrow, with long names, in forced colours, on paper, and by ear."""

import pytest

from spinney.api.podgang import POD_GANG
from spinney.testing.chromium import Tab, a_chromium, chromium_path
from tests.dashboard.clusters import Page, a_page

CHROMIUM = chromium_path()
LONG = "x" * 240

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]


async def a_gang(page: Page, name: str) -> None:
    """Create a gang that has no pods."""
    spec = {"podgroups": [{"name": "worker", "minReplicas": 1}]}
    await page.client.create(POD_GANG, {"metadata": {"name": name}, "spec": spec}, "default")


async def style(tab: Tab, selector: str, name: str) -> str:
    """Return a property of the style that an element is shown with."""
    return str(await tab.evaluate(f"getComputedStyle(document.querySelector({selector!r}))[{name!r}]"))


async def test_every_page_fits_a_window_of_320_pixels() -> None:
    """Nothing but tables is scrolled sideways, at 400 % of zoom on a small screen and however long a name is."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        await a_gang(page, LONG)
        tab = await browser.page(width=320, height=640)
        key = f"podgang/default/{LONG}"
        for address in ("gangs", f"gang?key={key}", f"map?gang={key}", "queues", "what-if", "replay", "cycles"):
            await tab.open("about:blank")
            await tab.open(f"{page.url}#/{address}")
            await tab.until("document.querySelector('main > :nth-child(2):not(.dim)')")
            assert await tab.evaluate("document.documentElement.scrollWidth") <= 320, address


async def test_forced_colours_keep_what_colour_says() -> None:
    """Legend and bars keep their colours where the system takes all others, and the current page is marked."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.emulate(forced_colors="active")
        await tab.open(f"{page.url}#/queues")
        await tab.until("document.querySelector('.bar')")
        assert await style(tab, ".bar", "backgroundColor") == "rgb(223, 228, 234)"
        assert await style(tab, "nav a[aria-current]", "outlineStyle") == "solid"


async def test_a_page_is_printed_dark_on_light_and_whole() -> None:
    """Paper is light also for who reads in the dark, and a long table is not cut off."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.emulate(media="print", prefers_color_scheme="dark")
        await tab.open(f"{page.url}#/map")
        await tab.until("document.querySelector('.side')")
        assert await style(tab, "body", "color") == "rgb(31, 35, 40)"
        assert await style(tab, ".side", "maxHeight") == "none"


async def test_a_page_that_opens_is_read_from_its_beginning_and_left_where_it_was() -> None:
    """The focus goes to what opened, and on the way back the table is where the reader left it."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        for number in range(60):
            await a_gang(page, f"gang-{number}")
        tab = await browser.page()
        await tab.open(f"{page.url}#/gangs")
        await tab.shows("gang-59")
        await tab.evaluate("window.scrollTo(0, 1000)")
        await tab.evaluate("[...document.querySelectorAll('tbody a')].find((each) => each.text === 'gang-40').click()")
        await tab.until("document.querySelector('article')")
        assert await tab.evaluate("[document.activeElement.id, window.scrollY]") == ["content", 0]

        await tab.evaluate("history.back()")
        await tab.until("document.querySelector('tbody tr') && window.scrollY === 1000")


async def test_only_the_connection_is_said_aloud_and_not_the_time_of_every_change() -> None:
    """A reader of the screen hears that the page is live, once."""
    assert CHROMIUM is not None
    async with a_page(nodes=2) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.open(f"{page.url}#/gangs")
        await tab.until("document.querySelector('output')?.innerText === 'live'")


async def test_a_node_is_chosen_on_the_map_with_the_keyboard() -> None:
    """Who comes to the map with the keyboard sees where its middle is, and Enter chooses the node nearest to it."""
    assert CHROMIUM is not None
    async with a_page(nodes=1) as page, a_chromium(CHROMIUM) as browser:
        tab = await browser.page()
        await tab.open(f"{page.url}#/map")
        await tab.until("document.querySelector('canvas') && performance.getEntriesByName('map-draw').length")
        assert await style(tab, ".middle", "visibility") == "hidden"
        for _ in range(20):
            if await tab.evaluate("document.activeElement.tagName") == "CANVAS":
                break
            await tab.key("Tab")
        assert await style(tab, ".middle", "visibility") == "visible"
        await tab.key("Enter")
        await tab.until("document.querySelector('.side h2').innerText.startsWith('gpu-000')")
