"""The notebooks run from top to bottom, as a reader would run them, and what they end a cell with can be shown."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))

STYLES_THE_NOTEBOOK = re.compile(r"(?m)^\s*(body|:root|html|table|th|td|svg)\b[^<]*\{|<html|<title")
"""A rule of style, or a mark, that is about all of the page and not only about what is drawn."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    """Every code cell runs in order in one name space; a cluster, or a report, at the end of a cell draws itself."""
    names: dict[str, object] = {"__name__": "__main__"}
    pictures = 0
    cells = json.loads(path.read_text())["cells"]
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        module = ast.parse("".join(cell["source"]))
        last = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
        exec(compile(module, path.name, "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            drawn = shown._repr_html_() if hasattr(shown, "_repr_html_") else ""
            assert len(repr(shown)) < 1000, "what stands beside the picture is kept in the notebook, too"
            assert not STYLES_THE_NOTEBOOK.search(drawn)
            pictures += "gpu-000" in drawn or "<svg" in drawn

    assert pictures


def test_decisions_are_not_logged_into_a_cell() -> None:
    """Where nobody has configured structlog, warnings are logged beside what is printed, and nothing else is."""
    program = (
        "import structlog; from spinney.sim import Cluster; Cluster('1x8'); log = structlog.get_logger();"
        "log.info('decided'); log.warning('odd'); print('mine')"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert told.stdout == "mine\n"
    assert "odd" in told.stderr
    assert "decided" not in told.stderr


def test_warnings_are_logged_to_what_standard_error_is_by_then() -> None:
    """Who catches standard error for a while, as test runners do, can log when that is closed."""
    program = (
        "import contextlib, io, structlog; from spinney.sim import Cluster; caught = io.StringIO()\n"
        "with contextlib.redirect_stderr(caught): Cluster('1x8')\n"
        "caught.close(); structlog.get_logger().warning('later')"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "later" in told.stderr
