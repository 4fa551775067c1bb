"""Devices that tasks get through claims, in the ledger and in the claim book of a session.

GPUs published on a node count as GPUs of the node, and a claim for GPUs counts as that many for every task that uses
it. So the ledger of a session is corrected when it opens: capacity for published GPUs, use for the claims of pods
already placed; and a task's request is its pod's plus the GPUs of its claims. What a pod asks for without a claim comes
from the node's allocatable alone, and is counted apart as well. A pod that got its node from no scheduler may have
claims that were never allocated: it has no devices through them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spinney.api.pod_requests import LARGEST_AMOUNT
from spinney.cluster.classes import RequestClass
from spinney.cluster.dra.allocating import GivenDevice, SearchBudget, allocate, is_within_counters
from spinney.cluster.dra.book import ClaimBook, ClaimKey, claims_of
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.resources import GPU, UNCLAIMED_GPU_NAME
from spinney.cluster.state import holding_of
from spinney.cluster.statuses import ACTIVE_USED
from spinney.cluster.table import Holding, Mask
from spinney.scheduler.framework.nodes import Nodes, NodeSet
from spinney.scheduler.framework.tasks import PodInfo


class ClaimedDevices:
    """Claims of a session and the devices they take. Mutable: tasks take and release claims as they move."""

    def __init__(self, book: ClaimBook, nodes: Nodes) -> None:
        self.book = book
        self._nodes = nodes
        self._catalogue = book.catalogue
        self._taken = set(book.taken())
        self._last: dict[ClaimKey, tuple[str, tuple[GivenDevice, ...]]] = {}
        """What claims held before they were freed: an eviction that is undone gives back the very same devices."""
        self._requests: dict[tuple[int, tuple[ClaimKey, ...]], RequestClass] = {}
        self._lacking: dict[PodKey, tuple[ClaimKey, ...]] = {}
        """The claims through which placed pods have devices, of those that have none through others they name."""
        self._unclaimed: int | None = None
        """The column of GPUs that are not for claims, where nodes have both."""
        self._correct_ledger()

    def effective_request(self, record: PodRecord) -> RequestClass:
        """Return what a pod asks for, the GPUs of its claims included."""
        if not self.changes(record.request):
            return record.request
        held = self._lacking.get(record.key)
        keys = tuple(claims_of(record.pod)) if held is None else held
        known = self._requests.get((record.request.number, keys))
        if known is None:
            known = self._requests[record.request.number, keys] = self._corrected(record.request, keys)
        return known

    def changes(self, request: RequestClass) -> bool:
        """Tell whether what a pod asks for may be counted otherwise than its request class says."""
        return bool(request.constraints.claims or (self._unclaimed is not None and request.gpus))

    def _corrected(self, request: RequestClass, keys: tuple[ClaimKey, ...]) -> RequestClass:
        claims = [self.book.claims[key] for key in keys if key in self.book.claims]
        # A claim that nothing can meet takes nothing, so that it is what a pod waits for, not room for its GPUs.
        counted = (each.gpus for each in claims if each.allocated or not self.book.problem(each))
        gpus = min(sum(counted), LARGEST_AMOUNT)
        apart = request.gpus if self._unclaimed is not None else 0
        if not gpus and not apart:
            return request
        requests = request.vector(self._nodes.table.axis.width).copy()
        requests[GPU] += gpus
        if self._unclaimed is not None:
            requests[self._unclaimed] = apart
        requests.setflags(write=False)
        # Numbers of classes made here are negative, so they never meet those of the cluster; without claims a class
        # has the same in every session, for what is remembered of it.
        number = -1 - 2 * len(self._requests) if keys else -2 - 2 * request.number
        return replace(request, number=number, requests=requests)

    @property
    def are_published(self) -> bool:
        """Tell whether a driver publishes GPUs of any node."""
        return bool(self._catalogue.gpus)

    def published(self, nodes: NodeSet) -> Mask:
        """Return which of ``nodes`` a driver publishes GPUs of."""
        by_node = self._catalogue.gpus
        return np.array([name in by_node for name in nodes.names], dtype=np.bool_)

    def serving(self, keys: Sequence[ClaimKey], nodes: NodeSet) -> Mask:
        """Return which of ``nodes`` have the devices that claims hold, or can give them what they ask for."""
        if any(key not in self.book.claims for key in keys):
            return np.zeros(len(nodes), dtype=np.bool_)
        claims = [self.book.claims[key] for key in keys]
        places = {claim.node for claim in claims if claim.allocated}
        asks = [claim.ask for claim in claims if not claim.allocated]
        budget = SearchBudget()

        def serves(node: str) -> bool:
            if not places <= {node}:
                return False
            return not asks or allocate(self._catalogue, node, asks, self._taken, budget) is not None

        return np.array([serves(name) for name in nodes.names], dtype=np.bool_)

    def take(self, task: PodInfo) -> None:
        """Allocate the claims of a task on the node it was placed on, and reserve them for it."""
        keys = [key for key in claims_of(task.record.pod) if key in self.book.claims]
        given = self._choose([key for key in keys if not self.book.claims[key].allocated], task.node_name)
        for key in keys:
            devices = given.get(key, ())
            self._taken.update(device.published for device in devices if not device.admin)
            self.book.assign(key, task.node_name, devices, task.uid)

    def _choose(self, keys: Sequence[ClaimKey], node: str) -> dict[ClaimKey, tuple[GivenDevice, ...]]:
        before = [self._last.get(key) for key in keys]
        if all(held is not None and held[0] == node for held in before):
            again = {key: held[1] for key, held in zip(keys, before, strict=True) if held is not None}
            held = [device.published for devices in again.values() for device in devices if not device.admin]
            if self._taken.isdisjoint(held) and is_within_counters(self._catalogue, node, held, self._taken):
                return again
        found = allocate(self._catalogue, node, [self.book.claims[key].ask for key in keys], self._taken)
        return dict(zip(keys, found, strict=True)) if found is not None else {}

    def release(self, task: PodInfo) -> None:
        """End the reservations of a task; claims nobody else uses are freed."""
        for key in claims_of(task.record.pod):
            claim = self.book.claims.get(key)
            if claim is None or task.uid not in claim.consumers:
                continue
            self.book.release(key, task.uid)
            if not self.book.claims[key].allocated:
                self._last[key] = claim.node, claim.devices
                self._taken.difference_update(device.published for device in claim.devices if not device.admin)

    def of_task(self, task: PodInfo) -> Mapping[ClaimKey, tuple[GivenDevice, ...]]:
        """Return the devices of a task's claims."""
        found = {key: self.book.claims.get(key) for key in claims_of(task.record.pod)}
        return {key: claim.devices for key, claim in found.items() if claim is not None}

    def _correct_ledger(self) -> None:
        table = self._nodes.table
        rows = ((table.find(name), count) for name, count in self._catalogue.gpus.items())
        published = [(row, count) for row, count in rows if row is not None]
        if published:
            self._unclaimed = table.split_off(UNCLAIMED_GPU_NAME, GPU)
        for row, count in published:
            table.allocatable[row, GPU] += count
            table.idle[row, GPU] += count
        if not self.book.claims:
            return
        for row in list(self._nodes.pods.rows()):
            for record in self._nodes.pods.of_row(row).values():
                if record.pod.spec.resource_claims and record.status in ACTIVE_USED:
                    self._note_lacking(record)
                    gpus = self.effective_request(record).gpus - record.request.gpus
                    table.used[row, GPU] += gpus
                    table.idle[row, GPU] -= gpus
                    if holding_of(record.status) is Holding.RELEASING:
                        table.releasing[row, GPU] += gpus

    def _note_lacking(self, record: PodRecord) -> None:
        keys = claims_of(record.pod)
        held = tuple(key for key in keys if key in self.book.claims and self.book.claims[key].allocated)
        if len(held) < len(keys):
            self._lacking[record.key] = held
