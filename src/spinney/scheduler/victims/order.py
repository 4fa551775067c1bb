"""The order in which victims are given up: the queue that deserves least gives first, its least important job first.

The order mirrors the tree of queues. Sibling queues are compared as they would stand without the victims taken from
them so far and the next one. A job is given up in steps: pods beyond its minimum one by one, then members it can do
without, then the rest; after each step it queues up again with what is left.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from spinney.scheduler.fairshare import ZERO, Amounts, QueueInfo
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.victims.pool import VictimJob, VictimPool


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one turn takes from a job. Compared by identity."""

    job: PodGroupInfo
    tasks: tuple[PodInfo, ...]

    @property
    def rows(self) -> dict[int, None]:
        """Return the rows of the nodes it touches, without repeats, in the order of its tasks."""
        return dict.fromkeys(task.row for task in self.tasks)


class VictimOrder:
    """Steps by turn. Mutable: each step is popped once."""

    def __init__(
        self, session: Session, pool: VictimPool, queues: Iterable[str], admits: Callable[[PodGroupInfo], bool]
    ) -> None:
        self._session = session
        self._branches: dict[int, _Branch] = {}
        self._top = _Branch(None, session)
        tree = session.queues
        for name in queues:
            leaf = _Branch(tree[name], session, (victim for victim in pool.of_queue(name) if admits(victim.job)))
            if leaf.head is not None:
                self._attach(tree.index[name], leaf)
        for position in sorted(self._branches, key=lambda position: -len(tree.paths[position])):
            heapq.heapify(self._branches[position].children)
        heapq.heapify(self._top.children)

    def pop(self) -> Step | None:
        """Return the next step, or ``None`` when everything has been given up."""
        while self._top.children:
            path = [self._top]
            while path[-1].children:
                path.append(path[-1].children[0])
            victim = path[-1].take()
            tasks, more = victim.view.tasks_to_evict()
            if more and tasks:
                rest = victim.view.without(tasks)
                path[-1].put_back(VictimJob(self._session, victim.job, rest, self._session.ask.victim_key(rest)))
            for branch in path[1:]:
                branch.lose(victim)
            path[-1].advance()
            for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
                if child.empty:
                    heapq.heappop(parent.children)
                else:
                    heapq.heapreplace(parent.children, child)
            if tasks:
                return Step(victim.job, tuple(tasks))
        return None

    def _attach(self, position: int, branch: "_Branch") -> None:
        self._branches[position] = branch
        parent = self._session.queues.parent[position]
        if parent < 0:
            self._top.children.append(branch)
            return
        if parent not in self._branches:
            self._attach(parent, _Branch(self._session.queues.queues[parent], self._session))
        self._branches[parent].children.append(branch)


class _Branch:
    """A queue that still has something to give; a leaf has victims, any other has children, in a heap."""

    __slots__ = ("_again", "_coming", "_lost", "_session", "_taken", "children", "head", "queue")

    def __init__(self, queue: QueueInfo | None, session: Session, coming: Iterable[VictimJob] = ()) -> None:
        self.queue = queue
        self.children: list[_Branch] = []
        self._session = session
        self._coming = iter(coming)
        self._again: list[VictimJob] = []
        self._taken: list[PodGroupInfo] = []
        self._lost = ZERO
        self.head = next(self._coming, None)
        """The next victim that was not taken from before."""

    @property
    def empty(self) -> bool:
        return not self.children and self.head is None and not self._again

    def next_victim(self) -> VictimJob:
        if self.children:
            return self.children[0].next_victim()
        if self.head is None or (self._again and self._again[0] < self.head):
            return self._again[0]
        return self.head

    def take(self) -> VictimJob:
        victim = self.next_victim()
        if victim is self.head:
            self.head = None
        else:
            heapq.heappop(self._again)
        return victim

    def put_back(self, victim: VictimJob) -> None:
        heapq.heappush(self._again, victim)

    def advance(self) -> None:
        if self.head is None:
            self.head = next(self._coming, None)

    def lose(self, victim: VictimJob) -> None:
        self._taken.append(victim.view)
        self._lost = self._lost + victim.held

    def turn(self) -> QueueTurn:
        assert self.queue is not None, "the top is never compared"
        following = self.next_victim()
        lost: Amounts = self._lost + following.held
        return QueueTurn(self.queue, None, _Losses(self._taken, len(self._taken), following.view), lost)

    def __lt__(self, other: "_Branch") -> bool:
        return self._session.ask.compare_queues(self.turn(), other.turn()) > 0


class _Losses(Sequence[PodGroupInfo]):
    """The first ``count`` jobs of a growing list and one more, without copying them."""

    __slots__ = ("_count", "_following", "_taken")

    def __init__(self, taken: Sequence[PodGroupInfo], count: int, following: PodGroupInfo) -> None:
        self._taken, self._count, self._following = taken, count, following

    def __len__(self) -> int:
        return self._count + 1

    @overload
    def __getitem__(self, index: int) -> PodGroupInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PodGroupInfo]: ...
    def __getitem__(self, index: int | slice) -> PodGroupInfo | Sequence[PodGroupInfo]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return self._following if place == self._count else self._taken[place]


class Steps:
    """The steps of one search, popped when they are first asked for and kept. Mutable.

    Once ``has_time`` says no they end, but for the first: whoever goes through them stops, as if there were no more.
    """

    def __init__(self, order: VictimOrder, *, most_jobs: int = -1, has_time: Callable[[], bool] = lambda: True) -> None:
        self._order = order
        self._most_jobs = most_jobs
        self._has_time = has_time
        self._jobs: dict[PodGroupInfo, list[tuple[int, Step]]] = {}
        self._found: list[Step] = []
        self.exhausted = False
        """Whether all there are were popped."""

    def __iter__(self) -> Iterator[Step]:
        place = 0
        while (step := self.get(place)) is not None:
            yield step
            place += 1

    def get(self, place: int) -> Step | None:
        """Return the step at a place, or ``None`` if there are not so many or the time is over."""
        if place and not self._has_time():
            return None
        while len(self._found) <= place and not self.exhausted:
            step = self._order.pop()
            if step is None:
                self.exhausted = True
                break
            if self._most_jobs >= 0 and step.job not in self._jobs and len(self._jobs) >= self._most_jobs:
                continue
            self._jobs.setdefault(step.job, []).append((len(self._found), step))
            self._found.append(step)
        return self._found[place] if place < len(self._found) else None

    def of_job(self, job: PodGroupInfo) -> Sequence[tuple[int, Step]]:
        """Return the steps of a job popped so far, with their places."""
        return self._jobs.get(job, ())

    @property
    def pods(self) -> int:
        """Return how many pods the steps popped so far would take."""
        return sum(len(step.tasks) for step in self._found)
