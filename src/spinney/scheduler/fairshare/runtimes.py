"""How long a job may run undisturbed: the min-runtime of the queue that speaks for it.

A queue may set a min-runtime for preemption (victims of the same queue) and for reclaim (victims of another queue);
what it does not set it inherits from its ancestors, and what none of them sets is the process's default. For reclaim
the queue that speaks is, by the default method, the one on the victim's side where the paths of the two jobs part:
neighbours under one parent settle what disturbs whom at their own level.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from spinney.scheduler.fairshare.queues import QueueTree


class ReclaimMethod(StrEnum):
    """Which queue's reclaim min-runtime protects a victim."""

    LCA = "lca"  # the victim's ancestor just below the lowest common one, then upward
    QUEUE = "queue"  # the victim's own queue, then upward


class MinRuntimes(msgspec.Struct, frozen=True, kw_only=True):
    """The process's defaults and method; asks the tree for what queues say."""

    tree: QueueTree
    preempt: timedelta = timedelta(0)
    reclaim: timedelta = timedelta(0)
    method: ReclaimMethod = ReclaimMethod.LCA

    def for_preempt(self, victim: str) -> timedelta:
        """Return the min-runtime that protects a job of queue ``victim`` from its own queue."""
        set_here = (self.tree.queues[position].preempt_min_runtime for position in self.tree.path(victim))
        return next((found for found in set_here if found is not None), self.preempt)

    def for_reclaim(self, reclaimer: str, victim: str) -> timedelta:
        """Return the min-runtime that protects a job of queue ``victim`` from a job of queue ``reclaimer``."""
        start = self.tree.index[victim]
        if self.method is ReclaimMethod.LCA:
            _, start = self.tree.divergence(reclaimer, victim)
        set_here = (self.tree.queues[position].reclaim_min_runtime for position in self.tree.paths[start])
        return next((found for found in set_here if found is not None), self.reclaim)


def is_protected(started: datetime | None, min_runtime: timedelta, now: datetime) -> bool:
    """Tell whether a job that started then may not be disturbed yet; one that never started is not protected."""
    return started is not None and now < started + min_runtime


def is_delay_over(
    created: datetime, last_eviction: datetime | None, preemption_delay: timedelta | None, now: datetime
) -> bool:
    """Tell whether a pending job is old enough to disturb others; it may be placed on free capacity at any age."""
    if not preemption_delay:
        return True
    since = created if last_eviction is None else max(created, last_eviction)
    return now >= since + preemption_delay
