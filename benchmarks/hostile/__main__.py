"""What objects cost that are valid and meant badly: time and memory of both schedulers.

    python -m benchmarks.hostile [--only selectors,sub-groups] [--scale 1.0] [--nodes 200]
    python -m benchmarks.hostile --coscheduler

One tenant creates a hundred thousand pods that have nothing in common (node selectors, labels, tolerations, names of
resources), a gang of fifty thousand pods, a PodGroup of ten thousand sub-groups, a topology of a thousand levels, four
thousand rules about everybody's pods, as many queues, two thousand priority classes, composites inside a composite,
claims that contradict themselves.
Beside it waits one ordinary gang. A row says how much processor time it took to take the objects in, to run the first
cycle and one after it in which nothing is new, what the objects and the cycles held at most, and whether the ordinary
gang was placed. The coscheduler has no cycles over all pods: there the second figure is the time for all pods, and the
third the longest time for one. Each row is measured in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import process_time

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.hostile.coscheduler import COSCHEDULER, decided
from benchmarks.hostile.objects import SCENARIOS, an_ordinary_gang, nodes
from benchmarks.load.processes import peak_memory
from spinney.scheduler import Inventory, Scheduler, SchedulerConfig


def measured(scenario: str, scale: float, count: int) -> dict[str, object]:
    """Return the figures of one scenario, in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    inventory = Inventory()
    objects: Callable[[float], Iterator[object]] = SCENARIOS[scenario]
    for each in nodes(count, scenario):
        inventory.apply(each)  # type: ignore[arg-type]
    before = peak_memory(os.getpid())
    started = process_time()
    for each in objects(scale):
        inventory.apply(each)  # type: ignore[arg-type]
    for each in an_ordinary_gang():
        inventory.apply(each)  # type: ignore[arg-type]
    taken_in = process_time() - started
    scheduler = Scheduler(SchedulerConfig(), inventory)
    started = process_time()
    first = scheduler.run_cycle()
    cycle = process_time() - started
    started = process_time()
    scheduler.run_cycle()
    again = process_time() - started
    held = peak_memory(os.getpid()) - before
    reasons = sorted({refused.errors[0].reason for refused in first.unschedulable})
    return {
        "taken_in": taken_in,
        "first": cycle,
        "again": again,
        "mebibytes": round(held),
        "bound": len(first.binds),
        "refused": len(first.unschedulable),
        "reasons": reasons[:3],
        "ordinary": sum(bind.gang.name == "ordinary" for bind in first.binds) == 2,
    }


def coscheduled(scenario: str, scale: float, count: int) -> dict[str, object]:
    """Return the figures of one scenario for the coscheduler, in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    before = peak_memory(os.getpid())
    found = decided(scenario, scale, count)
    held = peak_memory(os.getpid()) - before
    return {**found, "again": found["longest"], "mebibytes": round(held)}


def main() -> None:
    """Measure every scenario and print the table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    options.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, comma-separated")
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--nodes", type=int, default=200)
    options.add_argument("--coscheduler", action="store_true", help="the coscheduler instead of the session scheduler")
    options.add_argument("--one", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one is not None:
        measure = coscheduled if chosen.coscheduler else measured
        sys.stdout.write(json.dumps(measure(chosen.one, chosen.scale, chosen.nodes)))
        return
    times = ("all pods", "longest for one") if chosen.coscheduler else ("first cycle", "next cycle")
    table = Table("objects", "taken in", *times, "memory", "bound", "refused", "ordinary gang")
    for scenario in chosen.only.split(","):
        if chosen.coscheduler and scenario not in COSCHEDULER:
            continue
        command = [sys.executable, "-m", "benchmarks.hostile", "--one", scenario]
        command += ["--scale", str(chosen.scale), "--nodes", str(chosen.nodes)]
        command += ["--coscheduler"] if chosen.coscheduler else []
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        table.add_row(
            scenario,
            f"{found['taken_in']:.1f} s",
            f"{found['first']:.2f} s",
            f"{found['again']:.2f} s",
            f"{found['mebibytes']} MiB",
            str(found["bound"]),
            f"{found['refused']} {', '.join(found['reasons'])}",
            "placed" if found["ordinary"] else "WAITS",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
