"""Gangs as the session sees and moves them: jobs.

A job's tasks are made when they are first read: most jobs of a cluster are running, and theirs never are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from spinney.binding.lost_work import lost_seconds
from spinney.binding.repair import started_at
from spinney.cluster.classes import RequestClass
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, PodStatus
from spinney.gangs.book import GangMembers, number_of_pods
from spinney.gangs.checkpoints import saved_until
from spinney.gangs.selection import everything, tasks_to_allocate, tasks_to_evict
from spinney.gangs.tree import Gang, GangKey, GroupSet, Member, PodSet, is_satisfied
from spinney.scheduler.framework.plain_jobs import Places, PlainPods, TaskRun, plain_pods
from spinney.scheduler.framework.task_lists import tasks_of
from spinney.scheduler.framework.tasks import REQUEST, STATUS, PodInfo

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session

READY: Final = ALIVE - {PodStatus.GATED}
"""Counts as one of the pods that a gang needs to be tried."""
_SUCCEEDED: Final = frozenset({PodStatus.SUCCEEDED})
_GIVEN: Final = ACTIVE_ALLOCATED - {PodStatus.PIPELINED}
_GOING_ON: Final = ACTIVE_USED - {PodStatus.STUCK_IN_RELEASING}


def _none(pod_set: PodSet) -> int:
    """Return how many tasks are placed where none are."""
    return 0


class JobKind(NamedTuple):
    """What plugins that treat alike jobs alike may tell jobs by, beside their tree, what they ask for and hold."""

    queue: str
    priority: int | None
    preemptible: bool
    namespace: str
    anchor: GangKey | None
    distinctions: tuple[object, ...]
    """What tells the job apart from those that ask for the same, as plugins say."""


class PodGroupInfo:
    """A gang in a session. Mutable: its tasks move, and statements say so through :meth:`moved`."""

    # What is the same of every job at first is of the class: a session has as many jobs as the cluster has gangs.
    _last_start: datetime | None = None
    _counts: dict[tuple[str, PodStatus], int] | None = None
    _active: dict[str, int] | None = None
    _pipelined = 0
    _next: list[PodInfo] | None = None
    _asked: Mapping[RequestClass, int] | None = None
    _is_plain = True
    """Whether it may be plain; found out when it is asked for."""
    _plain: PlainPods | None = None
    places: Places | None = None
    """Where all its pods were put at once, without making tasks of them."""
    _version = 0
    """Of the order that the tasks are in."""

    def __init__(self, members: GangMembers, session: "Session") -> None:
        self.members = members
        self.gang: Gang = members.gang
        self._session = session
        self._placed_first: dict[str, int] = {}
        """How many tasks at the beginning of each pod set are known not to wait."""

    def __repr__(self) -> str:
        return f"PodGroupInfo({self.gang.key})"

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def key(self) -> GangKey:
        """Return what identifies the job."""
        return self.gang.key

    @property
    def name(self) -> str:
        """Return the name of the object that defines the job."""
        return self.gang.key.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the job."""
        return self.gang.key.namespace

    @property
    def uid(self) -> str:
        """Return the uid of the object that defines the job."""
        return self.gang.uid or str(self.gang.key)

    @property
    def queue(self) -> str:
        """Return the queue the job is in."""
        return self.gang.queue

    @property
    def priority(self) -> int:
        """Return the priority of the job."""
        return self.gang.priority

    @property
    def created(self) -> datetime | None:
        """Return when the job was created."""
        return self.gang.created

    @property
    def last_start(self) -> datetime | None:
        """Return when the job got its first pods: as its object says, else when the oldest of them was bound."""
        if self._last_start is None:
            self._last_start = started_at(self.members)
        return self._last_start

    @last_start.setter
    def last_start(self, moment: datetime) -> None:
        self._last_start = moment

    @property
    def lost_work(self) -> float:
        """Return the work that each GPU of the job would lose: seconds since its start, or its last checkpoint."""
        return lost_seconds(self.last_start, self._saved_until, self._session.now)

    @cached_property
    def _saved_until(self) -> datetime | None:
        """Return until when its work is saved, as its pods say; nothing in a session changes that."""
        return saved_until(self.members, self._session.now)

    @property
    def root(self) -> GroupSet:
        """Return the root of the gang's tree."""
        return self.gang.root

    def is_preemptible_job(self, inference_preemptible: bool = False) -> bool:
        """Tell whether others may take what the job holds; ``inference_preemptible`` makes inference jobs so too."""
        return self.gang.preemptible or (inference_preemptible and self.gang.priority_class == "inference")

    @property
    def kind(self) -> JobKind:
        """Return what the job has in common with those that are decided like it if they ask for the same."""
        gang = self.gang
        apart = self._session.ask.distinctions(self) if self._session.hooks.job_distinctions else ()
        return JobKind(gang.queue, gang.priority, gang.preemptible, gang.key.namespace, gang.anchor, apart)

    # -- its tasks ---------------------------------------------------------------------------------------------------

    @cached_property
    def by_pod_set(self) -> dict[str, list[PodInfo]]:
        """Return the tasks by pod set, in task order."""
        self._version = self._session.ask.task_order_version()
        return tasks_of(self, self._session)

    @property
    def tasks(self) -> list[PodInfo]:
        """Return all tasks, pod set by pod set."""
        return [task for tasks in self.by_pod_set.values() for task in tasks]

    @property
    def pending(self) -> int:
        """Return how many tasks are to be placed."""
        if "by_pod_set" not in self.__dict__:
            return self.members.pending if self.places is None else 0
        counts = self._status_counts()
        names = self.gang.pod_sets
        if any(counts.get((name, PodStatus.RELEASING)) for name in names):
            # What a statement has evicted is terminating as well, and is to be placed again.
            return sum(task.should_allocate for tasks in self.by_pod_set.values() for task in tasks)
        return sum(counts.get((name, PodStatus.PENDING), 0) for name in names)

    def moved(self, task: PodInfo, before: PodStatus) -> None:
        """Note that a task's status changed from ``before`` to what it is now."""
        self._pipelined += (task.status is PodStatus.PIPELINED) - (before is PodStatus.PIPELINED)
        self.moved_many(task.pod_set, before, task.status, 1)

    @property
    def plain(self) -> PlainPods | None:
        """Return its pods, where all wait, are of one pod set and request, and go together or not at all."""
        if self._plain is None and self._is_plain:
            self._plain = plain_pods(self, self._session)
            self._is_plain = self._plain is not None
        return self._plain

    def put_all(self, places: Places) -> None:
        """Note that all pods of a plain job were given nodes."""
        self.places = places
        self._next = self._asked = self._plain = self._counts = self._active = None
        self._is_plain = False
        self._placed_first.clear()
        if "by_pod_set" in self.__dict__:
            places.carry_over(self.by_pod_set)

    def bind_all(self) -> None:
        """Note that all pods of a plain job are being bound to the nodes that they were given."""
        places = self.places
        assert places is not None, "they were given nodes"
        places.status = PodStatus.BINDING
        self._counts = self._active = None
        if "by_pod_set" in self.__dict__:
            places.carry_over(self.by_pod_set)

    def moved_many(self, pod_set: PodSet, before: PodStatus, after: PodStatus, count: int) -> None:
        """Note that the status of ``count`` tasks of a pod set, none of them promised a node, changed."""
        self._next = self._asked = self._plain = None
        self._is_plain = False
        name = pod_set.name
        if after in (PodStatus.PENDING, PodStatus.RELEASING):
            self._placed_first.pop(name, None)
        if self._active is not None:
            change = count * ((after in ACTIVE_ALLOCATED) - (before in ACTIVE_ALLOCATED))
            self._active[name] = self._active.get(name, 0) + change
        if self._counts is not None:
            self._counts[name, before] = self._counts.get((name, before), 0) - count
            self._counts[name, after] = self._counts.get((name, after), 0) + count

    def settled(self) -> None:
        """Note that what a statement assumed about tasks of the job is no longer only an assumption."""
        self._next = self._asked = None

    def without(self, tasks: Collection[PodInfo]) -> "PodGroupInfo":
        """Return the job as it would be without ``tasks``: a view to ask, which does not follow later moves."""
        view = PodGroupInfo(self.members, self._session)
        view._last_start = self._last_start
        view._is_plain = False
        if "_saved_until" in self.__dict__:
            view.__dict__["_saved_until"] = self._saved_until
        gone = set(map(id, tasks))
        view.__dict__["by_pod_set"] = {
            name: [task for task in members if id(task) not in gone] for name, members in self.by_pod_set.items()
        }
        return view

    # -- how far it has come -----------------------------------------------------------------------------------------

    def active(self, pod_set: PodSet) -> int:
        """Return how many tasks of the set are placed."""
        if self._active is None:
            self._active = number_of_pods(self._status_counts(), ACTIVE_ALLOCATED)
        return self._active.get(pod_set.name, 0)

    def waiting(self, pod_set: PodSet) -> Sequence[PodInfo]:
        """Return the tasks of the set that are to be placed, in task order."""
        tasks = self.by_pod_set[pod_set.name]
        if self._status_counts().get((pod_set.name, PodStatus.PENDING)) == len(tasks):
            return tasks
        # An elastic job asks after each pod it grows by; those that were placed before are not looked at again.
        first = next(
            (at for at in range(self._placed_first.get(pod_set.name, 0), len(tasks)) if tasks[at].should_allocate),
            len(tasks),
        )
        self._placed_first[pod_set.name] = first
        return [
            task
            for task in islice(tasks, first, None)
            if task.status is PodStatus.PENDING or (task.status is PodStatus.RELEASING and task.virtual)
        ]

    def placed(self, pod_set: PodSet) -> Sequence[PodInfo]:
        """Return the placed tasks of the set, in task order."""
        return [task for task in self.by_pod_set[pod_set.name] if task.status in ACTIVE_ALLOCATED]

    def ordered(self, group: GroupSet) -> Sequence[Member]:
        """Return the members of a group set in sub-group order."""
        return self._session.ask.order_members(self, group)

    @property
    def gang_satisfied(self) -> bool:
        """Tell whether enough tasks are placed."""
        if self.plain is not None:
            return False  # it needs all its pods, and all of them wait
        if self._is_untouched:
            return is_satisfied(self.root, _none)
        return is_satisfied(self.root, self.active)

    @property
    def ready(self) -> bool:
        """Tell whether enough tasks exist that no gate holds back."""
        if self.plain is not None:
            return True
        if self._is_untouched:
            counts = self.members.counts
            return is_satisfied(self.root, lambda pod_set: counts.get((pod_set.name, PodStatus.PENDING), 0))
        return is_satisfied(self.root, self.count_in(READY))

    @property
    def _is_untouched(self) -> bool:
        """Tell whether all pods of the gang are pending, and nobody has looked at them."""
        members = self.members
        return "by_pod_set" not in self.__dict__ and self.places is None and members.pending == len(members.pods)

    @property
    def stale(self) -> bool:
        """Tell whether the job holds something, has not succeeded in part, and is below its minimum.

        A pod that is terminating on a node that is silent may do so for hours, and is not counted for so long.
        """
        used = self.count_in(_GOING_ON)
        if is_satisfied(self.root, used):
            return False
        succeeded = self.count_in(_SUCCEEDED)
        pod_sets = self.gang.pod_sets.values()
        return any(map(used, pod_sets)) and not any(map(succeeded, pod_sets))

    @property
    def has_pipelined(self) -> bool:
        """Tell whether a task of the job waits for something to terminate."""
        return self._pipelined > 0

    @property
    def should_pipeline(self) -> bool:
        """Tell whether the job would be below its minimum without the tasks that wait for something to terminate."""
        if not self._pipelined:
            return False
        return not is_satisfied(self.root, self.count_in(_GIVEN))

    def count_in(self, statuses: frozenset[PodStatus]) -> Callable[[PodSet], int]:
        """Return a function that counts the tasks of a pod set that have one of ``statuses``."""
        counts = self._status_counts()
        return lambda pod_set: sum([counts.get((pod_set.name, status), 0) for status in statuses])

    @property
    def holds_anything(self) -> bool:
        """Tell whether a task of the job is on a node, or was promised one."""
        return any(map(self.count_in(ACTIVE_USED), self.gang.pod_sets.values()))

    def tasks_to_allocate(self) -> list[PodInfo]:
        """Return the tasks to place next, together or not at all."""
        self._follow_order()
        if self._next is None:
            self._next = tasks_to_allocate(self.root, self)
        return self._next

    @property
    def asked(self) -> Mapping[RequestClass, int]:
        """Return how many of the tasks to place next make each request, in the order in which each first comes."""
        if self._asked is None:
            plain = self.plain
            if plain is not None:
                self._asked = {plain.request: len(plain.records)}
            else:
                self._asked = Counter(map(REQUEST, self.tasks_to_allocate()))
        return self._asked

    def requests_of(self, tasks: Sequence[PodInfo]) -> Mapping[RequestClass, int]:
        """Return the same of ``tasks``, which mostly are those to place next."""
        return self.asked if tasks is self._next or isinstance(tasks, TaskRun) else Counter(map(REQUEST, tasks))

    def tasks_to_evict(self) -> tuple[list[PodInfo], bool]:
        """Return the tasks to give up first, and whether others would remain placed."""
        self._follow_order()
        if self.gang.disrupted_whole:
            return everything(self.root, self), False
        return tasks_to_evict(self.root, self)

    def _follow_order(self) -> None:
        """Sort the tasks anew if their order may have changed."""
        version = self._session.ask.task_order_version()
        if version != self._version and "by_pod_set" in self.__dict__:
            self._version = version
            self._next = self._asked = None
            self._placed_first.clear()
            for tasks in self.by_pod_set.values():
                self._session.ask.sort_tasks(tasks)

    @property
    def _is_counted_by_the_book(self) -> bool:
        """Tell whether tasks have the statuses that the book of gangs counts: it knows of no pods that are stuck."""
        session = self._session
        return session.are_counts_exact and self.members.pods.keys().isdisjoint(session.stuck)

    def _status_counts(self) -> dict[tuple[str, PodStatus], int]:
        """Return how many tasks of each pod set have each status, as it is now."""
        if self._counts is None:
            if "by_pod_set" not in self.__dict__ and self.places is not None:
                self._counts = {(self.places.pods.pod_set.name, self.places.status): len(self.places.rows)}
            elif "by_pod_set" not in self.__dict__ and self._is_counted_by_the_book:
                self._counts = dict(self.members.counts)
            else:
                self._counts = {
                    (name, status): count
                    for name, tasks in self.by_pod_set.items()
                    for status, count in Counter(map(STATUS, tasks)).items()
                }
        return self._counts
