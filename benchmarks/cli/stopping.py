"""How long an embedded cluster takes to have 9 000 pods running on 1 000 nodes, and to stop on Ctrl-C.

``python -m benchmarks.cli.stopping`` starts ``spinney up``, applies one PodCliqueSet, waits until all its pods run,
sends SIGINT and measures time and CPU time until the process has ended. The targets are 60 s until all pods run, and
2 s until the end.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.cli.__main__ import SPINNEY

RUNNING_TARGET, TARGET = 60.0, 2.0


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=9000)
    parser.add_argument("--size", type=int, default=1000, help="pods of a gang")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig, manifest = Path(directory) / "kubeconfig", Path(directory) / "set.json"
        manifest.write_text(json.dumps(a_set(options.pods, options.size)))
        up = [*SPINNEY, "up", "--nodes", f"{options.nodes}x16", "--kubeconfig", str(kubeconfig)]
        process = subprocess.Popen(up, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if "is up at" in line:
                break
        began = time.perf_counter()
        apply = [*SPINNEY, "apply", "-f", str(manifest), "--wait", "--timeout", "30m", "--kubeconfig", str(kubeconfig)]
        subprocess.run(apply, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ran = time.perf_counter() - began
        print(f"{options.pods} pods run after {ran:.1f} s (target {RUNNING_TARGET:g} s)")
        before, asked = cpu_seconds(process.pid), time.perf_counter()
        process.send_signal(signal.SIGINT)
        earlier = children_seconds()
        _, said = process.communicate()
        taken, cpu = time.perf_counter() - asked, children_seconds() - earlier - before
    print(said.strip())
    print(f"stopped after {taken:.2f} s, {cpu:.2f} s CPU (target {TARGET:g} s); {before:.1f} s CPU before")
    return int(taken > TARGET or ran > RUNNING_TARGET)


def a_set(pods: int, size: int = 1000) -> dict[str, object]:
    """Return a PodCliqueSet of so many pods of one GPU, in gangs of this size."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": size, "podSpec": {"containers": [container]}}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"replicas": pods // size, "template": {"cliques": [clique]}},
    }


def children_seconds() -> float:
    """Return the CPU time of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
