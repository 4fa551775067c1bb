"""What a command costs before it does anything, and how soon an embedded cluster is ready.

``--help`` of every command is measured in turns with ``python -c pass``, so that a busy machine slows both alike; the
figure is the median of CPU time, and the ratio to the bare interpreter. The target is 150 ms of help on a machine where
the bare interpreter takes 20 ms: a ratio of 7.5. What commands import before they show anything is measured likewise.
``spinney up`` is measured from its start to its greeting.
"""

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bytecode import compile_ahead
from spinney.cli import COMMANDS

TARGET = 7.5
READY_TARGET = 2.0
SPINNEY = [sys.executable, "-c", "from spinney.cli import main; main(prog_name='spinney')"]
_BARE = [sys.executable, "-c", "pass"]
_BODIES = ("why", "queues", "simulate", "up")
"""Commands that compute: what they import is most of what a user waits for."""


def main() -> int:
    """Measure, print, and return 1 if the target for help is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ups", type=int, default=3, help="how often an embedded cluster is started; 0 leaves it out")
    options = parser.parse_args()
    compile_ours()
    commands = ["", *sorted(COMMANDS)]
    bare: list[float] = []
    taken: dict[str, list[float]] = {command: [] for command in commands}
    for _ in range(options.turns):
        for command in commands:
            bare.append(cpu_seconds(_BARE))
            taken[command].append(cpu_seconds([*SPINNEY, *filter(None, [command]), "--help"]))
    floor = statistics.median(bare)
    print(f"{'python -c pass':24} {floor * 1000:7.1f} ms CPU")
    worst = 0.0
    for command, seconds in taken.items():
        median = statistics.median(seconds)
        worst = max(worst, median / floor)
        print(f"{f'spinney {command} --help':24} {median * 1000:7.1f} ms CPU  {median / floor:5.1f} x")
    print(f"help: at most {worst:.1f} x the bare interpreter (target {TARGET:g})")
    imports: dict[str, list[float]] = {body: [] for body in _BODIES}
    for _ in range(options.turns):
        for body in _BODIES:
            imports[body].append(cpu_seconds([sys.executable, "-c", f"import spinney.cli.bodies.{body}"]))
    for body, seconds in imports.items():
        median = statistics.median(seconds)
        print(f"{f'imports of {body}':24} {median * 1000:7.1f} ms CPU  {median / floor:5.1f} x")
    for shape in ("8x8", "32x8") if options.ups else ():
        times = [until_ready(shape) for _ in range(options.ups)]
        wall, cpu = min(each[0] for each in times), min(each[1] for each in times)
        print(f"spinney up --nodes {shape}: ready after {wall:.2f} s, {cpu:.2f} s CPU (target {READY_TARGET:g} s)")
    return int(worst > TARGET)


def compile_ours() -> None:
    """Have everything compiled that the measured commands import."""
    compile_ahead(*(f"spinney.cli.bodies.{body}" for body in (*_BODIES, "apply")))


def cpu_seconds(command: list[str]) -> float:
    """Run a command and return the CPU time it took, of user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def until_ready(shape: str) -> tuple[float, float]:
    """Start an embedded cluster, and return how long it took to be ready, in time and CPU time."""
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = str(Path(directory) / "kubeconfig")
        began = time.perf_counter()
        process = subprocess.Popen(
            [*SPINNEY, "up", "--nodes", shape, "--kubeconfig", kubeconfig], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "is up at" in line:
                break
        wall = time.perf_counter() - began
        ticks = sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        process.send_signal(signal.SIGINT)
        process.communicate()
    return wall, ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
