"""The notebooks run from top to bottom, as a reader would run them, and what they end a cell with can be shown."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


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
            pictures += "gpu-000" in drawn or "<svg" in drawn

    assert pictures
