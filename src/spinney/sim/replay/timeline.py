"""A replay as it went, for drawing it: machines, jobs, and what happened to each when.

Compact, for a replay has hundreds of thousands of events: a job and a machine are named once and then meant by their
place in the list.
"""

import msgspec

from spinney.sim.replay.history import History, JobHappening
from spinney.sim.replay.trace import Machine, Trace


class MachineLine(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A machine: its GPUs, and its domain of each level."""

    name: str
    gpus: int
    path: tuple[str, ...] = ()


class JobLine(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A job, and the GPUs that each of its pods holds; what shares a GPU counts as one."""

    name: str
    queue: str
    gpus: int


class EventLine(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What happened to a job; where it started, the place of each pod's machine."""

    at: float
    what: str
    job: int
    machines: tuple[int, ...] = ()


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A replay from its first event to its last."""

    levels: tuple[str, ...]
    machines: tuple[MachineLine, ...]
    jobs: tuple[JobLine, ...]
    events: tuple[EventLine, ...]


def timeline_of(trace: Trace, history: History) -> Timeline:
    """Return what happened in a replay of a trace."""
    places = {machine.name: place for place, machine in enumerate(trace.machines)}
    return Timeline(
        levels=trace.levels,
        machines=tuple(_machine(machine, trace.levels) for machine in trace.machines),
        jobs=tuple(JobLine(name=job.name, queue=job.queue, gpus=job.ask.gpus) for job in trace.jobs),
        events=tuple(_event(event, places) for event in history.events),
    )


def _machine(machine: Machine, levels: tuple[str, ...]) -> MachineLine:
    path = tuple(machine.labels.get(level, "") for level in levels)
    return MachineLine(name=machine.name, gpus=machine.gpus, path=path)


def _event(event: JobHappening, places: dict[str, int]) -> EventLine:
    machines = tuple(places[node] for node in event.nodes) if event.what == "started" else ()
    return EventLine(at=round(event.at, 3), what=event.what, job=event.job, machines=machines)
