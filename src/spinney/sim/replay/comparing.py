"""Several replays side by side: each configuration over the same seeds, every figure with how sure one can be of it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

from spinney.sim.replay.figures import Figures, JobTimes, Times

_T_95: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t for 95 % with 1 to 9 degrees of freedom."""
_NORMAL_95: Final = 1.959964


@dataclass(frozen=True)
class ReplayRun:
    """One replay: under which configuration, from which seed, and what it came to."""

    config: str
    seed: int | None
    figures: Figures


@dataclass(frozen=True)
class Estimate:
    """A figure over seeds: its mean, and how far the true mean may be off with 95 % confidence."""

    mean: float
    margin: float = 0.0
    seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Estimate from one value per seed; a seed that has none (nan) does not count."""
        values = [value for value in values if not math.isnan(value)]
        count = len(values)
        if count < 2:
            return cls(values[0] if values else math.nan)
        return cls(fmean(values), _t_95(count - 1) * stdev(values) / math.sqrt(count), count)

    def __str__(self) -> str:
        shown = _shown(self.mean)
        return f"{shown} ±{_shown(self.margin)}" if self.seeds > 1 else shown


def _t_95(freedom: int) -> float:
    """Return Student's t for 95 %; beyond the table by its expansion about the normal distribution, right to 0.001."""
    if freedom <= len(_T_95):
        return _T_95[freedom - 1]
    z = _NORMAL_95
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@dataclass(frozen=True)
class Line:
    """One figure of every configuration."""

    name: str
    estimates: Mapping[str, Estimate]


def _known(value: float | None) -> float:
    return math.nan if value is None else value


_FIGURES: Final[Mapping[str, Callable[[Figures], float]]] = {
    "jobs started": lambda each: each.started,
    "jobs that waited": lambda each: each.waited,
    "GPUs allocated, % (at the last submission)": lambda each: each.allocated,
    "GPUs unallocated (at the last submission)": lambda each: each.unallocated_gpus,
    "GPUs lost to fragmentation, %": lambda each: each.fragmentation,
    "GPUs in use over time, %": lambda each: each.used,
    "nodes in use, mean": lambda each: each.nodes_in_use,
    "nodes in use, peak": lambda each: each.most_nodes_in_use,
    "evictions": lambda each: each.evictions,
    "job failures by nodes": lambda each: each.failures,
    "GPU hours lost": lambda each: each.lost_gpu_hours,
    "fairness between queues (1 is best)": lambda each: _known(each.fairness),
    "slowdown, mean": lambda each: _known(each.everybody.slowdown),
    "cycles": lambda each: each.cycles,
    "cycle, mean ms": lambda each: 1000 * each.cycle_seconds.mean,
    "cycle, p99 ms": lambda each: 1000 * each.cycle_seconds.p99,
    "pods placed per second of cycles": lambda each: each.pods_per_second,
    "seconds for the replay": lambda each: each.seconds,
}


def figure_lines(runs: Sequence[ReplayRun]) -> Iterator[Line]:
    """Yield the figures that are one number each."""
    for name, read in _FIGURES.items():
        yield Line(name, {config: Estimate.of([read(each) for each in found]) for config, found in _by_config(runs)})


@dataclass(frozen=True)
class GroupLine:
    """How a group of jobs fared under one configuration: an estimate for each of :data:`GROUP_COLUMNS`."""

    name: str
    config: str
    estimates: tuple[Estimate, ...]


GROUP_COLUMNS: Final[Mapping[str, Callable[[JobTimes], float]]] = {
    "jobs": lambda group: group.jobs,
    "never started": lambda group: group.never_started,
    "wait mean s": lambda group: _of_some(group.wait, group.wait.mean),
    "p50": lambda group: _of_some(group.wait, group.wait.p50),
    "p99": lambda group: _of_some(group.wait, group.wait.p99),
    "completion mean s": lambda group: _of_some(group.completion, group.completion.mean),
    "p50 ": lambda group: _of_some(group.completion, group.completion.p50),
    "p99 ": lambda group: _of_some(group.completion, group.completion.p99),
    "slowdown": lambda group: _known(group.slowdown),
}


def _of_some(times: Times, value: float) -> float:
    """Return a figure of some times; there is none where there are none."""
    return value if times.jobs else math.nan


def group_lines(runs: Sequence[ReplayRun], groups: Callable[[Figures], Mapping[str, JobTimes]]) -> Iterator[GroupLine]:
    """Yield how groups of jobs fared, configuration by configuration."""
    for name in dict.fromkeys(name for run in runs for name in groups(run.figures)):
        for config, found in _by_config(runs):
            here = [groups(each)[name] for each in found if name in groups(each)]
            estimates = tuple(Estimate.of([read(group) for group in here]) for read in GROUP_COLUMNS.values())
            yield GroupLine(name or "others", config, estimates)


def _by_config(runs: Sequence[ReplayRun]) -> Iterator[tuple[str, list[Figures]]]:
    for config in dict.fromkeys(run.config for run in runs):
        yield config, [run.figures for run in runs if run.config == config]


def _shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}"
