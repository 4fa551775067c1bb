"""Replays whose placements hold, and how far one is, on the standard error: the longest take minutes."""

import sys
import time
from collections.abc import Callable
from typing import Any

from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import Progress, Replay, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import History
from spinney.sim.replay.part import suited


def replayed(
    trace: Trace,
    config: SchedulerConfig,
    *,
    check: Callable[[Trace, History], list[str]] = problems_of,
    **options: Any,
) -> History:
    """Replay a trace, in processor seconds; a placement that does not hold ends the benchmark."""
    history = Replay(trace, suited(config, trace), stopwatch=time.process_time, **options).run()
    if problems := check(trace, history):
        raise SystemExit(f"{trace.name}: {problems[0]}")
    return history


def shown(name: str) -> Callable[[Progress], None]:
    """Return who is told how far a replay is; every twentieth of its jobs is shown."""
    told = 0

    def show(progress: Progress) -> None:
        nonlocal told
        now = 20 * progress.submitted // max(progress.jobs, 1)
        if now > told:
            told = now
            line = f"{name}: {5 * now} % of {progress.jobs:,} jobs submitted, {progress.waiting:,} wait"
            print(line, file=sys.stderr, flush=True)

    return show
