"""Jobs that ask for the same thing share one verdict: what one was refused, another need not try.

That holds where every plugin treats alike jobs alike, and either nothing was decided in between, or all pods of the job
ask for the same and for nothing of other pods: while jobs are only being placed room only shrinks, and what does not
fit into more room does not fit into less.
"""

from collections.abc import Sequence

from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.tasks import NUMBER, PodInfo

Signature = tuple[object, ...]


class FailedSignatures:
    """What was refused so far in one action. Mutable."""

    def __init__(self) -> None:
        self._failed: dict[Signature, GangKey] = {}

    def add(self, job: PodGroupInfo) -> None:
        """Remember that a job was refused."""
        signature = signature_of(job)
        if signature is not None:
            self._failed.setdefault(signature, job.key)

    def decided(self) -> None:
        """Forget what may be otherwise now that something was decided."""
        self._failed = {signature: key for signature, key in self._failed.items() if signature[-1]}

    def find(self, job: PodGroupInfo) -> GangKey | None:
        """Return a refused job that asked for the same, if there is one."""
        if not self._failed:
            return None
        signature = signature_of(job)
        return self._failed.get(signature) if signature is not None else None


def signature_of(job: PodGroupInfo) -> Signature | None:
    """Return what placement of a job depends on; ``None`` if where its own pods are plays a part."""
    if job.holds_anything:
        return None
    requests = tuple((name, tuple(map(NUMBER, _to_place(tasks)))) for name, tasks in job.by_pod_set.items())
    asked = job.asked
    only_room = len(asked) == 1 and not any(request.constraints.looks_at_pods for request in asked)
    return (job.queue, job.priority, job.gang.preemptible, job.namespace, job.root, requests, only_room)


def _to_place(tasks: Sequence[PodInfo]) -> Sequence[PodInfo]:
    return [task for task in tasks if task.status is PodStatus.PENDING]
