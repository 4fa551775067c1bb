"""The reference pages say what the code says."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = runpy.run_path(str(ROOT / "hack" / "reference.py"))
PAGES: dict[str, str] = REFERENCE["pages"]()
PICTURES: dict[str, str] = sys.modules["pictures"].pictures()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_not_drifted(name: str) -> None:
    """A reference page equals what ``make docs`` would write."""
    assert (ROOT / "docs" / "reference" / name).read_text() == PAGES[name], "run `make docs`"


@pytest.mark.parametrize("name", PAGES)
def test_everything_has_a_meaning(name: str) -> None:
    """Every command argument, flag, field, key, metric and event says what it means to a user."""
    assert not REFERENCE["unexplained"](PAGES[name]), "say it where it is defined, or in spinney.api.schema.meanings"


def test_every_argument_of_a_plugin_is_described() -> None:
    """The table of plugin arguments has those that the built-in plugins declare, and their defaults."""
    arguments = sys.modules["arguments"]

    assert {(each.plugin, each.key, each.default) for each in arguments.ARGUMENTS} == arguments.declared()


def test_every_event_is_described() -> None:
    """The reasons in the table are the reasons that the source passes to an event recorder, no more and no fewer."""
    events = sys.modules["events"]
    described = {each.reason for each in events.EVENTS}

    assert described == set(events.recorded())


def test_every_metric_is_listed() -> None:
    """Every metric name in the source is in the reference."""
    written = {
        name
        for path in (ROOT / "src" / "spinney").rglob("*.py")
        if "prometheus_client" in (text := path.read_text())
        for name in re.findall(r'(?:Counter|Gauge|Histogram)\(\s*"(spinney_\w+)"', text)
    }

    assert written
    assert not {name for name in written if name not in PAGES["metrics.md"]}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_not_drifted(name: str) -> None:
    """A picture is what the tool draws today."""
    assert (ROOT / "docs" / "pictures" / name).read_text() == PICTURES[name], "run `make docs`"


def test_the_first_screen_has_not_drifted() -> None:
    """The picture at the top of the README is what the tool draws today."""
    drawn = sys.modules["pictures"].first_screen().rstrip()

    assert f"<!-- drawn by `make docs` -->\n```\n{drawn}\n```\n" in (ROOT / "README.md").read_text(), "run `make docs`"


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the repository, and every picture, is there."""
    links = re.findall(r"\]\(([^)#:\[]+)(?:#[^)]*)?\)", page.read_text())

    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_page_is_in_the_index() -> None:
    """The index names every page."""
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}

    assert not [page for page in pages if f"({page})" not in index]
