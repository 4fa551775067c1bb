"""Where the embedded server is not installed (the image, a plain ``pip install spinney``) everything else works."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.packaging.test_dependencies import ROOT

_MISSING = {
    "the image": ("spinney.server", "jsonschema_rs"),
    "a plain install": ("jsonschema_rs",),
}
_SCRIPT = """
import importlib.util, json, sys
sys.modules.update(dict.fromkeys({missing!r}))
from click.testing import CliRunner
from spinney.cli import COMMANDS, main

needing = []
for name in COMMANDS:
    body = "spinney.cli.bodies." + name.replace("-", "_")
    if importlib.util.find_spec(body) is None:
        continue  # it has nothing that would have to be imported
    try:
        importlib.import_module(body)
    except ModuleNotFoundError:
        needing.append(name)
run = CliRunner().invoke
checks = {{name: run(main, [name, "--check"]).exit_code for name in ("scheduler", "coscheduler")}}
file = ["-f", {manifest!r}]
commands = (["up"], ["demo"], ["validate", *file], ["simulate", {manifest!r}, *file])
told = {{command[0]: run(main, command).output for command in commands}}
print(json.dumps({{"needing": needing, "checks": checks, "told": told}}))
"""


@pytest.fixture(scope="module", params=_MISSING)
def seen(request: pytest.FixtureRequest) -> Any:
    """What a Python that cannot import what is missing saw of the commands."""
    script = _SCRIPT.format(missing=_MISSING[request.param], manifest=str(ROOT / "examples/first-workload.yaml"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_three_commands_need_it(seen: Any) -> None:
    """Operator, schedulers, grouper, init container and everything else are imported without the server."""
    assert seen["needing"] == ["demo", "up", "validate"]


def test_configurations_are_checked_without_it(seen: Any) -> None:
    """``--check`` of a process works where the process works."""
    assert seen["checks"] == {"scheduler": 0, "coscheduler": 0}


def test_a_command_that_needs_it_says_how_to_get_it(seen: Any) -> None:
    """The error names the command and what to install."""
    for command, output in seen["told"].items():
        assert f"'spinney {command}' needs the embedded API server" in output
        assert "pip install 'spinney[embedded]'" in output


def test_the_image_leaves_it_out() -> None:
    """The lock of the image has nothing of the extra, and the server's package is removed from it."""
    assert "jsonschema-rs" not in (ROOT / "requirements.image.lock").read_text(encoding="utf-8")
    assert "rm -r /opt/spinney/lib/python3.*/site-packages/spinney/server" in (ROOT / "Containerfile").read_text(
        "utf-8"
    )
