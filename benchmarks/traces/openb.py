"""openb: GPUs given out at 130 % asked for, one pod at a time in the published order, beside the published policies."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.traces.replaying import replayed
from benchmarks.traces.tables import Table
from spinney.explain.amounts import counted
from spinney.scheduler.config import KAI_PLUGINS, PluginOption, SchedulerConfig
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.figures import Figures, figures_of
from spinney.sim.replay.formats.openb import read_openb
from spinney.sim.replay.formats.tables import rows_of
from spinney.sim.replay.trace import Job, Trace

PACKING = SchedulerConfig()
KAI = SchedulerConfig(plugins=tuple(PluginOption(name) for name in KAI_PLUGINS))
WHOLE_QUEUE = SchedulerConfig(
    plugins=(
        PluginOption("largestfirst"),
        *(
            PluginOption(each.name, {"learnFromWaiting": "true"}) if each.name == "packing" else each
            for each in SchedulerConfig().plugins
        ),
    )
)


def measure(directory: Path, seeds: list[int]) -> Iterator[Table]:
    """Replay every list there is."""
    known = published(directory)
    table = Table(
        "openb",
        "GPU allocation in % of 6,212 GPUs at 130 % asked for; mean ± standard deviation over "
        f"{len(seeds)} seeds. Pods one at a time in the published order; no moving, no retry, nobody left out "
        "who had room (checked). Published: *Beware of Fragmentation* (ATC'23).",
        [
            "pod list",
            "BestFit, published",
            "FGD, published",
            "Spinney",
            "fragmentation: FGD",
            "Spinney",
            "pods left out",
            "CPU s",
        ],
    )
    for path in sorted(directory.glob("openb_pods_*.csv*")):
        name = path.name.removeprefix("openb_pods_").split(".")[0]
        found = [run(read_openb(path, None, seed), PACKING) for seed in seeds]
        best, fgd = known.get((name, "BestFit")), known.get((name, "FGD"))
        table.add(
            name,
            spread([each[0] for each in best or []]),
            spread([each[0] for each in fgd or []]),
            f"**{spread([each.allocated for each in found])}**",
            spread([each[1] for each in fgd or []]),
            spread([each.fragmentation for each in found]),
            f"{fmean(each.jobs - each.started for each in found):,.0f}",
            f"{fmean(each.seconds for each in found):.1f}",
        )
    yield table


def measure_queue(directory: Path, seeds: list[int]) -> Iterator[Table]:
    """Let all pods wait at once."""
    table = Table(
        "queue",
        "The whole queue is there to choose from: all pods of openb default arrive at the same moment, in one cycle; "
        "still no moving. `largestfirst` orders jobs by size, and packing learns from those that wait. "
        f"Mean ± standard deviation over {counted(len(seeds), 'seed')}.",
        ["configuration", "GPU allocation %", "fragmentation %"],
    )
    path = next(directory.glob("openb_pods_default.csv*"))
    traces = [_at_once(read_openb(path, None, seed)) for seed in seeds]
    for name, config in (("packing", PACKING), ("largestfirst + packing", WHOLE_QUEUE)):
        found = [run(trace, config, check=False) for trace in traces]
        table.add(name, spread([each.allocated for each in found]), spread([each.fragmentation for each in found]))
    yield table


def _at_once(trace: Trace) -> Trace:
    return trace.with_jobs(tuple(Job(job.name, 0.0, job.ask, kind=job.kind) for job in trace.jobs))


def run(trace: Trace, config: SchedulerConfig, *, check: bool = True) -> Figures:
    """Replay an experiment and check every placement."""
    return figures_of(trace, replayed(trace, config, check=problems_of if check else lambda *_: []))


def published(directory: Path) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the published allocation and fragmentation of each seed, by list and policy."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    path = next(iter(directory.glob("openb_published.csv*")), None)
    for row in rows_of(path, "list", "policy") if path is not None else ():
        found.setdefault((row["list"], row["policy"]), []).append(
            (float(row["allocation"]), float(row["fragmentation"]))
        )
    return found


def spread(values: list[float]) -> str:
    """Return the mean with the standard deviation, if there are several."""
    if not values:
        return "-"
    return f"{fmean(values):.2f} ±{stdev(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"
