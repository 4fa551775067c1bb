"""Who waits on Philly: reservation and backfill through the production scheduler, beside simple policies.

Each layout is replayed with run times that are known, off by up to a factor of two, and not known; in *shared* also
with reclaim, so that queues take back what they are guaranteed. Forecasts of starts are judged. The simple policies
are simulated on the same jobs (:mod:`benchmarks.traces.anchors`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.traces.anchors import Policy, waits
from benchmarks.traces.replaying import replayed, shown
from benchmarks.traces.srtf import srtf_waits
from benchmarks.traces.tables import Table
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.plugins.backfill.memory import Memory
from spinney.sim.replay import Trace
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.formats.philly import Layout, read_philly
from spinney.sim.replay.run_times import stating

POLICIES: Final[tuple[Policy, ...]] = ("fifo", "skip", "easy")
ARGUMENTS: Final = {"shortestFirst": "true", "minPods": "2"}
_ALLOCATE: Final = ("allocate",)
_LARGE: Final = 8


class Experiment(NamedTuple):
    """A layout, the days from which its jobs are, and the seconds between cycles (0: a cycle at each event)."""

    layout: Layout
    begin: str
    until: str
    every: float

    @property
    def name(self) -> str:
        """Return the name of its table."""
        return f"waiting-{self.layout}-{self.begin[:7]}"


class Run(NamedTuple):
    """What jobs state, off by up to a factor (0: nothing), what the scheduler may do, and when jobs give way."""

    name: str
    factor: float
    actions: tuple[str, ...] = _ALLOCATE
    give_way: str = "0"
    across_queues: bool = False
    one_queue: bool = False
    """All jobs are in one queue, as for the simple policies: nobody is guaranteed anything."""


EXPERIMENTS: Final = (
    Experiment("shared", "2017-10-01", "2017-11-01", 120.0),
    Experiment("shared", "2017-09-01", "2017-10-01", 120.0),
    Experiment("half", "2017-10-01", "2017-11-01", 0.0),
    Experiment("full", "2017-10-01", "2017-11-01", 0.0),
)
RUNS: Final = (Run("known", 1.0), Run("off by up to 2", 2.0), Run("not known", 0.0))
GIVING_WAY: Final = Run("known, giving way", 1.0, ("allocate", "preempt"), "4")
ACROSS_QUEUES: Final = Run("known, giving way across queues", 1.0, ("allocate", "preempt"), "4", across_queues=True)
ONE_QUEUE: Final = Run("known, giving way in one queue", 1.0, ("allocate", "preempt"), "4", one_queue=True)
RECLAIM: Final = Run("not known, with reclaim", 0.0, ("allocate", "reclaim"))
RUNS_OF: Final[Mapping[Layout, Sequence[Run]]] = {
    "full": (*RUNS, GIVING_WAY),
    "half": (*RUNS, GIVING_WAY),
    "shared": (*RUNS, GIVING_WAY, ACROSS_QUEUES, ONE_QUEUE, RECLAIM),
}


def measure(directory: Path, experiments: Sequence[Experiment], runs: Sequence[str]) -> Iterator[Table]:
    """Replay each experiment with what jobs may state, and judge waits and forecasts; ``runs`` names those wanted."""
    path = next(directory.glob("philly_2*.csv*"))
    for experiment in experiments:
        trace = read_philly(path, None, layout=experiment.layout, begin=experiment.begin, until=experiment.until)
        table = _table(experiment, trace)
        columns: dict[str, list[float]] = {}
        for policy in POLICIES:
            columns[policy] = waits(trace, policy)
            used = "known" if policy == "easy" else "not used"
            table.add(policy, used, *_figures(trace, columns[policy]), "", "", "")
        columns["srtf"] = srtf_waits(trace)
        table.add("srtf", "known", *_figures(trace, columns["srtf"]), "", "", "")
        if experiment.layout == "shared":
            columns["own quarter: fifo"] = waits(_quartered(trace), "fifo")
            columns["own quarter: easy"] = waits(_quartered(trace), "easy")
        for run in RUNS_OF[experiment.layout]:
            if runs and run.name not in runs:
                continue
            stated = stating(trace, run.factor) if run.factor else trace
            came = _replayed(_in_one_queue(stated) if run.one_queue else stated, experiment, run)
            columns[run.name] = came.waits
            lost = f"{came.lost_gpu_hours:,.0f}" if run.actions != _ALLOCATE else ""
            table.add(
                "**backfill**", run.name, *_figures(trace, came.waits), came.coverage, lost, f"{came.seconds:.0f}"
            )
        yield table
        yield _by_cluster(experiment, trace, columns)


def _table(experiment: Experiment, trace: Trace) -> Table:
    pace = f"a cycle every {experiment.every:g} s" if experiment.every else "a cycle at each event"
    return Table(
        experiment.name,
        f"Philly, {experiment.begin} to {experiment.until}, *{experiment.layout}*: {len(trace.jobs):,} jobs, "
        f"{len(trace.machines)} nodes. `fifo`, `skip`, `easy` and `srtf` (free preemption and migration) by "
        f"small event simulators; `backfill` by the scheduler, {pace}.",
        [
            "policy",
            "run times",
            "mean wait s",
            "mean above 8 GPUs",
            "p99 above 8",
            "starts inside 80 %",
            "GPU hours lost",
            "CPU s",
        ],
    )


def _by_cluster(experiment: Experiment, trace: Trace, columns: Mapping[str, Sequence[float]]) -> Table:
    """Return the mean wait of each virtual cluster."""
    table = Table(
        f"{experiment.name}-clusters",
        "The same by virtual cluster: mean wait in seconds.",
        ["virtual cluster", "jobs", *columns],
    )
    for queue in dict.fromkeys(job.queue for job in trace.jobs):
        places = [place for place, job in enumerate(trace.jobs) if job.queue == queue]
        means = (math.fsum(column[place] for place in places) / len(places) for column in columns.values())
        table.add(queue, f"{len(places):,}", *(f"{mean:,.0f}" for mean in means))
    return table


def _quartered(trace: Trace) -> Trace:
    """Return the shared pool cut up: each queue has the nodes that it is guaranteed, and no others."""
    machines = tuple(replace(machine, pool=machine.name.split("-")[0]) for machine in trace.machines)
    jobs = tuple(replace(job, ask=replace(job.ask, pool=job.queue)) for job in trace.jobs)
    return replace(trace, machines=machines, jobs=jobs)


def _in_one_queue(trace: Trace) -> Trace:
    """Return a trace without queues."""
    return replace(trace, jobs=tuple(replace(job, queue="default") for job in trace.jobs), quotas={})


class Replayed(NamedTuple):
    """The wait of each job, how many starts lay in the interval that was told, what evictions undid, what it took."""

    waits: list[float]
    coverage: str
    lost_gpu_hours: float
    seconds: float


def _replayed(trace: Trace, experiment: Experiment, run: Run) -> Replayed:
    kept: dict[int, Memory] = {}

    class Keeping(Plugin):
        """Holds on to what the scheduler of each pool remembers."""

        name = "keeping"

        def on_session_open(self, session: Session) -> None:
            memory = session.memory.get("backfill")
            if isinstance(memory, Memory):
                kept[id(memory)] = memory

    registry = default_registry()
    arguments = {**ARGUMENTS, "giveWay": run.give_way, "giveWayAcrossQueues": str(run.across_queues).lower()}
    registry.register(Keeping.name, Keeping)
    plugins = (*SchedulerConfig().plugins, PluginOption("backfill", arguments=arguments), PluginOption(Keeping.name))
    history = replayed(
        trace,
        SchedulerConfig(plugins=plugins, actions=run.actions),
        registry=registry,
        every=experiment.every,
        progress=shown(f"{experiment.name}, {run.name}"),
    )
    ends = {event.job: event.at for event in history.events if event.what == "ended"}
    inside = sum(memory.forecasts.inside for memory in kept.values())
    judged = sum(memory.forecasts.judged for memory in kept.values())
    coverage = f"{100 * inside / judged:.1f} % of {judged:,}" if judged else "none told"
    found = [ends[number] - job.submitted - (job.duration or 0.0) for number, job in enumerate(trace.jobs)]
    return Replayed(found, coverage, figures_of(trace, history).lost_gpu_hours, history.seconds)


def _figures(trace: Trace, found: Sequence[float]) -> tuple[str, str, str]:
    large = sorted(wait for wait, job in zip(found, trace.jobs, strict=True) if job.pods * job.ask.gpus > _LARGE)
    mean = math.fsum(found) / max(len(found), 1)
    p99 = large[math.ceil(0.99 * len(large)) - 1] if large else 0.0
    return f"{mean:,.0f}", f"{math.fsum(large) / max(len(large), 1):,.0f}", f"{p99:,.0f}"
