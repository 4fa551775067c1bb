"""Plain jobs: all pods wait, are of one pod set and make one request, and go together or not at all.

Most jobs of a busy cluster are plain, and most of those are like the one before. What is decided about such a job needs
its pods as the book of gangs has them, in order, and nothing else; tasks are made of them when they are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, overload

import msgspec

from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import PodSet
from spinney.scheduler.framework.tasks import NOWHERE, REQUEST, PodInfo

if TYPE_CHECKING:
    from spinney.scheduler.framework.jobs import PodGroupInfo
    from spinney.scheduler.framework.session import Session

_NOMINATED: Final = attrgetter("nominated_node")
_ALL_OF_ONE: Final = (None, 1)
"""How a group set says that its only member is needed."""


class PlainPods(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The pods of a plain job, in task order. Compared by identity."""

    pod_set: PodSet
    request: RequestClass
    records: Sequence[PodRecord]

    def first_task(self, job: "PodGroupInfo") -> PodInfo:
        """Return the first task of the job as a view of its own: to ask about, not to place."""
        return PodInfo(self.records[0], job, self.pod_set, self.request, PodStatus.PENDING, NOWHERE)


def plain_pods(job: "PodGroupInfo", session: "Session") -> PlainPods | None:
    """Return the pods of a job that nothing was done about yet; ``None`` if it is not plain."""
    members, root = job.members, job.gang.root
    size = len(members.pods)
    if members.pending != size or len(members.counts) != 1:
        return None
    if len(root.members) != 1 or root.min_groups not in _ALL_OF_ONE:
        return None
    pod_set = root.members[0]
    if not isinstance(pod_set, PodSet) or pod_set.min_member != size:
        return None
    ((name, _),) = members.counts
    if name != pod_set.name:
        return None
    records = [record for _, record in members.pods.values()]
    request = records[0].request
    if request.constraints.claims or any(map(_NOMINATED, records)):
        return None
    if size > 1 and (len(set(map(REQUEST, records))) > 1 or not session.ask.sort_records(records)):
        return None
    return PlainPods(pod_set, session.devices.effective_request(records[0]), records)


class Places(msgspec.Struct):
    """Where the pods of a plain job were put. Mutable: the status changes once, from given to being bound."""

    pods: PlainPods
    rows: list[int]
    names: list[str]
    """The nodes."""
    gpu_groups: tuple[str, ...] = ()
    """The shared devices of the pod, where it is only one."""
    status: PodStatus = PodStatus.ALLOCATED

    def carry_over(self, by_pod_set: Mapping[str, Sequence[PodInfo]]) -> None:
        """Have the tasks of the job say the same."""
        places = dict(zip(map(id, self.pods.records), zip(self.rows, self.names, strict=True), strict=True))
        virtual = self.status is PodStatus.ALLOCATED
        for task in by_pod_set[self.pods.pod_set.name]:
            task.row, task.node_name = places[id(task.record)]
            task.status, task.virtual, task.gpu_groups = self.status, virtual, self.gpu_groups


class TaskRun(Sequence[PodInfo]):
    """The tasks of a plain job, or of several that are alike, made when one is read."""

    __slots__ = ("jobs", "pods")

    def __init__(self, jobs: Sequence["PodGroupInfo"], pods: PlainPods) -> None:
        self.jobs = jobs
        self.pods = pods
        """Those of the first job; others have as many."""

    def __len__(self) -> int:
        return len(self.jobs) * len(self.pods.records)

    @overload
    def __getitem__(self, index: int) -> PodInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PodInfo]: ...
    def __getitem__(self, index: int | slice) -> PodInfo | Sequence[PodInfo]:
        if len(self.jobs) == 1:
            return self.jobs[0].by_pod_set[self.pods.pod_set.name][index]
        return list(self)[index]

    def __iter__(self) -> Iterator[PodInfo]:
        return chain.from_iterable([job.by_pod_set[self.pods.pod_set.name] for job in self.jobs])
