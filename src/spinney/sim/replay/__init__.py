"""Replaying what a cluster was asked for: jobs arrive, run and end, through the production scheduler."""

from spinney.sim.replay.engine import Progress
from spinney.sim.replay.history import History
from spinney.sim.replay.pools import Replay
from spinney.sim.replay.trace import Job, Machine, Outage, PodRequest, Trace

__all__ = ["History", "Job", "Machine", "Outage", "PodRequest", "Progress", "Replay", "Trace"]
