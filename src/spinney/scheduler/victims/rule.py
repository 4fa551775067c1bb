"""What tells the actions that search for victims apart: who may search, who may be a victim, and which end is just."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Literal

from spinney.scheduler.fairshare.amounts import Amounts
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.pool import VictimPool


class VictimRule(ABC):
    """The policy of one action. Holds no state between cycles."""

    name: ClassVar[str]
    reported_as: ClassVar[Literal["preempt", "reclaim", "consolidate"]]
    by_priority: ClassVar[bool] = True
    """What one job was refused says nothing about jobs of other priorities."""
    loses_nothing: ClassVar[bool] = False
    """Every job that is disturbed is given another place, so a job needs what is free to be enough for it."""

    @abstractmethod
    def may_search(self, session: Session, job: PodGroupInfo) -> bool:
        """Tell whether a pending job may disturb others in this way at all."""

    @abstractmethod
    def queues(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Iterable[str]:
        """Return the leaf queues whose jobs may be victims."""

    @abstractmethod
    def admits(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """Tell whether a preemptible job of one of these queues may be a victim."""

    def may_admit(self, session: Session, job: PodGroupInfo, priority: int) -> bool:
        """Tell whether :meth:`admits` could let a job of a priority be a victim; for a first look at many."""
        return True

    def protection(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> str | None:
        """Return what keeps a job from being a victim that would be one by its queue and its priority."""
        return None

    @abstractmethod
    def refusal(self, session: Session, scenario: Scenario) -> str | None:
        """Return why a simulated scenario may not happen, or ``None`` if it may."""

    def most_lost(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Amounts | None:
        """Return the most that scenarios which may happen take for good; ``None`` is unbounded."""
        return None

    @abstractmethod
    def message(self, session: Session, job: PodGroupInfo, queue: str) -> str:
        """Return what a victim of ``queue`` is told."""

    def remark(self, session: Session, job: PodGroupInfo) -> str | None:
        """Return why fewer may be disturbed for ``job`` than for others like it, if so."""
        return None

    def most_jobs(self, session: Session) -> int:
        """Return how many jobs may be disturbed for one; -1 is unlimited."""
        return -1
