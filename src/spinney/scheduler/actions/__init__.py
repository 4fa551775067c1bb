"""Actions: what a cycle does with its session, one after the other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from spinney.scheduler.actions.allocate import Allocate
from spinney.scheduler.actions.consolidation import Consolidation
from spinney.scheduler.actions.preempt import Preempt
from spinney.scheduler.actions.reclaim import Reclaim
from spinney.scheduler.actions.relocation import Relocation
from spinney.scheduler.actions.stale_gangs import StaleGangEviction
from spinney.scheduler.framework.session import Session


class Action(Protocol):
    """Something a cycle does: look at a session and commit statements. Holds no state between cycles."""

    def execute(self, session: Session) -> None:
        """Act on ``session``."""


BUILT_IN_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "allocate": Allocate(),
        "consolidation": Consolidation(),
        "reclaim": Reclaim(),
        "preempt": Preempt(),
        "relocation": Relocation(),
        "stalegangeviction": StaleGangEviction(),
    }
)
"""Actions by the name the configuration uses."""
