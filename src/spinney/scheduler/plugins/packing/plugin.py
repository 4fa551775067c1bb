"""packing: put pods where they spoil least for those still to come.

A node loses by a pod in three ways, each counted in GPUs, and the node that loses least wins:

* GPUs are *stranded*: too little CPU, memory or whatever else is left beside them for the pods that ask for GPUs;
* the rest of a shared GPU fits nothing that is asked for (:mod:`~spinney.scheduler.plugins.packing.leftovers`);
* an emptier node is broken into: a little, so that whole nodes stay for those that need them.

What is asked for is learned from the pods that are placed. Near-equal nodes count as equal: for pods that take whole
GPUs the one goes first whose most plentiful resource is least free, then they go in order of name. Filling one after
the other packs better than going by the last thousandth. Pods without GPUs on nodes without GPUs fill the fullest
first.
"""

from collections.abc import Sequence
from dataclasses import replace
from operator import gt, mul, sub
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import distinct
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.sharing import Parts
from spinney.extensions.arguments import read_arguments
from spinney.scheduler import scores
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.devices import WHOLE_DEVICE
from spinney.scheduler.plugins.packing.free_amounts import GPUS, STRANDED, WHOLE, Columns, Facts, FreeAmounts
from spinney.scheduler.plugins.packing.learning import Knowledge, learn
from spinney.scheduler.plugins.packing.workload import (
    LEVELS,
    Amounts,
    DemandMix,
    asked_of,
    gpus_of,
    needs_of,
    stranded_gpus,
    stranded_on,
)
from spinney.scheduler.plugins.resourcetype import needs_no_gpu

_FREE_GPU: Final = 0.15 / 8
"""What a free GPU on the node counts, so that fuller nodes come first."""
_SPACE: Final = 3.0
"""What space of a device counts that its rest can no longer be used for."""
_OPENING: Final = 0.01
"""What it counts to share a device that nobody shares yet."""
_EQUAL: Final = 0.01
"""Nodes that differ by less than about this count as equal."""
_PLENTY: Final = _EQUAL / 100
"""What a resource counts that is free on all of a node: it decides between equal nodes only."""
_FEW: Final = 12
"""Up to so many nodes, numbers are quicker than arrays."""


class Learning(msgspec.Struct, frozen=True, rename="camel"):
    """Whom to learn from."""

    learn_from_waiting: bool = False
    """Look at pods that wait, too, not only at those that are placed."""


class Packing(Plugin):
    """Scores nodes, and the devices of a node, by what is lost there."""

    name = "packing"
    arguments_type = Learning
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the scores."""
        self._session = session
        self._nodes = session.nodes
        self._table = session.nodes.table
        self._waiting_too = read_arguments(Learning, self.arguments).learn_from_waiting
        self._counts = asked_of(session.snapshot.gangs.holdings.values(), waiting_too=self._waiting_too)
        self._placed = asked_of(session.snapshot.gangs.holdings.values()).total()
        self._memory = session.charges.sizes.smallest
        everything = session.nodes.all.rows
        offered = self._table.allocatable
        largest = float(offered[everything, GPU].max(initial=0))
        self._scale = scores.MAX_DENSITY / (2 * (largest * (1 + _FREE_GPU) + _SPACE + _OPENING))
        self._step = -self._scale * _EQUAL
        """What nodes that are not equal differ by, for each such step that one of them loses more."""
        self._largest_cpu = float(max(offered[everything, CPU].max(initial=0), 1))
        self._recall()
        session.add_node_order_columns(
            self._fullness, per_job=False, monotone=True, for_requests=_shares_nothing, few=self._fullness_of_few
        )
        session.add_node_order_columns(
            self._leftover, per_job=False, for_requests=_shares_device, few=self._leftover_of_few
        )
        session.add_node_order_columns(
            self._stranding, per_job=False, applies_to=self._may_strand, few=self._stranding_of_few
        )
        session.add_gpu_order_fn(self._device)
        session.add_event_handler(
            EventHandler(
                allocate_many=lambda event: self._count(event, 1),
                deallocate_many=lambda event: self._count(event, -1),
                ahead=lambda _: self._known.pods_ahead(self._placed),
            )
        )

    # -- what is known -----------------------------------------------------------------------------------------------

    def _recall(self) -> None:
        """Take up what an earlier session has learned, if it still holds."""
        known = self._session.memory.get(self.name)
        if isinstance(known, Knowledge) and known.holds_for(self._placed):
            known = replace(known, sessions=known.sessions + 1)
        else:
            known = learn(self._counts, self._placed, self._nodes, self._memory)
        self._follow(known.workload)
        self._use(known)

    def _follow(self, workload: DemandMix) -> None:
        """Follow what is free of the resources that a workload asks for."""
        self._amounts = FreeAmounts(self._nodes, workload)
        self._taken: dict[int, tuple[Facts, Columns]] = {}

    def _use(self, known: Knowledge) -> None:
        self._known = self._session.memory[self.name] = known
        self._worth = known.values[np.arange(DEVICE + 1) * LEVELS // DEVICE]
        """What free space of a device is worth, by parts that are free."""
        self._losses: dict[int, Amounts] = {}
        self._demanding: dict[int, bool] = {}
        if not self._amounts.take_up(known.workload):
            self._follow(known.workload)
        self._last_left: tuple[Columns, RequestClass, Columns] | None = None
        """What was free somewhere, who was asked about last, and what such a pod leaves."""
        self._last_few_left: tuple[Sequence[Facts], RequestClass, Sequence[Facts]] | None = None
        self._none_stranded = False
        """No GPU was stranded when they were last looked at, and nothing has happened since that could strand one."""

    def _count(self, event: BatchEvent, sign: int) -> None:
        """Follow what is placed in this session; learn anew when that is much."""
        if not self._waiting_too:
            self._counts[event.request] += sign * event.count
        self._placed += sign * event.count
        if sign < 0 or self._is_demanding(event.request):
            self._none_stranded = False
        if sign > 0 and not self._known.holds_for(self._placed):
            known = learn(self._counts, self._placed, self._nodes, self._memory)
            if known.says_the_same_as(self._known):
                self._known = self._session.memory[self.name] = known
            else:
                self._use(known)
                self._session.scores_changed()

    # -- scores ------------------------------------------------------------------------------------------------------

    def _fullness(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        rows, table = nodes.rows, self._table
        request = task.request
        left = self._left_by(request, self._amounts.at(rows))
        if needs_no_gpu(request):
            cpu = table.idle[:, CPU].take(rows) + table.releasing[:, CPU].take(rows)
            without = table.allocatable[:, GPU].take(rows) == 0
            part = np.minimum(np.maximum(cpu / self._largest_cpu, 0.0), 1.0)
            found: Scores = -self._scale * np.where(without, part, _FREE_GPU * left[0])
            return found
        found = self._score(_FREE_GPU * left[0])
        if self._known.workload.needs_company:
            parts = self._amounts.parts_of_nodes().take(rows, axis=1)
            found -= self._scale * _PLENTY * np.maximum.reduce(np.multiply(left, parts, out=parts))
        return found

    def _fullness_of_few(self, request: RequestClass, rows: Sequence[int]) -> list[float]:
        space = self._amounts.of_few(rows)
        if needs_no_gpu(request):
            return [-self._scale * self._lost_without_gpu(row, free) for row, free in zip(rows, space, strict=True)]
        step, amounts = self._step, self._few_left_by(request, space)
        if not self._known.workload.needs_company:
            return [round(_FREE_GPU * left[0] / _EQUAL) * step for left in amounts]
        plenty = self._scale * _PLENTY
        return [
            round(_FREE_GPU * left[0] / _EQUAL) * step - plenty * max(map(mul, left, parts))
            for left, parts in zip(amounts, self._amounts.parts_of_few(rows), strict=True)
        ]

    def _lost_without_gpu(self, row: int, free: Facts) -> float:
        """Return what a node loses by a pod that needs no GPU."""
        table = self._table
        if table.allocatable.item(row, GPU):
            return _FREE_GPU * free[GPUS]
        cpu = table.idle.item(row, CPU) + table.releasing.item(row, CPU)
        return min(max(cpu / self._largest_cpu, 0.0), 1.0)

    def _leftover(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        """Judge by the device of each node that loses least."""
        share = task.request.share
        assert share is not None, "only pods that share a device are asked about"
        free, spaces = self._amounts.at(nodes.rows), self._nodes.ledger.shared.kept_later(nodes.rows)
        if share.parts:
            return self._score(self._lost_to(share.parts, share.devices, free, spaces))
        lost: Amounts = np.empty(len(nodes))
        sizes = share.parts_on_each(self._table.gpu_memory[nodes.rows])
        for size in distinct(sizes).tolist():
            here = sizes == size
            lost[here] = self._lost_to(size, share.devices, free[:, here], spaces[:, here])
        return self._score(lost)

    def _lost_to(self, size: int, devices: int, free: Columns, spaces: Parts) -> Amounts:
        """Return what nodes lose by ``size`` parts of so many devices; ``spaces`` is what is free of shared ones."""
        parts = min(size, DEVICE)  # a share of more than a device fits nowhere, whatever it scores
        losses = self._losses_of(parts)
        whole = np.where(free[WHOLE] > 0, losses[DEVICE] + _OPENING, np.inf)
        best = np.minimum(np.minimum.reduce(losses.take(spaces, mode="clip"), initial=np.inf), whole)
        best[best == np.inf] = 1.0
        found: Amounts = _SPACE * best + _FREE_GPU * (free[GPUS] - parts * devices / DEVICE)
        return found

    def _leftover_of_few(self, request: RequestClass, rows: Sequence[int]) -> list[float]:
        share, memory, step = request.share, self._table.gpu_memory.item, self._step
        assert share is not None, "only pods that share a device are asked about"
        found: list[float] = []
        for row, free in zip(rows, self._amounts.of_few(rows), strict=True):
            parts = min(share.parts or share.parts_on(memory(row)), DEVICE)
            lost = _SPACE * self._lost_on(row, parts, opens=free[WHOLE] > 0)
            found.append(round((lost + _FREE_GPU * (free[GPUS] - parts * share.devices / DEVICE)) / _EQUAL) * step)
        return found

    def _lost_on(self, row: int, parts: int, *, opens: bool) -> float:
        """Return what the device of a node loses that loses least; ``opens`` says that one could be shared anew."""
        losses = self._losses_of(parts).item
        lost = [losses(space) for space in self._nodes.ledger.shared.kept_later_on(row) if space >= parts]
        if opens:
            lost.append(losses(DEVICE) + _OPENING)
        return min(lost, default=1.0)

    def _stranding(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        request, workload = task.request, self._known.workload
        if len(nodes.rows) <= _FEW:
            return np.array(self._stranding_of_few(request, nodes.rows.tolist()))
        free = self._amounts.at(nodes.rows)
        left = self._left_by(request, free)
        return self._score(stranded_gpus(workload, left[0], left[1:]) - free[STRANDED])

    def _stranding_of_few(self, request: RequestClass, rows: Sequence[int]) -> list[float]:
        workload, space, step = self._known.workload, self._amounts.of_few(rows), self._step
        return [
            round((stranded_on(workload, *left) - free[STRANDED]) / _EQUAL) * step
            for left, free in zip(self._few_left_by(request, space), space, strict=True)
        ]

    def _device(self, task: PodInfo, node: NodeInfo, gpu: str) -> float:
        share = task.request.share
        assert share is not None, "only pods that share a device choose one"
        free = DEVICE if gpu == WHOLE_DEVICE else node.shared_gpus[gpu].free_later
        rest = max(free - share.parts_on(node.gpu_memory), 0)
        value = self._known.values.item
        lost = value(free * LEVELS // DEVICE) - value(rest * LEVELS // DEVICE)
        opening = _OPENING if gpu == WHOLE_DEVICE else 0.0
        return -lost - opening - _EQUAL * rest / DEVICE

    def _may_strand(self, task: PodInfo) -> bool:
        """Tell whether a pod could strand GPUs, or use some that others strand.

        It cannot if nothing is stranded and the pod asks for no more beside its GPUs than others do. Such pods need
        not be judged one by one.
        """
        if not self._known.workload.needs_company:
            return False
        if self._is_demanding(task.request):
            return True
        if not self._none_stranded:
            self._none_stranded = self._amounts.strands_none()
        return not self._none_stranded

    def _is_demanding(self, request: RequestClass) -> bool:
        """Tell whether a pod asks for more beside its GPUs than others do: only such a pod can strand GPUs."""
        demanding = self._demanding.get(request.number)
        if demanding is None:
            gpus, *beside = self._taken_by(request)
            least = [gpus * ratio for ratio in self._known.workload.hungriest_first[-1]]
            demanding = self._demanding[request.number] = any(map(gt, beside, least))
        return demanding

    # -- what is worked out once -------------------------------------------------------------------------------------

    def _losses_of(self, parts: int) -> Amounts:
        """Return what is lost when ``parts`` of a device are taken, by the parts that are free there before."""
        known = self._losses.get(parts)
        if known is None:
            known = self._losses[parts] = np.empty(DEVICE + 1)
            known[:parts] = np.inf
            known[parts:] = self._worth[parts:] - self._worth[: DEVICE + 1 - parts]
        return known

    def _taken_by(self, request: RequestClass) -> Facts:
        """Return the GPUs that a pod takes, shares as fractions, and what it takes of others: ``[what]``."""
        return self._taken_in_both_forms(request)[0]

    def _left_by(self, request: RequestClass, free: Columns) -> Columns:
        """Return what a pod leaves of the GPUs and of others that are free; the scores of a pod ask for it in turn."""
        known = self._last_left
        if known is None or known[0] is not free or known[1] is not request:
            known = self._last_left = (free, request, free[GPUS:] - self._taken_in_both_forms(request)[1])
        return known[2]

    def _few_left_by(self, request: RequestClass, space: Sequence[Facts]) -> Sequence[Facts]:
        """Return the same of a few nodes as numbers, ``[node][what]``."""
        known = self._last_few_left
        if known is None or known[0] is not space or known[1] is not request:
            taken = self._taken_by(request)
            known = self._last_few_left = (space, request, [list(map(sub, free[GPUS:], taken)) for free in space])
        return known[2]

    def _taken_in_both_forms(self, request: RequestClass) -> tuple[Facts, Columns]:
        """Return what a pod takes as numbers, and as a column to take from those of nodes."""
        known = self._taken.get(request.number)
        if known is None:
            facts = [gpus_of(request, self._memory), *needs_of(request, self._known.workload.columns).tolist()]
            known = self._taken[request.number] = (facts, np.array(facts)[:, None])
        return known

    def _score(self, lost: Amounts) -> Scores:
        found: Scores = np.divide(lost, _EQUAL)
        np.rint(found, out=found)
        found *= self._step
        return found


def _shares_device(request: RequestClass) -> bool:
    return request.share is not None


def _shares_nothing(request: RequestClass) -> bool:
    return request.share is None
