"""The Standard Workload Format of the Parallel Workloads Archive: one job a line, eighteen numbers.

A processor of the trace is one GPU here, as published GPU traces in this form have it, in nodes of ``MaxProcs`` over
``MaxNodes`` (from the header, rounded up), or of 8. A job takes whole nodes beyond one. Time begins with the first job:
a part of a log may be from the middle of it. Where a log has a job's partial executions
after its line, under the same number, the first line has the whole of it, and the others are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from spinney.sim.replay.formats.bounds import LONGEST, check_size
from spinney.sim.replay.formats.tables import InvalidTrace, finite, opened
from spinney.sim.replay.trace import Ask, Job, Machine, Trace

_FIELDS: Final = 18
_SUBMIT, _RUN, _USED, _ASKED, _STATED, _STATUS, _QUEUE = 1, 3, 4, 7, 8, 10, 14
_PARTIAL: Final = (2, 3, 4)
"""What the status of a line is that tells of a part of a job's run."""
_PER_NODE: Final = 8


def read_swf(path: Path) -> Trace:
    """Return the jobs of a file; those that never ran are left out."""
    with opened(path) as file:
        lines = list(file)
    header: dict[str, str] = {}
    for line in lines:
        if line.startswith(";") and ":" in line:
            key, _, value = line[1:].partition(":")
            header[key.strip()] = value.strip()
    procs = _whole(header, "MaxProcs" if header.get("MaxProcs") else "MaxNodes", path)
    count = _whole(header, "MaxNodes", path) or max(procs // _PER_NODE, 1)
    per_node = -(-procs // count) if procs else _PER_NODE
    jobs: list[Job] = []
    known: dict[str, int] = {}
    left_out = parts = 0
    for place, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(";"):
            continue
        cells = line.split()
        values = _numbers(cells, f"{path}:{place}")
        first = known.setdefault(cells[0], place)
        if first != place and values[_STATUS] in _PARTIAL:
            parts += 1
            continue
        if first != place:
            raise InvalidTrace(
                f"{path}:{place}: job {cells[0]} is in line {first} too, and this line is no part of its run (field "
                f"{_STATUS + 1} is {cells[_STATUS]}, expected 2, 3 or 4); number it anew, or leave it out"
            )
        gpus = _processors(values, cells, f"{path}:{place}")
        if values[_RUN] < 0 or gpus <= 0:
            left_out += 1
            continue
        pods = -(-gpus // per_node)
        jobs.append(
            Job(
                name=f"job-{cells[0]}",
                submitted=max(values[_SUBMIT], 0.0),
                ask=Ask(gpus=min(gpus, per_node)),
                pods=pods,
                duration=values[_RUN],
                stated=values[_STATED] if values[_STATED] > 0 else None,
                queue=f"queue-{cells[_QUEUE]}" if values[_QUEUE] >= 0 else "default",
                kind="gang" if pods > 1 else "pod",
            )
        )
    jobs.sort(key=lambda job: job.submitted)
    begin = jobs[0].submitted if jobs and jobs[0].submitted <= LONGEST else 0.0
    if not procs:
        count = max((job.pods for job in jobs), default=1)
    check_size(count, count * per_node, f"{path}: its {'header' if procs else 'largest job'}")
    notes = [f"{number} {what} left out" for number, what in _left_out(left_out, parts) if number]
    if procs and count * per_node != procs:
        notes.append(f"{procs} processors do not divide over {count} nodes, so each has {per_node}")
    return Trace(
        name=path.name.split(".")[0],
        machines=tuple(Machine(f"node-{place:05d}", 96_000, 786_432, per_node) for place in range(count)),
        jobs=tuple(replace(job, submitted=job.submitted - begin) for job in jobs),
        notes=tuple(notes),
    )


def _left_out(never_ran: int, parts: int) -> Iterator[tuple[int, str]]:
    yield never_ran, "job that never ran was" if never_ran == 1 else "jobs that never ran were"
    yield parts, "line about a part of a job's run was" if parts == 1 else "lines about parts of a job's run were"


def _numbers(cells: Sequence[str], where: str) -> list[float]:
    """Return what is in the fields of a line."""
    if len(cells) < _FIELDS:
        raise InvalidTrace(f"{where}: found {len(cells)} fields, expected {_FIELDS}")
    return [finite(cell, f"{where}: field {number}") for number, cell in enumerate(cells[:_FIELDS], start=1)]


def _processors(values: Sequence[float], cells: Sequence[str], where: str) -> int:
    """Return how many processors a job asks for, or used where that is not known."""
    field = _ASKED if values[_ASKED] > 0 else _USED
    if not values[field].is_integer():
        raise InvalidTrace(f"{where}: field {field + 1}: found {cells[field]!r}, expected a whole number")
    return int(values[field])


def _whole(header: Mapping[str, str], field: str, path: Path) -> int:
    text = header.get(field) or "0"
    try:
        return max(int(text.split(maxsplit=1)[0]), 0)  # where it is not known, some write -1
    except (ValueError, IndexError):
        raise InvalidTrace(f"{path}: {field} of the header: found {text!r}, expected a whole number") from None
