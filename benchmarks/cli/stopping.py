"""How long an embedded cluster takes to have 9 000 pods running on 1 000 nodes, and to stop on Ctrl-C.

``python -m benchmarks.cli.stopping`` starts ``spinney up``, applies one PodCliqueSet, waits until all its pods run,
sends SIGINT and measures time and CPU time until the process has ended. The targets are 60 s until all pods run, and
2 s until the end. ``--size 9000`` makes one gang of them, ``--size 9`` a thousand. ``--after 5 15 25`` stops a cluster
at each of these moments instead, in seconds after the set was applied: while pods are created, while gates are removed,
while gangs are placed and bound.
"""

import argparse
import resource
import signal
import subprocess
import sys
import time

from benchmarks.cli.embedded import a_set, apply, compile_ours, embedded
from benchmarks.load.processes import cpu_seconds
from spinney.api.struct import JSON

RUNNING_TARGET, TARGET = 60.0, 2.0


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=9000)
    parser.add_argument("--size", type=int, default=1000, help="pods of a gang")
    parser.add_argument(
        "--after", type=float, nargs="+", metavar="SECONDS", help="stop in the middle, at these moments"
    )
    options = parser.parse_args()
    compile_ours()
    workload = a_set(options.pods // options.size, 1, options.size)
    if options.after:
        return int(max(stopped_after(seconds, options.nodes, workload) for seconds in options.after) > TARGET)
    with embedded(f"{options.nodes}x16") as (process, kubeconfig):
        began, before = time.perf_counter(), cpu_seconds(process.pid)
        apply(workload, kubeconfig, "--wait", "--timeout", "30m")
        ran, cpu = time.perf_counter() - began, cpu_seconds(process.pid) - before
        print(f"{options.pods} pods run after {ran:.1f} s, {cpu:.1f} s CPU (target {RUNNING_TARGET:g} s)")
        taken = stopped(process)
    return int(taken > TARGET or ran > RUNNING_TARGET)


def stopped_after(seconds: float, nodes: int, workload: JSON) -> float:
    """Return how long a cluster takes to stop that has had a set for so many seconds."""
    with embedded(f"{nodes}x16") as (process, kubeconfig):
        apply(workload, kubeconfig)
        time.sleep(seconds)
        print(f"{seconds:g} s after apply:", end=" ", flush=True)
        return stopped(process)


def stopped(process: subprocess.Popen[str]) -> float:
    """Send SIGINT, print what the process says and takes until it has ended, and return the time."""
    before, earlier, asked = cpu_seconds(process.pid), children_seconds(), time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    taken, cpu = time.perf_counter() - asked, children_seconds() - earlier - before
    print(said.strip())
    print(f"stopped after {taken:.2f} s, {cpu:.2f} s CPU (target {TARGET:g} s); {before:.1f} s CPU before", flush=True)
    return taken


def children_seconds() -> float:
    """Return the CPU time of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
