"""Who waits on Philly: reservation and backfill through the production scheduler, beside simple policies.

Each layout is replayed with run times that are known, off by up to a factor of two, and not known; and forecasts of
starts are judged. The simple policies are simulated on the same jobs (:mod:`benchmarks.traces.anchors`).
"""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.traces.anchors import Policy, waits
from benchmarks.traces.tables import Table
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.plugins.backfill.memory import Memory
from spinney.sim.replay import Replay, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.engine import suited
from spinney.sim.replay.formats.philly import Layout, read_philly
from spinney.sim.replay.run_times import stating

POLICIES: Final[tuple[Policy, ...]] = ("fifo", "skip", "easy")
ARGUMENTS: Final = {"depth": "4", "shortestFirst": "true", "minPods": "2"}
RUNS: Final = (("known", 1.0), ("off by up to 2", 2.0), ("not known", 0.0))
_LARGE: Final = 8


def measure(directory: Path, layouts: Sequence[Layout], begin: str, until: str, every: float) -> Iterator[Table]:
    """Replay each layout with what jobs may state, and judge waits and forecasts."""
    path = next(directory.glob("philly_2*.csv*"))
    for layout in layouts:
        trace = read_philly(path, None, layout=layout, begin=begin, until=until)
        pace = f"a cycle every {every:g} s" if every else "a cycle at each event"
        table = Table(
            f"Philly, {begin} to {until}, *{layout}*: {len(trace.jobs):,} jobs, {len(trace.machines)} nodes. `fifo`, "
            f"`skip` and `easy` by a small event simulator; `backfill` by the scheduler, {pace}, nothing evicted.",
            [
                "policy",
                "run times",
                "mean wait s",
                "mean above 8 GPUs",
                "p99 above 8",
                "starts inside 80 %",
                "CPU s",
            ],
        )
        for policy in POLICIES:
            used = "known" if policy == "easy" else "not used"
            table.add(policy, used, *_figures(trace, waits(trace, policy)), "", "")
        for name, factor in RUNS:
            stated = stating(trace, factor) if factor else trace
            found, coverage, seconds = _replayed(stated, every)
            table.add("**backfill**", name, *_figures(trace, found), coverage, f"{seconds:.0f}")
        yield table


def _replayed(trace: Trace, every: float) -> tuple[list[float], str, float]:
    """Return the waits of a replay, how many starts lay in the interval that was told, and what it took."""
    kept: dict[int, Memory] = {}

    class Keeping(Plugin):
        """Holds on to what the scheduler of each pool remembers."""

        name = "keeping"

        def on_session_open(self, session: Session) -> None:
            memory = session.memory.get("backfill")
            if isinstance(memory, Memory):
                kept[id(memory)] = memory

    registry = default_registry()
    registry.register(Keeping.name, Keeping)
    plugins = (*SchedulerConfig().plugins, PluginOption("backfill", arguments=ARGUMENTS), PluginOption(Keeping.name))
    config = suited(SchedulerConfig(plugins=plugins, actions=("allocate",)), trace)
    history = Replay(trace, config, registry=registry, every=every, stopwatch=time.process_time).run()
    if problems := problems_of(trace, history):
        raise SystemExit(problems[0])
    starts = {event.job: event.at for event in history.events if event.what == "started"}
    judged = [inside for memory in kept.values() for inside in memory.forecasts.judged]
    coverage = f"{100 * sum(judged) / len(judged):.1f} % of {len(judged)}" if judged else "none told"
    return [starts[number] - job.submitted for number, job in enumerate(trace.jobs)], coverage, history.seconds


def _figures(trace: Trace, found: Sequence[float]) -> tuple[str, str, str]:
    large = sorted(wait for wait, job in zip(found, trace.jobs, strict=True) if job.pods * job.ask.gpus > _LARGE)
    mean = math.fsum(found) / max(len(found), 1)
    p99 = large[math.ceil(0.99 * len(large)) - 1] if large else 0.0
    return f"{mean:,.0f}", f"{math.fsum(large) / max(len(large), 1):,.0f}", f"{p99:,.0f}"
