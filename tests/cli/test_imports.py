"""Commands and processes do not wait at their start for what they may never need."""

import json
import subprocess
import sys
from collections.abc import Sequence

_HEAVY = ("aiohttp", "cryptography", "jsonschema_rs", "spinney.kube.http", "spinney.server.server")


def test_a_snapshot_is_judged_without_an_http_stack() -> None:
    """What ``why`` and ``simulate`` import for a file has neither HTTP nor TLS in it, and no API server."""
    modules = ("spinney.cli.bodies.why", "spinney.cli.bodies.simulate", "spinney.sim.snapshots.files")
    assert loaded_of(_HEAVY, modules) == []


def test_a_scheduler_starts_without_what_only_some_configurations_need() -> None:
    """Neither the library for streams, which is loaded beside the lists, nor grouper, coscheduler and web server."""
    heavy = ("aiohttp", "spinney.grouping", "spinney.coscheduling", "spinney.kube.serving")
    assert loaded_of(heavy, ("spinney.cli.bodies.scheduler",)) == []


def loaded_of(names: Sequence[str], modules: Sequence[str]) -> list[str]:
    """Return which of ``names`` a fresh interpreter has loaded after it has imported some modules."""
    script = f"import json, sys, {', '.join(modules)}; print(json.dumps([n for n in {names!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found
