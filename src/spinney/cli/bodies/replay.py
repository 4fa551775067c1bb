"""``spinney replay``: a trace of a real cluster through the scheduler, on virtual time."""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Final

import click
import msgspec

from spinney.cli.running import in_one_line
from spinney.cli.settings.session import PluginText, contenders, session_policies
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import apart_from_plugins, columns, echo, print_data, progress
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.policies.faults import watching
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.comparing import GROUP_COLUMNS, ReplayRun, figure_lines, group_lines
from spinney.sim.replay.figures import Figures, JobTimes, figures_of
from spinney.sim.replay.formats.bounds import LONGEST
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.history import History
from spinney.sim.replay.page import page_of
from spinney.sim.replay.part import Progress, suited
from spinney.sim.replay.placements import write_placements
from spinney.sim.replay.pools import Replay
from spinney.sim.replay.reading import Wanted, is_part, read_trace
from spinney.sim.replay.run_times import stating, stating_nothing
from spinney.sim.replay.timeline import Timeline, timeline_of
from spinney.sim.replay.trace import Outage, Trace

_LARGEST_FACTOR: Final = 1000


def replay(
    *,
    trace: Path,
    nodes: Path | None,
    form: str | None,
    experiment: str | None,
    node_count: int | None,
    begin: str | None,
    until: str | None,
    configs: tuple[Path, ...],
    plugins: tuple[PluginText, ...],
    seeds: tuple[int, ...],
    every: float,
    run_times: str,
    failures: tuple[str, ...],
    speed: str,
    processes: int | None,
    placements: Path | None,
    timeline: bool,
    output: str,
) -> None:
    log_to_stderr()
    running = list(contenders(SchedulerConfig(), configs, plugins, session_policies(plugins)))
    chosen: Sequence[int | None] = seeds or (None,)
    if repeated := [seed for seed in set(seeds) if seeds.count(seed) > 1]:
        raise click.BadParameter(
            f"{repeated[0]} is given twice, and the same seed gives the same replay; give each once",
            param_hint="--seed",
        )
    if len({name for name, _, _ in running}) < len(running):
        raise click.BadParameter(
            "one file is given twice, and the same configuration gives the same replay; give each once",
            param_hint="--config",
        )
    if placements is not None and len(running) * len(chosen) > 1:
        raise click.BadParameter(
            "one replay has placements; give one configuration and one seed", param_hint="--placements"
        )
    if placements is not None:
        with in_one_line(InvalidTrace):
            belongs = is_part(placements, trace, form)
        _keep_inputs(placements, (nodes, *configs, *(path for path, _, _ in plugins)), belongs=belongs)
    outages = tuple(_outage(text) for text in failures)
    factor, pace = _factor(run_times), _pace(speed)
    alone = bool(plugins) or speed != "max"  # what is known to this process only stays in it
    if timeline and output != "json":
        raise click.BadParameter("only -o json has a timeline", param_hint="--timeline")
    runs: list[ReplayRun] = []
    timelines: list[Timeline] = []
    wrong: list[str] = []
    with (
        progress("replaying", steps=100 * len(running) * len(chosen)) as say,
        watching() as faults,
        apart_from_plugins(),
    ):
        for seed in chosen:
            wanted = Wanted(
                nodes=nodes, seed=seed, experiment=experiment, begin=begin, until=until, node_count=node_count
            )
            read = _read(trace, wanted, form, outages)
            if run_times == "none":
                read = stating_nothing(read)
            elif factor is not None:
                read = stating(read, factor, seed or 0)
            for name, config, registry in running:
                history = Replay(
                    read,
                    suited(config, read),
                    registry=registry if alone else None,
                    seed=seed or 0,
                    every=every,
                    stopwatch=time.process_time,
                    progress=_shown(say, name, pace),
                    processes=1 if alone else processes or len(os.sched_getaffinity(0)),
                ).run()
                runs.append(ReplayRun(name, seed, figures_of(read, history)))
                timelines += [timeline_of(read, history)] if timeline else []
                wrong += [f"{name}: {problem}" for problem in problems_of(read, history)]
    _print(read, runs, output, timelines)
    if placements is not None:
        _write_placements(placements, read, history)
    if faults:
        raise click.ClickException(
            "\n".join(["plugins failed, so the replay is not what you meant:", *map(str, faults)])
        )
    if wrong:
        raise click.ClickException("\n".join(["the placements do not hold:", *wrong[:20]]))


def _read(path: Path, wanted: Wanted, form: str | None, outages: tuple[Outage, ...]) -> Trace:
    with in_one_line(InvalidTrace):
        read = read_trace(path, wanted, form)
    known = {machine.name for machine in read.machines}
    for outage in outages:
        if outage.machine not in known:
            raise click.BadParameter(f"there is no node {outage.machine!r} in {path}", param_hint="--fail")
    return changed(read, outages=(*read.outages, *outages))


def _keep_inputs(placements: Path, inputs: Iterable[Path | None], *, belongs: bool) -> None:
    """Refuse to write over what is read: a file that belongs to the trace, another, or one in a directory."""
    for path in filter(None, inputs if placements.exists() else ()):
        belongs |= placements.samefile(path) or placements.resolve().parent == path.resolve()
    if belongs:
        raise click.BadParameter(
            f"{placements} is read by this replay, or by the next one of this trace; name another file",
            param_hint="--placements",
        )


def _write_placements(path: Path, trace: Trace, history: History) -> None:
    try:
        write_placements(path, trace, history)
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from error


def _factor(run_times: str) -> float | None:
    """Return by how much the run times that jobs state are off; ``None`` if they are not made of the truth."""
    if run_times in ("traced", "none"):
        return None
    try:
        factor = 1.0 if run_times == "known" else float(run_times)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor <= _LARGEST_FACTOR:
        raise click.BadParameter(
            f"found {run_times!r}, expected traced, none, known or a factor from 1 to {_LARGEST_FACTOR}",
            param_hint="--run-times",
        )
    return factor


def _shown(say: Callable[[str], None], name: str, pace: float | None) -> Callable[[Progress], None]:
    """Return what shows how far a replay is, and slows it down to a speed if one is wanted."""
    step, began, first = -1, time.monotonic(), 0.0

    def show(progress: Progress) -> None:
        nonlocal step, first
        if step < 0:
            first = progress.at
        if pace is not None:
            time.sleep(max((progress.at - first) / pace - (time.monotonic() - began), 0.0))
        percent = 100 * progress.submitted // max(progress.jobs, 1)
        while step < percent:
            step += 1
            say(
                f"{name}: day {progress.at / 86400:.1f}, {progress.submitted:,} submitted, {progress.waiting:,} waiting"
            )

    return show


def _pace(speed: str) -> float | None:
    if speed == "max":
        return None
    try:
        pace = float(speed)
    except ValueError:
        pace = 0.0
    if not 1 <= pace < math.inf:
        raise click.BadParameter(f"found {speed!r}, expected max or a number from 1 upwards", param_hint="--speed")
    return pace


def _outage(text: str) -> Outage:
    machine, _, when = text.rpartition("@")
    begins, _, lasting = when.partition("+")
    try:
        at = float(begins) * 3600
        outage = Outage(machine, at, at + float(lasting) * 3600 if lasting else None)
    except ValueError:
        outage = Outage(machine, math.nan)
    if not 0 <= outage.begins <= LONGEST or (outage.ends is not None and not outage.begins < outage.ends <= LONGEST):
        raise click.BadParameter(
            f"found {text!r}, expected a node and hours, such as node-7@24, or node-7@24+6 with more than 0 until it "
            "is back",
            param_hint="--fail",
        )
    return outage


_GROUPS: Final[Mapping[str, Callable[[Figures], Mapping[str, JobTimes]]]] = {
    "size": lambda figures: figures.by_size,
    "queue": lambda figures: figures.by_queue,
    "kind": lambda figures: figures.by_kind,
}


# -- printing ----------------------------------------------------------------------------------------------------------


def _many(count: int, noun: str) -> str:
    """Return ``1 node`` or ``1,200 nodes``: traces have so many that thousands are set apart."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _print(trace: Trace, runs: Sequence[ReplayRun], output: str, timelines: Sequence[Timeline]) -> None:
    jobs, nodes = _many(len(trace.jobs), "job"), _many(len(trace.machines), "node")
    title = f"{trace.name}: {jobs} on {nodes} with {_many(trace.gpus, 'GPU')}"
    if output == "json":
        found = [{"config": run.config, "seed": run.seed, "figures": msgspec.to_builtins(run.figures)} for run in runs]
        for run, timeline in zip(found, timelines, strict=False):  # without --timeline there are none
            run["timeline"] = msgspec.to_builtins(timeline)
        print_data({"trace": trace.name, "notes": trace.notes, "runs": found}, "json")
        return
    if output == "html":
        echo(page_of(title, trace.notes, runs))
        return
    echo(title)
    for note in trace.notes:
        echo(note)
    configs = list(dict.fromkeys(run.config for run in runs))
    rows = [[line.name, *(str(line.estimates.get(config, "-")) for config in configs)] for line in figure_lines(runs)]
    echo(columns(["FIGURE", *configs], rows))
    for name, groups in _GROUPS.items():
        if any(len(groups(run.figures)) > 1 for run in runs):
            echo()
            rows = [[line.name, line.config, *map(str, line.estimates)] for line in group_lines(runs, groups)]
            echo(columns([name.upper(), "CONFIGURATION", *(each.upper().strip() for each in GROUP_COLUMNS)], rows))
