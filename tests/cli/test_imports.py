"""Commands that only compute do not wait for what only connections and servers need."""

import subprocess
import sys

_HEAVY = ("aiohttp", "cryptography", "jsonschema_rs", "spinney.kube.http", "spinney.server.server")


def test_a_snapshot_is_judged_without_an_http_stack() -> None:
    """What ``why`` and ``simulate`` import for a file has neither HTTP nor TLS in it, and no API server."""
    modules = "spinney.cli.bodies.why, spinney.cli.bodies.simulate, spinney.sim.snapshots.files"
    script = f"import sys, {modules}; print([name for name in {_HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
