"""The walks in the architecture and the glossary name files and what stands in them; both are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "spinney"
PLACE = re.compile(r"`([a-z_]+/[a-z_/]+\.py)`(?: `(\w+)`)?")


def places(page: str) -> list[tuple[str, str]]:
    """Return every file of a page's tables, with the name that is to be found in it."""
    rows = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("| ")]
    return sorted({(path, name) for row in rows for path, name in PLACE.findall(row)})


def defined_in(path: Path) -> set[str]:
    """Return the functions and classes of a module, methods included."""
    found = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in found if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_place_that_is_named_is_there(page: str) -> None:
    """A file that was moved, or a class that was renamed, is moved or renamed in the page too."""
    lost = [
        f"{path} {name}".rstrip()
        for path, name in places(page)
        if not (PACKAGE / path).is_file() or (name and name not in defined_in(PACKAGE / path))
    ]

    assert len(places(page)) > 30
    assert not lost
