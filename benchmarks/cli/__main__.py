"""What a command costs before it does anything, and how soon an embedded cluster is ready.

``--help`` of every command is measured in turns with ``python -c pass``, so that a busy machine slows both alike; the
figure is the median of CPU time, and the ratio to the bare interpreter. The target is 150 ms of help on a machine where
the bare interpreter takes 20 ms: a ratio of 7.5. What commands import before they show anything is measured likewise.
``spinney up`` is measured from its start to its greeting.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time

from benchmarks.cli.embedded import BODIES, compile_ours, embedded
from benchmarks.load.processes import SPINNEY, cpu_seconds
from spinney.cli import COMMANDS

TARGET = 7.5
READY_TARGET = 2.0
_BARE = [sys.executable, "-c", "pass"]


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
            bare.append(seconds_of(_BARE))
            taken[command].append(seconds_of([*SPINNEY, *filter(None, [command]), "--help"]))
    floor = statistics.median(bare)
    print(f"{'python -c pass':24} {floor * 1000:7.1f} ms CPU")
    worst = 0.0
    for command, seconds in taken.items():
        median = statistics.median(seconds)
        worst = max(worst, median / floor)
        print(f"{f'spinney {command} --help':24} {median * 1000:7.1f} ms CPU  {median / floor:5.1f} x")
    print(f"help: at most {worst:.1f} x the bare interpreter (target {TARGET:g})")
    imports: dict[str, list[float]] = {body: [] for body in BODIES}
    for _ in range(options.turns):
        for body in BODIES:
            imports[body].append(seconds_of([sys.executable, "-c", f"import spinney.cli.bodies.{body}"]))
    for body, seconds in imports.items():
        median = statistics.median(seconds)
        print(f"{f'imports of {body}':24} {median * 1000:7.1f} ms CPU  {median / floor:5.1f} x")
    for shape in ("8x8", "32x8") if options.ups else ():
        times = [until_ready(shape) for _ in range(options.ups)]
        wall, cpu = min(each[0] for each in times), min(each[1] for each in times)
        print(f"spinney up --nodes {shape}: ready after {wall:.2f} s, {cpu:.2f} s CPU (target {READY_TARGET:g} s)")
    return int(worst > TARGET)


def seconds_of(command: list[str]) -> float:
    """Run a command and return the CPU time it took, of user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def until_ready(shape: str) -> tuple[float, float]:
    """Start an embedded cluster, and return how long it took to be ready, in time and CPU time."""
    began = time.perf_counter()
    with embedded(shape) as (process, _):
        return time.perf_counter() - began, cpu_seconds(process.pid)


if __name__ == "__main__":
    sys.exit(main())
