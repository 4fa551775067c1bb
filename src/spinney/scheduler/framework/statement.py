"""A transaction over a session: virtual evictions and placements that are committed together or undone.

Operations are kept in a log. Undoing walks it backwards; since all ledgers are exact integers, what is undone leaves no
trace. A task that a statement evicts keeps holding what it has, as terminating; if the same statement then gives it its
old place, the eviction is cancelled instead, and the task simply stays.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import structlog

from spinney.cluster.journal import Rows
from spinney.cluster.resources import Vector
from spinney.cluster.state import holding_of
from spinney.cluster.statuses import PodStatus
from spinney.cluster.table import Holding
from spinney.gangs.tree import GangKey
from spinney.runtime.faults import raised, told
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session

log = structlog.get_logger()


class UnsoundSession(RuntimeError):
    """What a session has on its books may not be what it decided: it must not decide anything more."""

    def __init__(self, while_doing: str, cause: BaseException) -> None:
        super().__init__(f"the session cannot go on after {while_doing}: {told(cause)}")
        self.cause = cause


class Whereabouts(NamedTuple):
    """Status and place of a task, to go back to."""

    status: PodStatus
    row: int
    node_name: str
    gpu_groups: tuple[str, ...]
    virtual: bool

    @classmethod
    def of(cls, task: PodInfo) -> "Whereabouts":
        return cls(task.status, task.row, task.node_name, task.gpu_groups, task.virtual)

    def restore(self, task: PodInfo) -> None:
        before = task.status
        task.status, task.row, task.node_name, task.gpu_groups, task.virtual = self
        task.job.moved(task, before)


class Operation(ABC):
    """Something a statement did, which can be undone and finally committed."""

    @abstractmethod
    def do(self, session: "Session") -> None:
        """Carry the operation out on the session."""

    @abstractmethod
    def undo(self, session: "Session") -> None:
        """Restore what was before :meth:`do`."""

    def commit(self, session: "Session") -> None:  # noqa: B027 - some operations only change how others end
        """Make the operation part of the session's result."""


class Evict(Operation):
    """A task on a node is told to go."""

    def __init__(self, task: PodInfo, message: str, beneficiary: GangKey | None) -> None:
        self.task = task
        self.message = message
        self.beneficiary = beneficiary
        self.cancelled = False
        self._before = Whereabouts.of(task)

    def do(self, session: "Session") -> None:
        task, before = self.task, self._before
        ledger = session.ledger
        ledger.remove(before.row, task.request, holding_of(before.status), before.gpu_groups)
        ledger.add(before.row, task.request, Holding.RELEASING, before.gpu_groups)
        task.status, task.virtual = PodStatus.RELEASING, True
        task.job.moved(task, before.status)
        session.ask.announce_deallocation([task])

    def undo(self, session: "Session") -> None:
        task, before = self.task, self._before
        session.ask.announce_allocation([task])
        ledger = session.ledger
        ledger.remove(before.row, task.request, Holding.RELEASING, before.gpu_groups)
        ledger.add(before.row, task.request, holding_of(before.status), before.gpu_groups)
        before.restore(task)

    def commit(self, session: "Session") -> None:
        if not self.cancelled:
            self.task.virtual = False
            self.task.job.settled()
            session.record_eviction(self.task, self._before.node_name, self.message, self.beneficiary)


class AskToLeave(Evict):
    """A task on a node was asked to go: it counts as terminating, but nobody evicts it for that."""

    def __init__(self, task: PodInfo) -> None:
        super().__init__(task, "", None)

    def commit(self, session: "Session") -> None:
        self.task.virtual = False
        self.task.job.settled()


class CancelEviction(Operation):
    """An eviction of the same statement is taken back."""

    def __init__(self, eviction: Evict) -> None:
        self._eviction = eviction

    def do(self, session: "Session") -> None:
        self._eviction.cancelled = True
        self._eviction.undo(session)

    def undo(self, session: "Session") -> None:
        self._eviction.cancelled = False
        self._eviction.do(session)


class Withdraw(Operation):
    """A promise that was committed before is taken back; nothing runs there that could be told to go.

    The task is pending again, or, if it was evicted from somewhere, just that.
    """

    def __init__(self, task: PodInfo) -> None:
        self._task = task
        self._before = Whereabouts.of(task)

    def do(self, session: "Session") -> None:
        task, before, nodes = self._task, self._before, session.nodes
        session.ask.announce_deallocation([task])
        session.ledger.remove(before.row, task.request, Holding.PIPELINED, before.gpu_groups)
        home = self._home(session)
        if home != before.row:
            nodes.take(task.record, before.row)
        if home == NOWHERE:
            Whereabouts(PodStatus.PENDING, NOWHERE, "", (), virtual=False).restore(task)
        else:
            nodes.put(task.record, home)
            record = task.record
            Whereabouts(PodStatus.RELEASING, home, record.node, record.gpu_groups, virtual=True).restore(task)

    def undo(self, session: "Session") -> None:
        task, before = self._task, self._before
        session.ledger.add(before.row, task.request, Holding.PIPELINED, before.gpu_groups)
        session.nodes.put(task.record, before.row)
        before.restore(task)
        session.ask.announce_allocation([task])

    def commit(self, session: "Session") -> None:
        if self._task.status is PodStatus.RELEASING:
            self._task.virtual = False
            self._task.job.settled()
        session.withdraw_pipelined(self._task)

    def _home(self, session: "Session") -> int:
        row = session.nodes.table.find(self._task.record.node) if self._task.record.node else None
        return NOWHERE if row is None else row


class PlaceOne(Operation):
    """A task is given a node, or promised one."""

    def __init__(self, task: PodInfo, node: NodeInfo, status: PodStatus, groups: tuple[str, ...]) -> None:
        self.task = task
        self._node = node
        self._status = status
        self._groups = groups
        self._before = Whereabouts.of(task)
        self._arrived = True

    def do(self, session: "Session") -> None:
        task, node = self.task, self._node
        session.ledger.add(node.row, task.request, holding_of(self._status), self._groups)
        self._arrived = session.nodes.put(task.record, node.row)
        task.status, task.row, task.node_name = self._status, node.row, node.name
        task.gpu_groups, task.virtual = self._groups, True
        task.job.moved(task, self._before.status)
        session.ask.announce_allocation([task])

    def undo(self, session: "Session") -> None:
        task, node = self.task, self._node
        session.ask.announce_deallocation([task])
        session.ledger.remove(node.row, task.request, holding_of(self._status), self._groups)
        if self._arrived:
            session.nodes.take(task.record, node.row)
        if self._before.row != NOWHERE:
            session.nodes.put(task.record, self._before.row)
        self._before.restore(task)

    def commit(self, session: "Session") -> None:
        session.record_placements((self.task,))


class PlaceMany(Operation):
    """Identical pending tasks of one pod set are given nodes in one go."""

    def __init__(self, tasks: Sequence[PodInfo], rows: Rows, counts: Vector) -> None:
        self.tasks = tasks
        self._rows = rows
        self._counts = counts

    def do(self, session: "Session") -> None:
        tasks, nodes = self.tasks, session.nodes
        session.ledger.add_many(self._rows, self._counts, tasks[0].request)
        names, places = nodes.table.names, np.repeat(self._rows, self._counts).tolist()
        for task, row in zip(tasks, places, strict=True):
            task.status = PodStatus.ALLOCATED
            task.row = row
            task.node_name = names[row]
            task.virtual = True
        nodes.put_many(tasks, places)
        tasks[0].job.moved_many(tasks[0].pod_set, PodStatus.PENDING, PodStatus.ALLOCATED, len(tasks))
        session.ask.announce_allocation(tasks)

    def undo(self, session: "Session") -> None:
        tasks, nodes = self.tasks, session.nodes
        session.ask.announce_deallocation(tasks)
        nodes.take_many(tasks, [task.row for task in tasks])
        for task in tasks:
            task.status = PodStatus.PENDING
            task.row = NOWHERE
            task.node_name = ""
            task.virtual = False
        tasks[0].job.moved_many(tasks[0].pod_set, PodStatus.ALLOCATED, PodStatus.PENDING, len(tasks))
        session.ledger.add_many(self._rows, -self._counts, tasks[0].request)

    def commit(self, session: "Session") -> None:
        session.record_placements(self.tasks)


class Postpone(Operation):
    """A task that was given a node is only promised it."""

    def __init__(self, task: PodInfo) -> None:
        self._task = task

    def do(self, session: "Session") -> None:
        self._change(session, PodStatus.ALLOCATED, PodStatus.PIPELINED)

    def undo(self, session: "Session") -> None:
        self._change(session, PodStatus.PIPELINED, PodStatus.ALLOCATED)

    def _change(self, session: "Session", before: PodStatus, after: PodStatus) -> None:
        task = self._task
        session.ledger.remove(task.row, task.request, holding_of(before), task.gpu_groups)
        session.ledger.add(task.row, task.request, holding_of(after), task.gpu_groups)
        task.status = after
        task.job.moved(task, before)


class Statement:
    """The log of one transaction. Mutable; used until it is committed or discarded."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._log: list[Operation] = []

    def __len__(self) -> int:
        return len(self._log)

    def evict(self, task: PodInfo, message: str = "", *, beneficiary: GangKey | None = None) -> None:
        """Tell a placed task to go: it keeps what it holds, as terminating, until the pod is gone.

        From a task that was only promised a node, the promise is taken back.
        """
        self._do(Withdraw(task) if task.status is PodStatus.PIPELINED else Evict(task, message, beneficiary))

    def ask(self, task: PodInfo) -> None:
        """Count a task that was asked to go as terminating, as long as this session lasts."""
        self._do(AskToLeave(task))

    def allocate(self, task: PodInfo, node: NodeInfo, gpu_groups: tuple[str, ...] = ()) -> None:
        """Give a task a node where it fits now."""
        self._do(PlaceOne(task, node, PodStatus.ALLOCATED, gpu_groups))

    def allocate_many(self, tasks: Sequence[PodInfo], rows: Rows, counts: Vector) -> None:
        """Give ``counts[i]`` of the identical ``tasks``, in order, each of the distinct ``rows``."""
        self._do(PlaceMany(tasks, rows, counts))

    def pipeline(self, task: PodInfo, node: NodeInfo, gpu_groups: tuple[str, ...] = ()) -> None:
        """Promise a task a node where it fits once what is terminating is gone.

        A task that this statement evicted from that very node simply stays, unless its devices would change.
        """
        stays = task.row == node.row and task.status is PodStatus.RELEASING and task.virtual
        same_devices = task.request.share is None or set(gpu_groups) == set(task.gpu_groups)
        if stays and same_devices:
            eviction = self._eviction_of(task)
            if eviction is not None:
                self._do(CancelEviction(eviction))
                return
        self._do(PlaceOne(task, node, PodStatus.PIPELINED, gpu_groups))

    def convert_all_allocated_to_pipelined(self, job: PodGroupInfo) -> None:
        """Turn every placement of the job in this statement into a promise of the same node."""
        for operation in list(self._log):
            if isinstance(operation, PlaceOne):
                tasks: Sequence[PodInfo] = (operation.task,)
            elif isinstance(operation, PlaceMany):
                tasks = operation.tasks
            else:
                continue
            for task in tasks:
                if task.job is job and task.status is PodStatus.ALLOCATED:
                    self._do(Postpone(task))

    def checkpoint(self) -> int:
        """Return a point to roll back to."""
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        """Undo everything since ``checkpoint``."""
        while len(self._log) > checkpoint:
            self._log.pop().undo(self._session)

    def discard(self) -> None:
        """Undo everything."""
        self.rollback(0)

    def commit(self) -> None:
        """Make everything part of the session's result; the statement is then empty."""
        try:
            for kind, operations in groupby(self._log, key=_kind):
                if kind is not None:
                    self._session.record_placements([each.task for each in cast("Iterator[PlaceOne]", operations)])
                    continue
                for operation in operations:
                    operation.commit(self._session)
        except raised() as error:
            raise UnsoundSession("committing", error) from error
        self._log.clear()

    def _do(self, operation: Operation) -> None:
        try:
            operation.do(self._session)
        except raised() as error:
            raise UnsoundSession("booking", error) from error
        self._log.append(operation)

    def _eviction_of(self, task: PodInfo) -> Evict | None:
        for operation in reversed(self._log):
            if isinstance(operation, Evict) and operation.task is task and not operation.cancelled:
                return operation
        return None


def _kind(operation: Operation) -> tuple[int, str, int, PodStatus] | None:
    """Return what placements of single tasks have in common that become part of the result together."""
    if not isinstance(operation, PlaceOne):
        return None
    task = operation.task
    return id(task.job), task.pod_set.name, task.request.number, task.status
