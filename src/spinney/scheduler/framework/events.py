"""What plugins are told about virtual allocations, and what they answer when asked about capacity."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from spinney.cluster.classes import RequestClass
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.tasks import PodInfo


class Event(msgspec.Struct, frozen=True):
    """A task was virtually placed on, or taken off, a node."""

    task: PodInfo

    @property
    def job(self) -> PodGroupInfo:
        """Return the job of the task."""
        return self.task.job


class BatchEvent(msgspec.Struct, frozen=True):
    """Identical tasks of one job, or of several that are alike, were virtually placed, or taken off, together."""

    job: PodGroupInfo
    """Their job; the first of them, for a handler that is called for several at once (:attr:`EventHandler.ahead`)."""
    tasks: Sequence[PodInfo]
    """They may be made when one is read."""
    request: RequestClass
    """What each of them requests."""
    count: int
    """How many they are."""


class EventHandler(msgspec.Struct, frozen=True):
    """Functions called after every virtual allocation and deallocation.

    The ``_many`` forms are for handlers on the hot path: where they are given, tasks that are placed or taken off
    together are announced in one call; otherwise the single form is called for each.
    """

    allocate: Callable[[Event], None] | None = None
    deallocate: Callable[[Event], None] | None = None
    allocate_many: Callable[[BatchEvent], None] | None = None
    deallocate_many: Callable[[BatchEvent], None] | None = None
    ahead: Callable[[RequestClass], int] | None = None
    """How many more pods that make a request may be placed before the handler has to be called for them.

    Where it is given, pods that are alike and placed one after the other, those of one job or of jobs that are alike,
    are announced in one call of ``allocate_many``: not later than with the job that brings the last of so many pods.
    """

    @property
    def told_of_each(self) -> bool:
        """Tell whether tasks are announced one by one, each before the next is placed."""
        return (self.allocate is not None and self.allocate_many is None) or (
            self.deallocate is not None and self.deallocate_many is None
        )


class CapacityVerdict(msgspec.Struct, frozen=True):
    """Whether a queue has room, and if not, which rule says so. ``details`` is the plugin's own record."""

    ok: bool
    reason: str = ""
    message: str = ""
    details: object = None
    lasting: bool = False
    """It holds in this session, whatever is placed, for every job of the queue that is as preemptible as this one."""


WITHIN_CAPACITY = CapacityVerdict(ok=True)
UNBOUNDED = CapacityVerdict(ok=True, lasting=True)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a search for victims proposes: a job and the tasks that would have to go for it."""

    preemptor: PodGroupInfo
    pending: Sequence[PodInfo]
    victims: Mapping[PodGroupInfo, Sequence[PodInfo]] = msgspec.field(default_factory=dict)
