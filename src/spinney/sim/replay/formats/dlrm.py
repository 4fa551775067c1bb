"""Alibaba's disaggregated recommendation services (2025): instances that come and go at given times.

Instances that were there before the trace are placed first, in file order. One role is replayed at a time: GPU nodes
(HN) or CPU nodes (CN); no node list was published, so their size and number are given. A node holds at most so many
instances of one application; an instance without room waits until its end.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from spinney.sim.replay.formats.bounds import check_size
from spinney.sim.replay.formats.tables import TableRow, rows_of
from spinney.sim.replay.trace import Ask, Job, Machine, Trace

Role = Literal["HN", "CN"]
RDMA: Final = "replay.spinney.dev/rdma-percent"
NODES: Final[Mapping[Role, int]] = {"HN": 485, "CN": 2100}
_GIB: Final = 1024
_SIZES: Final[Mapping[Role, tuple[int, int, int]]] = {"HN": (128_000, 1024 * _GIB, 8), "CN": (192_000, 1536 * _GIB, 0)}
_RDMA: Final = 200
_COLUMNS: Final = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "rdma_request",
    "memory_request",
    "max_instance_per_node",
    "creation_time",
    "deletion_time",
)
_SHORTEST: Final = 0.001
"""What an instance lives that the trace lets live no time at all: it is placed, and ends."""


def read_dlrm(path: Path, *, role: Role = "HN", count: int | None = None) -> Trace:
    """Return the instances of one role on ``count`` nodes."""
    cpu, memory, gpus = _SIZES[role]
    nodes = count if count is not None else NODES[role]
    check_size(nodes, nodes * gpus, "--node-count")
    jobs = [_job(row) for row in rows_of(path, *_COLUMNS) if row["role"] == role]
    jobs.sort(key=lambda job: job.submitted)
    return Trace(
        name=f"dlrm-{role}",
        machines=tuple(
            Machine(f"{role.lower()}-{place:04d}", cpu, memory, gpus, others={RDMA: _RDMA}) for place in range(nodes)
        ),
        jobs=tuple(jobs),
    )


def _job(row: TableRow) -> Job:
    created = row.number("creation_time") if row["creation_time"] else 0.0
    rdma = row.whole("rdma_request")
    most = row.whole("max_instance_per_node")
    ask = Ask(
        cpu=round(1000 * row.number("cpu_request")),
        memory=round(_GIB * row.number("memory_request")),
        gpus=row.whole("gpu_request"),
        others=((RDMA, rdma),) if rdma else (),
        most_per_node=max(most, 0),
    )
    ends = max(row.number("deletion_time"), created + _SHORTEST) if row["deletion_time"] else None
    return Job(
        name=row["instance_sn"],
        submitted=created,
        ask=ask,
        ends=ends,
        kind=row["role"],
        application=f"{row['role']}-{row['app_name']}",
    )
