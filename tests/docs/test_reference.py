"""The reference pages say what the code says."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, str] = runpy.run_path(str(ROOT / "hack" / "reference.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_not_drifted(name: str) -> None:
    """A reference page equals what ``make docs`` would write."""
    assert (ROOT / "docs" / "reference" / name).read_text() == PAGES[name], "run `make docs`"
