"""Actions: what a cycle does with its session, one after the other."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from spinney.scheduler.actions.allocate import allocate_jobs
from spinney.scheduler.actions.consolidation import Consolidation
from spinney.scheduler.actions.entry import search_for_pending
from spinney.scheduler.actions.preempt import Preempt
from spinney.scheduler.actions.reclaim import Reclaim
from spinney.scheduler.actions.relocation import relocate_broken_gangs
from spinney.scheduler.actions.stale_gangs import evict_stale_gangs
from spinney.scheduler.framework.session import Session

Action = Callable[[Session], None]
"""Something a cycle does: look at a session and commit statements. Holds no state between cycles."""

BUILT_IN_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "allocate": allocate_jobs,
        "consolidation": partial(search_for_pending, rule=Consolidation()),
        "reclaim": partial(search_for_pending, rule=Reclaim()),
        "preempt": partial(search_for_pending, rule=Preempt()),
        "relocation": relocate_broken_gangs,
        "stalegangeviction": evict_stale_gangs,
    }
)
"""Actions by the name the configuration uses."""
