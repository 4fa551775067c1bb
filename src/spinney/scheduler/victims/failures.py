"""What searches have failed in an action, so that harder ones of the same kind are not tried.

Two jobs are of one kind if they ask for the same things under the same constraints, though maybe for more or fewer of
them. If one failed, another that asks for at least as many of each fails too; one that asks for fewer is tried.
"""

from collections.abc import Mapping

from spinney.cluster.classes import RequestClass
from spinney.gangs.tree import GangKey, Member, PodSet
from spinney.scheduler.framework.jobs import PodGroupInfo

Kind = tuple[object, ...]


class FailedSearches:
    """The easiest failed job of each kind. Mutable; kept for one action.

    ``within_queue`` says that what may be disturbed depends on the job's queue and priority.
    """

    def __init__(self, *, within_queue: bool) -> None:
        self._within_queue = within_queue
        self._failed: dict[Kind, tuple[GangKey, Mapping[RequestClass, int]]] = {}

    def find(self, job: PodGroupInfo) -> GangKey | None:
        """Return a failed job of the same kind that asked for no more, if there is one."""
        kind = self._kind(job)
        if kind is None or kind not in self._failed:
            return None
        key, failed = self._failed[kind]
        asked = job.asked
        return key if all(asked.get(request, 0) >= count for request, count in failed.items()) else None

    def add(self, job: PodGroupInfo) -> None:
        """Remember that the search for a job failed."""
        kind = self._kind(job)
        if kind is not None:
            self._failed[kind] = (job.key, job.asked)

    def _kind(self, job: PodGroupInfo) -> Kind | None:
        if job.holds_anything:
            return None  # where its own pods are plays a part
        whose = (job.queue, job.priority) if self._within_queue else ()
        return (whose, job.gang.preemptible, job.namespace, frozenset(job.asked), _shape(job.root))


def _shape(member: Member) -> object:
    """Return the tree of a job without its numbers."""
    if isinstance(member, PodSet):
        return member.topology
    return (member.topology, member.min_groups, tuple(map(_shape, member.members)))
