"""The order in which jobs get their turn: a tree that mirrors the tree of queues.

A leaf queue has its jobs in order, the next at the end; an inner one has a heap of its children, each judged with its
best next job. Taking a job changes what its queues would hold, so the queues on its path are looked at again before the
next is taken. Where an order of a plugin may have changed otherwise, everything is ordered anew.
"""

import heapq
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from spinney.scheduler.fairshare import QueueInfo, QueueTree
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo


class Orders(Protocol):
    """How jobs and queues are ordered."""

    @property
    def queues(self) -> QueueTree:
        """Return the queues."""
        ...

    def job_key(self, job: PodGroupInfo) -> Any:
        """Return what orders jobs of one queue, smallest first."""
        ...

    def job_keys(self, jobs: Sequence[PodGroupInfo]) -> Sequence[Any]:
        """Return the same of many jobs."""
        ...

    def compare_queues(self, left: QueueTurn, right: QueueTurn) -> int:
        """Return a negative number if the left queue goes first."""
        ...

    def job_order_version(self) -> int:
        """Return a number that changes when either order may have changed by itself."""
        ...

    def job_order_is_fixed(self) -> bool:
        """Tell whether that number never changes."""
        ...


class JobOrder:
    """Jobs by turn. Mutable: jobs are pushed and popped; what a job's allocation changed is found at the next pop."""

    def __init__(self, orders: Orders, jobs: Iterable[PodGroupInfo]) -> None:
        self._orders = orders
        self._nodes: dict[int, _QueueNode] = {}
        self._top = _QueueNode(None, self)
        self._length = 0
        self._version = orders.job_order_version()
        leaves: dict[int, _QueueNode] = {}
        listed = list(jobs)
        for job, key in zip(listed, orders.job_keys(listed), strict=True):
            position = orders.queues.index[job.queue]
            leaf = leaves.get(position)
            if leaf is None:
                leaf = leaves[position] = self._node(position)
            leaf.jobs.append(_JobEntry(key, job))
        self._length = len(listed)
        for leaf in leaves.values():
            leaf.jobs.sort()
        for leaf in leaves.values():
            leaf.enlist()

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return self._length > 0

    @property
    def orders(self) -> Orders:
        """Return how jobs and queues are ordered."""
        return self._orders

    def push(self, job: PodGroupInfo) -> None:
        """Add a job, or put one back."""
        leaf = self._node(self._orders.queues.index[job.queue])
        leaf.push_job(job)
        self._length += 1

    def pop(self) -> PodGroupInfo:
        """Take the job whose turn it is."""
        version = self._orders.job_order_version()
        if version != self._version:
            self._version = version
            self._order_anew()
        node = self._top
        while not node.jobs:
            node = node.best_child()
            node.dirty = True
        job = node.pop_job()
        self._took(node, 1)
        return job

    def upcoming(self, most: int) -> Sequence[PodGroupInfo]:
        """Return up to ``most`` jobs whose turn it is next, in order, whatever is placed before: as far as is certain.

        That is so while only one queue has jobs left.
        """
        if not self._orders.job_order_is_fixed():
            return ()
        leaf = self._only_leaf()
        return [] if leaf is None else [entry.job for entry in leaf.jobs[: -most - 1 : -1]]

    def skip(self, jobs: int) -> None:
        """Take the first of the upcoming jobs."""
        if jobs:
            leaf = self._only_leaf()
            assert leaf is not None, "upcoming jobs are of one queue"
            del leaf.jobs[-jobs:]
            self._took(leaf, jobs)

    def _only_leaf(self) -> "_QueueNode | None":
        node = self._top
        while not node.jobs:
            if len(node.children) != 1:
                return None
            node = node.children[0]
        return node

    def _took(self, node: "_QueueNode", jobs: int) -> None:
        self._length -= jobs
        while node.parent is not None and not node.jobs and not node.children:
            node.parent.drop(node)
            node = node.parent

    def _order_anew(self) -> None:
        """Bring everything into the order as it is now."""
        nodes = sorted(self._nodes.items(), key=lambda item: -len(self._orders.queues.paths[item[0]]))
        for node in (*[node for _, node in nodes], self._top):
            node.jobs = [node.entry(each.job) for each in node.jobs]
            node.dirty = False
            node.jobs.sort()
            heapq.heapify(node.children)

    def _node(self, position: int) -> "_QueueNode":
        node = self._nodes.get(position)
        if node is None:
            tree = self._orders.queues
            node = self._nodes[position] = _QueueNode(tree.queues[position], self)
            parent = tree.parent[position]
            node.parent = self._node(parent) if parent >= 0 else self._top
        return node


class _QueueNode:
    """A queue with the jobs or child queues that still have something to give."""

    __slots__ = ("children", "dirty", "jobs", "listed", "order", "parent", "queue")

    def __init__(self, queue: QueueInfo | None, order: JobOrder) -> None:
        self.queue = queue
        self.order = order
        self.parent: _QueueNode | None = None
        self.children: list[_QueueNode] = []
        self.jobs: list[_JobEntry] = []
        self.dirty = False
        self.listed = False

    @property
    def leaf(self) -> bool:
        return bool(self.jobs)

    def push_job(self, job: PodGroupInfo) -> None:
        insort(self.jobs, self.entry(job))
        self.enlist()

    def entry(self, job: PodGroupInfo) -> "_JobEntry":
        return _JobEntry(self.order.orders.job_key(job), job)

    def enlist(self) -> None:
        """Take the place among the siblings, and have the ancestors take theirs, that the best next job gives."""
        node = self
        while node.parent is not None:
            if not node.listed:
                node.listed = True
                heapq.heappush(node.parent.children, node)
            elif not node.dirty:
                # A dirty queue is at the front and finds its place at the next pop; any other may have moved up.
                heapq.heapify(node.parent.children)
            node = node.parent

    def pop_job(self) -> PodGroupInfo:
        return self.jobs.pop().job

    def best_child(self) -> "_QueueNode":
        while self.children[0].dirty:
            child = self.children[0]
            child.dirty = False
            heapq.heapreplace(self.children, child)
        return self.children[0]

    def drop(self, child: "_QueueNode") -> None:
        """Take out a queue that has nothing more to give: the one whose turn it was, at the front."""
        assert self.children[0] is child, "a queue is taken out when its last job is"
        heapq.heappop(self.children)
        child.listed = False
        child.dirty = False

    def next_job(self) -> PodGroupInfo:
        node = self
        while not node.leaf:
            node = node.best_child()
        return node.jobs[-1].job

    def turn(self) -> QueueTurn:
        assert self.queue is not None, "the top is never compared"
        return QueueTurn(self.queue, self.next_job())

    def __lt__(self, other: "_QueueNode") -> bool:
        return self.order.orders.compare_queues(self.turn(), other.turn()) < 0


class _JobEntry:
    """A job with its key; the one that comes first sorts last."""

    __slots__ = ("job", "key")

    def __init__(self, key: Any, job: PodGroupInfo) -> None:
        self.key = key
        self.job = job

    def __lt__(self, other: "_JobEntry") -> bool:
        return bool(other.key < self.key)
