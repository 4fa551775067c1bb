"""The helm that renders the chart."""

import os
import shutil
import subprocess

import pytest

from .rendering import ROOT

_NO_GO = 3


@pytest.fixture(scope="session")
def helm() -> str:
    """The helm of this machine, or the pinned one, built on first use."""
    found = os.environ.get("HELM") or shutil.which("helm")
    if found is not None:
        return found
    built = subprocess.run([str(ROOT / "hack" / "helm" / "build.sh")], capture_output=True, text=True, check=False)
    if built.returncode == _NO_GO:
        pytest.skip("NO HELM: install it, name it in HELM, or install Go to build it")
    assert built.returncode == 0, built.stderr
    return built.stdout.strip()
