"""Philly's two months, *full*, with the default configuration: what the replay costs, pool by pool."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.traces.replaying import replayed
from benchmarks.traces.tables import Table
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.formats.philly import read_philly
from spinney.sim.replay.pools import parts_of

_PROCESSES: Final = 2


def measure(directory: Path) -> Iterator[Table]:
    """Replay every pool, and say how long two processes are busy that share the pools, the largest first."""
    began = time.process_time()
    trace = read_philly(next(directory.glob("philly_2*.csv*")), None)
    read = time.process_time() - began
    table = Table(
        "philly",
        f"Philly's two months, *full* ({len(trace.jobs):,} jobs in eleven pools, {len(trace.machines)} nodes), default "
        "configuration with all actions, a cycle at each event.",
        ["pool", "nodes", "jobs", "cycles", "mean wait s", "CPU s"],
    )
    busy = [0.0] * _PROCESSES
    rest = read
    for part in sorted(parts_of(trace), key=lambda each: -len(each.trace.jobs)):
        began = time.process_time()
        history = replayed(part.trace, SchedulerConfig())
        wait = figures_of(part.trace, history).everybody.wait.mean
        rest += time.process_time() - began - history.seconds
        busy[busy.index(min(busy))] += history.seconds
        table.add(
            part.trace.jobs[0].queue,
            len(part.trace.machines),
            f"{len(part.trace.jobs):,}",
            f"{len(history.cycle_seconds):,}",
            f"{wait:,.0f}",
            f"{history.seconds:.1f}",
        )
    table.add("all, one after the other", "", "", "", "", f"{sum(busy) + rest:.1f}")
    table.add(
        f"the busier of {_PROCESSES} processes, with reading and report", "", "", "", "", f"{max(busy) + rest:.1f}"
    )
    yield table
