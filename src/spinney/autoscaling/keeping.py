"""Capacity that was provisioned for a gang is kept for it until it is bound."""

from collections.abc import Collection, Iterator

from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.keeping import NodeKeeper


class ProvisionedCapacity(NodeKeeper):
    """Keeps jobs off the nodes that an autoscaler has made for others, unless their priority is higher.

    The nodes that need to empty least are the new ones.
    """

    name = "provisioned-capacity"

    def __init__(self, gangs: Collection[GangKey]) -> None:
        self._gangs = frozenset(gangs)

    def on_session_open(self, session: Session) -> None:
        """Register the predicate, if something was provisioned."""
        if self._gangs:
            super().on_session_open(session)

    def gives_way(self, job: PodGroupInfo, other: PodGroupInfo) -> bool:
        """Jobs of no higher priority do."""
        return job is not other and job.priority <= other.priority

    def served(self) -> Iterator[tuple[PodGroupInfo, str]]:
        """Return the gangs whose nodes were provisioned."""
        for job in self._session.pending_jobs():
            if job.key in self._gangs and job.ready and not job.gang_satisfied:
                yield job, "for which it was provisioned"
