"""Philly's October: waits through the production scheduler, beside the anchors of a small event simulator.

The anchors (``fifo``, ``skip``, ``easy`` and others) are those of the experiment's definition: best-fit packing, and no
queues but the order of submission.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.traces.tables import Table
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import Replay
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.engine import suited
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.formats.philly import Layout, read_philly

ANCHORS: Final[dict[Layout, dict[str, tuple[float, ...]]]] = {
    "full": {
        "fifo": (17.93, 135, 525, 5486, 11508, 1.35),
        "skip": (17.93, 90, 382, 5153, 11464, 1.24),
        "easy": (17.93, 91, 395, 5150, 11464, 1.24),
    },
    "half": {
        "fifo": (35.64, 2810, 74275, 60871, 14183, 4.99),
        "skip": (35.70, 1956, 45788, 111751, 13329, 2.98),
        "easy": (35.69, 2063, 47600, 57371, 13436, 2.96),
    },
    "shared": {
        "fifo": (71.18, 4650, 71205, 20744, 16024, 20.00),
        "skip": (71.30, 1100, 22228, 40514, 12473, 2.61),
        "easy": (71.51, 1076, 22130, 15446, 12450, 2.58),
    },
}
_COLUMNS: Final = [
    "used in the window %",
    "mean wait s",
    "p99",
    "mean above 8 GPUs",
    "mean completion s",
    "mean slowdown",
]


def measure(directory: Path, layouts: list[Layout]) -> Iterator[Table]:
    """Replay each layout with the default configuration."""
    path = next(directory.glob("philly_2*.csv*"))
    for layout in layouts:
        trace = read_philly(path, None, layout=layout, begin="2017-10-01", until="2017-11-01")
        history = Replay(trace, suited(SchedulerConfig(), trace), stopwatch=time.process_time).run()
        if problems := problems_of(trace, history):
            raise SystemExit(problems[0])
        found = figures_of(trace, history)
        table = Table(
            f"Philly, October 2017, *{layout}*: {found.jobs:,} jobs, {len(trace.machines)} nodes. Anchors by a small "
            f"event simulator; ours in {found.cycles:,} cycles of {1000 * found.cycle_seconds.mean:.2f} ms, "
            f"{found.seconds:.0f} s of processor time in all.",
            ["policy", *_COLUMNS],
        )
        for name, values in ANCHORS[layout].items():
            table.add(name, *(f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in values))
        everybody, large = found.everybody, found.by_size["above 8 GPUs"]
        table.add(
            "**Spinney, default**",
            f"{found.used:.2f}",
            f"{everybody.wait.mean:,.0f}",
            f"{everybody.wait.p99:,.0f}",
            f"{large.wait.mean:,.0f}",
            f"{everybody.completion.mean:,.0f}",
            f"{everybody.slowdown:.2f}",
        )
        yield table
