"""Actions: what a cycle does with its session, one after the other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spinney.scheduler.actions.action import Action
from spinney.scheduler.actions.allocate import Allocate
from spinney.scheduler.actions.consolidation import Consolidation
from spinney.scheduler.actions.preempt import Preempt
from spinney.scheduler.actions.reclaim import Reclaim
from spinney.scheduler.actions.stale_gangs import StaleGangEviction

BUILT_IN_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "allocate": Allocate(),
        "consolidation": Consolidation(),
        "reclaim": Reclaim(),
        "preempt": Preempt(),
        "stalegangeviction": StaleGangEviction(),
    }
)
"""Actions by the name the configuration uses."""

__all__ = ["BUILT_IN_ACTIONS", "Action", "Allocate", "Consolidation", "Preempt", "Reclaim", "StaleGangEviction"]
