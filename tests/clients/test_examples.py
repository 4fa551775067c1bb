"""The examples of ``docs/embedded-server.md`` pass, and the page shows them as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_commands import ROOT

_EXAMPLES = ROOT / "examples" / "embedded_server"
_PLUGIN = ("-p", "no:spinney", "-p", "spinney.testing.pytest_plugin")  # by its module: it may not be installed


def _pytest(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", *_PLUGIN, *arguments]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_fixture_alone() -> None:
    """Objects, custom kinds and simulated nodes, with Spinney's own client."""
    _pytest(_EXAMPLES / "test_client.py")


@pytest.mark.real
@pytest.mark.parametrize(
    ("example", "needed"), [("test_official_client.py", "kubernetes"), ("test_kopf_operator.py", "kopf")]
)
def test_a_library_of_others(example: str, needed: str) -> None:
    """The official client and a kopf operator need nothing but the kubeconfig."""
    pytest.importorskip(needed, reason=f"{needed} is not installed: `make test-real` does")
    _pytest("-W", "ignore", _EXAMPLES / example)  # kopf leaves its sockets to the garbage collector


@pytest.mark.real
@pytest.mark.timeout(900)
def test_a_controller_in_go() -> None:
    """A controller in Go is built, started and tested."""
    if shutil.which("go") is None:
        pytest.skip("NO GO CONTROLLER: building it needs go on PATH")
    _pytest("-o", "timeout=0", _EXAMPLES / "test_go_controller.py")


@pytest.mark.parametrize("example", sorted(_EXAMPLES.glob("test_*.py")), ids=lambda path: path.name)
def test_the_page_shows_the_example(example: Path) -> None:
    """Each example stands on the page word for word."""
    page = (ROOT / "docs" / "embedded-server.md").read_text(encoding="utf-8")
    assert f"```python\n{example.read_text(encoding='utf-8')}```" in page


def test_the_plugin_costs_nothing_where_it_is_not_used() -> None:
    """The plugin, which pytest loads wherever Spinney is installed, loads nothing else of Spinney."""
    script = """
import sys
sys.modules["jsonschema_rs"] = None
import pytest
before = set(sys.modules)
import spinney.testing.pytest_plugin
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['spinney', 'spinney.testing', 'spinney.testing.pytest_plugin']"
