"""The page that ships asks nothing of anybody else, and runs under the policy it is served with."""

import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

PAGE = resources.files("spinney.dashboard") / "page"
SOURCES = Path(__file__).resolve().parents[2] / "web"


def test_the_page_has_no_inline_code_and_no_foreign_address() -> None:
    """Scripts and styles are files of its own; the policy would block anything else."""
    text = (PAGE / "index.html").read_text()

    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert sources
    for source in sources:
        name = source.removeprefix("assets/")
        assert (PAGE / name).is_file(), source


def test_the_script_evaluates_nothing_and_names_no_server() -> None:
    """No eval, no HTML from text, no address but namespaces of XML and comments."""
    script = (PAGE / "app.js").read_text()

    assert not re.search(r"\beval\(|new Function\(|\.insertAdjacentHTML|document\.write|document\.cookie", script)
    addresses = set(re.findall(r"https?://[\w.]+", script))
    assert addresses <= {"http://www.w3.org", "https://github.com"}, addresses


def test_the_page_stays_small() -> None:
    """It loads at once, also over a slow connection: at most 250 kB before compression."""
    assert sum(len(each.read_bytes()) for each in PAGE.iterdir()) < 250_000


def test_the_page_is_what_its_sources_build(tmp_path: Path) -> None:
    """The page in the package is that of `web/`, where the tools to build it are installed."""
    if shutil.which("node") is None or not (SOURCES / "node_modules").is_dir():
        pytest.skip("needs Node and `npm ci` in web/; `make web` does both")
    environment = {**os.environ, "SPINNEY_PAGE": str(tmp_path)}
    subprocess.run(["node", "build.mjs"], cwd=SOURCES, env=environment, check=True)

    built = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert built == {each.name: each.read_bytes() for each in PAGE.iterdir()}, "run `make web` and commit the page"
