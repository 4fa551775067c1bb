"""Microsoft's Philly (2017): training jobs of one to many GPUs, in virtual clusters.

A job of up to 8 GPUs is one pod; a larger one is a gang of pods with 8 GPUs each (4 where 8 does not divide it),
started together or not at all. Virtual clusters are queues. There are three layouts: ``full`` gives each virtual
cluster a pool with its own nodes (``philly_vcs.csv``: ``vc``, ``node num``), ``half`` half as many; ``shared`` makes
one pool of a quarter of all nodes, of which each queue is guaranteed its own quarter.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from spinney.explain.amounts import counted
from spinney.sim.replay.formats.bounds import check_size
from spinney.sim.replay.formats.tables import InvalidTrace, TableRow, rows_of
from spinney.sim.replay.trace import Ask, Job, Machine, Trace

GPUS_PER_NODE: Final = 8
Layout = Literal["full", "half", "shared"]
# The trace says nothing of CPU and memory: nodes have plenty, pods ask for none.
_CPU, _MEMORY = 96_000, 786_432


def sizes_beside(jobs: Path) -> Path:
    """Return the file that says how many nodes each virtual cluster has."""
    return jobs.with_name("philly_vcs.csv")


def read_philly(
    jobs: Path, nodes: Path | None, *, layout: Layout = "full", begin: str | None = None, until: str | None = None
) -> Trace:
    """Return the jobs submitted from ``begin`` to before ``until`` (days as YYYY-MM-DD) on one of the layouts."""
    sizes = _sizes(nodes if nodes is not None else sizes_beside(jobs))
    earliest = _moment(begin, "--begin") if begin is not None else None
    latest = _moment(until, "--until") if until is not None else None
    if earliest is not None and latest is not None and earliest >= latest:
        raise InvalidTrace(f"--until: found {until!r}, expected a day after {begin!r}, with which the period begins")
    rows, unknown = [], 0
    first, last = datetime.max, datetime.min
    for row in rows_of(jobs, "job", "timestamp", "duration", "num_gpus", "cluster"):
        moment = _moment(row["timestamp"], f"{row.where}: job {row['job']}")
        first, last = min(first, moment), max(last, moment)
        if (earliest is not None and moment < earliest) or (latest is not None and moment >= latest):
            continue
        if row["cluster"] not in sizes:
            unknown += 1
        else:
            rows.append((moment, row))
    if not rows and not unknown and first <= last:
        raise InvalidTrace(f"{jobs}: no job was submitted in that period; the trace has {first} to {last}")
    rows.sort(key=lambda each: each[0])
    start = earliest or (rows[0][0] if rows else datetime.min)
    found = [_job(row, (moment - start).total_seconds(), pooled=layout != "shared") for moment, row in rows]
    end = (latest - start).total_seconds() if latest is not None else None
    notes = (f"left out, as their virtual clusters have no nodes: {counted(unknown, 'job')}",) if unknown else ()
    return Trace(
        name=f"philly-{layout}",
        machines=_machines(sizes, layout),
        jobs=tuple(found),
        quotas=_quotas(sizes, layout),
        window=(0.0, end) if end is not None else None,
        notes=notes,
    )


def _job(row: TableRow, submitted: float, *, pooled: bool) -> Job:
    gpus = row.whole("num_gpus")
    if gpus < 1:
        raise InvalidTrace(f"{row.where}: job {row['job']}: column 'num_gpus': found {gpus}, expected at least 1")
    each = gpus if gpus <= GPUS_PER_NODE else math.gcd(gpus, GPUS_PER_NODE)
    return Job(
        name=f"job-{row['job']}",
        submitted=submitted,
        ask=Ask(gpus=each, pool=row["cluster"] if pooled else ""),
        pods=gpus // each,
        duration=row.number("duration"),
        queue=row["cluster"],
        kind="gang" if gpus > each else "pod",
    )


def _sizes(path: Path) -> dict[str, int]:
    if not path.exists():
        raise InvalidTrace(
            f"{path}: no such file; name the nodes of virtual clusters with --nodes (columns vc, node num)"
        )
    sizes = {row["vc"]: row.whole("node num") for row in rows_of(path, "vc", "node num")}
    nodes = sum(sizes.values())
    check_size(nodes, nodes * GPUS_PER_NODE, str(path))
    return sizes


def _nodes(size: int, layout: Layout) -> int:
    return {"full": size, "half": -(-size // 2), "shared": size // 4}[layout]


def _machines(sizes: Mapping[str, int], layout: Layout) -> tuple[Machine, ...]:
    return tuple(
        Machine(f"{vc}-{place:03d}", _CPU, _MEMORY, GPUS_PER_NODE, pool=vc if layout != "shared" else "")
        for vc, size in sizes.items()
        for place in range(_nodes(size, layout))
    )


def _quotas(sizes: Mapping[str, int], layout: Layout) -> dict[str, int]:
    return {vc: GPUS_PER_NODE * _nodes(size, layout) for vc, size in sizes.items()}


def _moment(text: str, where: str) -> datetime:
    """Return a moment as the file writes it; one that says how far it is from UTC, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is None else found.astimezone(UTC)).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InvalidTrace(f"{where}: found {text!r}, expected a day or time such as 2017-10-01 00:00:00") from None
