"""The Standard Workload Format of the Parallel Workloads Archive: one job a line, eighteen numbers.

A processor of the trace is one GPU here, as published GPU traces in this form have it, in nodes of ``MaxProcs`` over
``MaxNodes`` (from the header), or of 8. A job takes whole nodes beyond one.
"""

from pathlib import Path
from typing import Final

from spinney.sim.replay.formats.tables import InvalidTrace, opened
from spinney.sim.replay.trace import Ask, Job, Machine, Trace

_FIELDS: Final = 18
_SUBMIT, _RUN, _USED, _ASKED, _STATED, _QUEUE = 1, 3, 4, 7, 8, 14
_PER_NODE: Final = 8


def read_swf(path: Path) -> Trace:
    """Return the jobs of a file; those that never ran are left out."""
    header: dict[str, str] = {}
    jobs: list[Job] = []
    left_out = 0
    with opened(path) as file:
        lines = list(file)
    for line in lines:
        if line.startswith(";") and ":" in line:
            key, _, value = line[1:].partition(":")
            header[key.strip()] = value.strip()
    procs = _whole(header.get("MaxProcs") or header.get("MaxNodes") or "0", path)
    count = _whole(header.get("MaxNodes") or "0", path) or max(procs // _PER_NODE, 1)
    per_node = max(procs // count, 1) if procs else _PER_NODE
    for place, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(";"):
            continue
        cells = line.split()
        if len(cells) < _FIELDS:
            raise InvalidTrace(f"{path}:{place}: found {len(cells)} fields, expected {_FIELDS}")
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            raise InvalidTrace(f"{path}:{place}: expected numbers, found {line.strip()!r}") from None
        gpus = int(values[_ASKED] if values[_ASKED] > 0 else values[_USED])
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
    if not procs:
        count = max((job.pods for job in jobs), default=1)
    return Trace(
        name=path.name.split(".")[0],
        machines=tuple(Machine(f"node-{place:05d}", 96_000, 786_432, per_node) for place in range(count)),
        jobs=tuple(jobs),
        notes=(f"{left_out} jobs that never ran were left out",) if left_out else (),
    )


def _whole(text: str, path: Path) -> int:
    try:
        return int(text.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        raise InvalidTrace(f"{path}: header says {text!r} where a number is expected") from None
