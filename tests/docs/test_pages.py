"""The pages are wrapped for readers of their source, and each has its place in the site."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/performance/*.md")])
WIDTH = 120


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page that can be wrapped, with their numbers: no code, no tables, no HTML."""
    code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.lstrip().startswith(("|", "<", "[!", "#")):
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    """No line of prose has more than 120 characters, unless it is one word."""
    long = [number for number, line in prose(page) if len(line) > WIDTH and re.search(r"\S\s+\S", line.lstrip(" -"))]

    assert not long, f"{page.name}: lines {long} have more than {WIDTH} characters; run make format"


def test_every_page_is_in_the_site() -> None:
    """The table of contents of the site names every page once, and no page that is not there."""
    contents = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]

    def named(part: object) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            for inner in part.values():
                yield from named(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from named(inner)

    there = sorted(str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md"))
    assert sorted(named(contents)) == there
