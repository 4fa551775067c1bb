"""Jobs that ask for the same thing share one verdict: what one was refused, another need not try.

It holds where every plugin treats alike jobs alike. A job whose labels placed pods have rules about may have been
refused for those, and one that uses device claims for what became of its own; they stand for no other.
"""

from collections.abc import Mapping, Sequence

from spinney.cluster.classes import RequestClass
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey, Member, PodSet
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.tasks import NUMBER, PodInfo

Signature = tuple[object, ...]


class FailedSignatures:
    """The jobs that found no place in one action. Mutable.

    A verdict holds while nothing is decided, or if all pods of the job ask for the same and for nothing of other pods:
    while jobs are only being placed room only shrinks, and what does not fit into more room does not fit into less.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._for_good: dict[Signature, Sequence[FitError]] = {}
        self._for_now: dict[Signature, Sequence[FitError]] = {}

    def add(self, job: PodGroupInfo, why: Sequence[FitError]) -> None:
        """Remember why a job was refused, which holds for those like it."""
        signature = signature_of(job)
        if signature is not None and not _is_avoided(job, self._nodes):
            only_room = signature[-1]
            (self._for_good if only_room else self._for_now).setdefault(signature, why)

    def decided(self) -> None:
        """Forget what may be otherwise now that something was decided."""
        self._for_now.clear()

    def find(self, job: PodGroupInfo) -> Sequence[FitError] | None:
        """Return why a job that asked for the same was refused, if there is one."""
        if not self._for_good and not self._for_now:
            return None
        signature = signature_of(job)
        return None if signature is None else self._for_good.get(signature, self._for_now.get(signature))


def signature_of(job: PodGroupInfo) -> Signature | None:
    """Return what placement of a job depends on; ``None`` if where its own pods are, or its claims, play a part."""
    plain = job.plain
    requests: tuple[tuple[str, tuple[int, ...]], ...]
    if plain is not None:
        requests = ((plain.pod_set.name, (plain.request.number,) * len(plain.records)),)
    elif job.holds_anything or _uses_claims(job):
        return None
    else:
        requests = tuple((name, tuple(map(NUMBER, _to_place(tasks)))) for name, tasks in job.by_pod_set.items())
    asked = job.asked
    only_room = len(asked) == 1 and not any(request.constraints.looks_at_pods for request in asked)
    return (job.kind, job.root, requests, only_room)


def _is_avoided(job: PodGroupInfo, nodes: Nodes) -> bool:
    """Tell whether placed pods have rules about a pod of the job."""
    return nodes.have_rules_about(record.pod for _, record in job.members.pods.values())


def _uses_claims(job: PodGroupInfo) -> bool:
    """Tell whether a pod to place next uses device claims; each pod has its own of one template."""
    return any(request.constraints.claims for request in job.asked)


def _to_place(tasks: Sequence[PodInfo]) -> Sequence[PodInfo]:
    return [task for task in tasks if task.status is PodStatus.PENDING]


class FailedSearches:
    """The easiest job of each kind for which a search for victims failed in one action. Mutable.

    Two jobs are of one kind if they ask for the same things under the same constraints, though maybe for more or fewer
    of them. If one failed, another that asks for at least as many of each fails too; one that asks for fewer is tried.
    ``by_priority`` says that what may be disturbed depends on the job's priority.
    """

    def __init__(self, nodes: Nodes, *, by_priority: bool) -> None:
        self._nodes = nodes
        self._by_priority = by_priority
        self._failed: dict[Signature, tuple[GangKey, Mapping[RequestClass, int]]] = {}

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
        if kind is not None and not _is_avoided(job, self._nodes):
            self._failed[kind] = (job.key, job.asked)

    def _kind(self, job: PodGroupInfo) -> Signature | None:
        if job.holds_anything or _uses_claims(job):
            return None  # where its own pods are, or its claims, play a part
        kind = job.kind if self._by_priority else job.kind._replace(priority=None)
        return (kind, _shape(job.root), frozenset(job.asked))


def _shape(member: Member) -> object:
    """Return the tree of a job without its numbers."""
    if isinstance(member, PodSet):
        return member.topology
    return (member.topology, member.min_groups, tuple(map(_shape, member.members)))
