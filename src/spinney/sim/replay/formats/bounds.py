"""What a trace must keep to for a replay to come to an end: names told apart, times a clock can show, sizes in reach.

Beyond it no cluster was ever asked: such a number comes from a damaged file, or from a unit that was mistaken.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.objects import pod_name
from spinney.sim.replay.trace import WHOLE, Job, Trace

YEARS: Final = 100
LONGEST: Final = YEARS * 365.25 * 86_400
"""Seconds from the beginning of a trace to any moment of it, and of any run."""
MOST_NODES: Final = 200_000
MOST_GPUS: Final = 2_000_000
"""GPUs of the whole cluster."""
MOST_PODS: Final = 200_000
"""Pods of one job."""


def check_size(nodes: int, gpus: int, where: str) -> None:
    """Refuse a cluster that is too large, before it is made; the :class:`InvalidTrace` begins with ``where``."""
    for found, most, what in ((nodes, MOST_NODES, "nodes"), (gpus, MOST_GPUS, "GPUs")):
        if found > most:
            raise InvalidTrace(f"{where} comes to {found:,} {what}, expected at most {most:,}")


def check_trace(trace: Trace, path: Path) -> None:
    """Refuse a trace that cannot be replayed as it stands; raises :class:`InvalidTrace`."""
    if not trace.machines:
        raise InvalidTrace(f"{path}: {trace.name} comes to no nodes, so nothing could run; expected at least one")
    if len({machine.name for machine in trace.machines}) < len(trace.machines):
        raise InvalidTrace(f"{path}: two nodes have the same name; expected each to have its own")
    known: dict[str, Job] = {}
    for job in trace.jobs:
        for fault in _faults(job):
            raise InvalidTrace(f"{path}: {job.name}: {fault}; correct that job, or leave it out")
        if (other := known.setdefault(job.name, job)) is not job:
            raise InvalidTrace(
                f"{path}: {job.name} is there twice, submitted after {other.submitted:g} and {job.submitted:g} "
                "seconds; expected every job once, so give one of them another name, or leave it out"
            )
    for job in trace.jobs:
        gang, _, place = job.name.rpartition("-")
        if job.pods == 1 and place.isdecimal() and gang in known and _has_pod(known[gang], job.name, int(place)):
            raise InvalidTrace(
                f"{path}: {job.name} has the name of a pod of {gang}; expected names that no other job's pods have, so "
                "give it another one"
            )


def _has_pod(job: Job, name: str, place: int) -> bool:
    return 1 < job.pods > place and pod_name(job, place) == name


def _faults(job: Job) -> Iterator[str]:
    times = {
        "is submitted after": job.submitted,
        "runs for": job.duration,
        "ends after": job.ends,
        "states a run time of": job.stated,
    }
    for what, seconds in times.items():
        if seconds is not None and not 0 <= seconds <= LONGEST:
            yield f"{what} {seconds:g} seconds, expected 0 to {LONGEST:.0f} ({YEARS} years)"
    if not 1 <= job.pods <= MOST_PODS:
        yield f"comes to {job.pods:,} pods, expected 1 to {MOST_PODS:,}"
    if min(job.ask.cpu, job.ask.memory, job.ask.gpus, *(amount for _, amount in job.ask.others)) < 0:
        yield "asks for less than nothing"
    if job.ask.gpus and not 1 <= job.ask.milli <= WHOLE:
        yield f"asks for {job.ask.milli:,} thousandths of a GPU, expected 1 to {WHOLE:,}"
