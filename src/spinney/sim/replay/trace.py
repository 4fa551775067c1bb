"""What a cluster was asked for, in one form for every kind of trace: machines, jobs, outages and the shares of queues.

A reader of another format is one function that returns a :class:`Trace`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

WHOLE: Final = 1000
"""Thousandths of a GPU."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: millicores, MiB and whole GPUs of one model; ``others`` are further resources by name."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str = ""
    pool: str = ""
    """Jobs that name a pool run only on its machines."""
    labels: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """What one pod asks for."""

    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """MiB."""
    gpus: int = 0
    milli: int = WHOLE
    """Thousandths of each GPU."""
    models: frozenset[str] = frozenset()
    """GPU models that will do; none named: any."""
    pool: str = ""
    others: tuple[tuple[str, int], ...] = ()
    most_per_node: int = 0
    """How many pods of the same application one node may hold; 0: any number."""

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of GPUs taken."""
        return self.gpus * self.milli


@dataclass(frozen=True, slots=True)
class Job:
    """Equal pods that start together or not at all, and run for ``duration`` from then on."""

    name: str
    submitted: float
    """Seconds since the trace began."""
    ask: Ask
    pods: int = 1
    duration: float | None = None
    """Seconds; ``None``: it never ends."""
    ends: float | None = None
    """When it is over, wherever it is by then, if the trace says so; ``duration`` counts from the start."""
    queue: str = "default"
    kind: str = ""
    """What reports put it under."""
    application: str = ""
    stated: float | None = None
    """How many seconds it says it will run; ``None``: it says nothing."""
    counted: bool = True
    """Whether waits of it are part of the report."""
    topology: str = ""
    """The node label whose value all pods must share; empty: none."""

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of GPUs of all pods."""
        return self.pods * self.ask.gpu_milli


@dataclass(frozen=True, slots=True)
class Outage:
    """A machine that is gone for a while, or closed."""

    machine: str
    begins: float
    ends: float | None = None

    def covers(self, moment: float) -> bool:
        """Tell whether a moment is in it."""
        return self.begins <= moment and (self.ends is None or moment < self.ends)


def united(outages: Iterable[Outage]) -> list[Outage]:
    """Return the same stretches of time without overlaps: a machine is back when the last outage of it is over."""
    found: list[Outage] = []
    lasting = (each for each in outages if each.ends is None or each.ends > each.begins)
    for each in sorted(lasting, key=lambda each: (each.machine, each.begins)):
        before = found[-1] if found and found[-1].machine == each.machine else None
        if before is None or (before.ends is not None and before.ends < each.begins):
            found.append(each)
        elif before.ends is not None:
            ends = max(before.ends, each.ends) if each.ends is not None else None
            found[-1] = replace(before, ends=ends)
    return found


@dataclass(frozen=True)
class Trace:
    """A cluster and what it was asked for, jobs in the order of their submission."""

    name: str
    machines: tuple[Machine, ...]
    jobs: tuple[Job, ...]
    outages: tuple[Outage, ...] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Guaranteed GPUs by queue; without any, nothing is divided."""
    levels: tuple[str, ...] = ()
    """Node labels that make up the topology, coarse to fine, where jobs must share a value of one."""
    offered_once: bool = False
    """A job that does not fit when it is submitted is forgotten."""
    window: tuple[float, float] | None = None
    """The stretch of time whose use is reported; the whole replay without one."""
    demand: tuple[tuple[Ask, int], ...] = ()
    """What is typical to ask for, with how often, where the trace defines that; else its jobs are."""
    notes: tuple[str, ...] = ()
    """What was left out or decided in reading."""
    closures: tuple[Outage, ...] = ()
    """When machines take no new pods; those on them run on."""

    @property
    def gpus(self) -> int:
        """Return the GPUs of all machines."""
        return sum(machine.gpus for machine in self.machines)

    def with_jobs(self, jobs: tuple[Job, ...]) -> "Trace":
        """Return the trace with other jobs."""
        return replace(self, jobs=jobs)
