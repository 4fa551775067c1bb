"""Replaying what a cluster was asked for: jobs arrive, run and end, through the production scheduler."""

from spinney.sim.replay.history import History
from spinney.sim.replay.part import Progress
from spinney.sim.replay.pools import Replay
from spinney.sim.replay.trace import Ask, Job, Machine, Outage, Trace

__all__ = ["Ask", "History", "Job", "Machine", "Outage", "Progress", "Replay", "Trace"]
