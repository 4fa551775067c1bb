"""What happened in a replay, as events in the order they happened; every figure is computed from it and the trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from spinney.cluster.dra.allocating import GivenDevice
from spinney.kube.keys import Key

What = Literal["submitted", "started", "ended", "evicted", "failed", "forgotten"]


class JobHappening(NamedTuple):
    """Something that happened to a job, and when. ``nodes`` is where its pods are or were, in their order."""

    at: float
    what: What
    job: int
    """The place of the job in the trace."""
    nodes: tuple[str, ...] = ()
    devices: tuple[tuple[int, ...], ...] = ()
    """The GPUs of its node that each pod holds."""
    claims: tuple[Mapping[Key, tuple[GivenDevice, ...]], ...] = ()
    """The devices that each pod has through claims; empty where no pod has any."""
    volumes: tuple[Mapping[Key, str], ...] = ()
    """The volumes of each pod, by claim; empty where no pod has any."""


@dataclass
class History:
    """A replay, as it went. Mutable: the replay writes it."""

    events: list[JobHappening] = field(default_factory=list)
    decided: int = 0
    """How many pods were placed."""
    cycle_seconds: list[float] = field(default_factory=list)
    """Processor seconds of each cycle."""
    seconds: float = 0.0
    """Processor seconds of the whole replay."""
    ended_at: float = 0.0
    """Virtual seconds since the trace began."""
