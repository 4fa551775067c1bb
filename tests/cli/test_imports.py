"""Commands and processes do not wait at their start for what they may never need."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_HEAVY = ("aiohttp", "cryptography", "jsonschema_rs", "spinney.kube.http", "spinney.server.server")


def test_a_snapshot_is_judged_without_an_http_stack() -> None:
    """What ``why`` and ``simulate`` import for a file has neither HTTP nor TLS in it, and no API server."""
    modules = ("spinney.cli.bodies.why", "spinney.cli.bodies.simulate", "spinney.sim.snapshots.files")
    assert loaded_of(_HEAVY, modules) == []


def test_a_scheduler_starts_without_what_only_some_configurations_need() -> None:
    """Neither the library for proxies nor that for tables and tracebacks, nor grouper, coscheduler and web server."""
    heavy = ("aiohttp", "rich", "pygments", "attr", "spinney.grouping", "spinney.coscheduling", "spinney.kube.serving")
    assert loaded_of(heavy, ("spinney.cli.bodies.scheduler", "spinney.cli.settings.session_process")) == []


def test_a_coscheduler_starts_without_the_other_scheduler() -> None:
    """Files with plugins may hold some of either scheduler; without such files only one of the two is loaded."""
    heavy = ("aiohttp", "rich", "spinney.sim", "spinney.scheduler", "spinney.backends", "spinney.kube.serving")
    assert loaded_of(heavy, ("spinney.cli.bodies.coscheduler", "spinney.cli.settings.coscheduler_process")) == []


@pytest.mark.parametrize("scheduler", ["scheduler", "coscheduler"])
def test_a_scheduler_reads_its_cluster_before_it_is_loaded(scheduler: str) -> None:
    """Lists are asked for without waiting for numpy, plugins and actions, which are loaded while they come."""
    parts = ("scheduler.plugins", "scheduler.actions", "scheduler.process.process", "coscheduling.framework", "gangs")
    heavy = ("numpy", *(f"spinney.{part}" for part in parts))
    assert loaded_of(heavy, (f"spinney.cli.bodies.{scheduler}", "spinney.kube.http")) == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux shows them")
def test_a_scheduler_is_loaded_without_threads_for_linear_algebra() -> None:
    """There would be one for each core of the node, each with a buffer of its own, and nobody here uses them."""
    script = "main(['scheduler', '--check'], standalone_mode=False); print(len(os.listdir('/proc/self/task')))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", f"import os; from spinney.cli import main; {script}"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.splitlines()[-1] == "1"


def test_rich_is_there_for_who_wants_it_later() -> None:
    """Loading structlog without it takes nothing from those who draw tables."""
    script = "load_structlog(); import rich.table, structlog; print(structlog.dev.rich, rich.table.Table().columns)"
    done = subprocess.run(
        [sys.executable, "-c", f"from spinney.cli.options import load_structlog; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "None []\n"


def loaded_of(names: Sequence[str], modules: Sequence[str]) -> list[str]:
    """Return which of ``names`` a fresh interpreter has loaded after it has loaded the bodies of commands."""
    script = (
        "import json, sys; from spinney.cli.options import load_structlog; load_structlog();"
        f"import {', '.join(modules)}; print(json.dumps([n for n in {names!r} if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found
