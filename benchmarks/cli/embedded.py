"""``spinney up`` and ``spinney apply`` as processes of their own, as users run them."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bytecode import compile_ahead
from benchmarks.load.processes import SPINNEY
from spinney.api.struct import JSON

BODIES = ("why", "queues", "simulate", "up")
"""Commands that compute: what they import is most of what a user waits for."""


def compile_ours() -> None:
    """Have everything compiled that the measured commands import."""
    compile_ahead(*(f"spinney.cli.bodies.{body}" for body in (*BODIES, "apply")))


@contextmanager
def embedded(shape: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run an embedded cluster for the time of the block, which begins when it serves; hand it out with its kubeconfig.

    What it says on standard error is there to be read.
    """
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        up = [*SPINNEY, "up", "--nodes", shape, "--kubeconfig", str(kubeconfig)]
        process = subprocess.Popen(up, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if "is up at" in line:
                break
        try:
            yield process, kubeconfig
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate()


def apply(workload: JSON, kubeconfig: Path, *options: str) -> None:
    """Apply a manifest with ``spinney apply``."""
    command = [*SPINNEY, "apply", "-f", "-", *options, "--kubeconfig", str(kubeconfig)]
    subprocess.run(command, input=json.dumps(workload), check=True, text=True, capture_output=True)


def a_set(gangs: int, cliques: int, pods: int) -> JSON:
    """Return a PodCliqueSet of so many gangs, each of so many cliques of so many pods of one GPU."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"replicas": pods, "podSpec": {"containers": [container]}}
    templates = [{"name": f"w{n}", "spec": {"roleName": f"w{n}", **spec}} for n in range(cliques)]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"replicas": gangs, "template": {"cliques": templates}},
    }
