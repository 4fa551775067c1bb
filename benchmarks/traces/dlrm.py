"""Alibaba's recommendation services: who waits and how many nodes are in use, beside best fit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.traces.best_fit import best_fit
from benchmarks.traces.replaying import replayed
from benchmarks.traces.tables import Table
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.formats.dlrm import Role, read_dlrm

PUBLISHED: Final[dict[tuple[Role, int], tuple[object, ...]]] = {
    ("HN", 485): (0, 0, 449.6, 483),
    ("HN", 475): (51, 5, 449.5, 475),
    ("CN", 2100): (749, 298, 1803.0, 2100),
}


def measure(directory: Path, wanted: list[tuple[Role, int]]) -> Iterator[Table]:
    """Replay each role on so many nodes."""
    path = next(directory.glob("dlrm2025.csv*"))
    table = Table(
        "dlrm",
        "Instances of recommendation services (Alibaba 2025), as the experiment is defined; best fit as published, and "
        "by a small event simulator of ours.",
        ["role", "nodes", "placement", "waited", "never ran", "nodes in use, mean", "peak", "CPU s"],
    )
    for role, count in wanted:
        trace = read_dlrm(path, role=role, count=count)
        found = figures_of(trace, replayed(trace, SchedulerConfig(actions=("allocate",))))
        case, peer = (role, f"{count:,}"), best_fit(trace)
        table.add(*case, "best fit, published", *PUBLISHED.get((role, count), ("-",) * 4), "")
        used = f"{peer.nodes_in_use:.1f}", peer.most_nodes_in_use
        table.add(*case, "best fit", peer.waited, peer.never_ran, *used, "")
        used = f"{found.nodes_in_use:.1f}", found.most_nodes_in_use
        table.add(*case, "**Spinney**", found.waited, found.jobs - found.started, *used, f"{found.seconds:.0f}")
    yield table
