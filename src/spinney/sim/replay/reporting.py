"""A comparison in one call, for notebooks and scripts: a trace, some configurations, and a report that draws itself."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.scheduler.config import SchedulerConfig
from spinney.sim.quiet import warnings_only
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.comparing import ReplayRun, figure_lines
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.page import report_of
from spinney.sim.replay.part import suited
from spinney.sim.replay.pools import Replay
from spinney.sim.replay.trace import Trace


class WrongPlacement(AssertionError):
    """A replay put a pod where it does not fit; the text says which and where."""


@dataclass(frozen=True, repr=False)
class Report:
    """What replays of one trace came to. In a notebook it shows as what ``spinney replay -o html`` writes."""

    trace: Trace
    runs: tuple[ReplayRun, ...]

    def figure(self, name: str) -> dict[str, float]:
        """Return one figure by configuration, the mean over seeds; the names are those of the report."""
        lines = {line.name: line for line in figure_lines(self.runs)}
        if name not in lines:
            raise KeyError(f"there is no figure {name!r}; there are {', '.join(lines)}")
        return {config: estimate.mean for config, estimate in lines[name].estimates.items()}

    def __repr__(self) -> str:
        """Return what it is about: all that is in it is megabytes."""
        names = ", ".join(dict.fromkeys(run.config for run in self.runs))
        return f"<Report of {self.trace.name!r}: {len(self.trace.jobs)} jobs, by {names}>"

    def _repr_html_(self) -> str:
        """Return the report as a part of a page that has a style of its own."""
        return report_of(self.trace.name, self.trace.notes, self.runs)


def compare(trace: Trace, configs: Mapping[str, SchedulerConfig], *, seeds: Sequence[int] = (0,)) -> Report:
    """Replay a trace under each configuration; raises :class:`WrongPlacement` if a placement does not hold."""
    warnings_only()
    runs: list[ReplayRun] = []
    for seed in seeds:
        for name, config in configs.items():
            history = Replay(trace, suited(config, trace), seed=seed, stopwatch=time.process_time).run()
            if problems := problems_of(trace, history):
                raise WrongPlacement(problems[0])
            runs.append(ReplayRun(name, seed, figures_of(trace, history)))
    return Report(trace, tuple(runs))
