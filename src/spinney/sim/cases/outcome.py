"""What a session left behind, in the words of the case format."""

from collections.abc import Mapping

import msgspec

from spinney.sim.cases import format as cases
from spinney.sim.cases.format import Claim


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One task after the session; the requests are as the scheduler understood them."""

    status: str
    node: str | None = None
    gpu_groups: tuple[str, ...] = ()
    gpus_accepted: float = 0  # the share of devices granted, 0 unless placed
    gpus_requested: float = 0
    cpu_milli_requested: int = 0
    memory_bytes_requested: int = 0


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One job after the session."""

    started_seconds_ago: float | None = None
    fit_error: cases.FitError | None = None


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Whole devices of one node after the session."""

    idle_gpus: float
    releasing_gpus: float


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A session after its actions: where everything stands, and how many operations were committed."""

    tasks: Mapping[str, TaskOutcome]
    jobs: Mapping[str, JobOutcome] = {}
    nodes: Mapping[str, NodeOutcome] = {}
    claims: tuple[Claim, ...] = ()
    binds: int = 0
    evictions: int = 0
    pipelines: int = 0
