"""The cluster to try things on: evict here, place there, and see what fits. Nothing outside notices.

A trial is a fork of the columns, so it costs a copy of small arrays once; each step after that costs one row. Devices
that pods hold through claims are part of it: a pod that is evicted gives up those that nobody else uses, one that is
placed takes some.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from spinney.cluster.dra.allocating import allocate
from spinney.cluster.dra.book import ClaimBook, ClaimState, claims_of
from spinney.cluster.filters import ClusterView
from spinney.cluster.pods import PodIndex, PodRecord
from spinney.cluster.state import ClusterState, holding_of
from spinney.cluster.statuses import ACTIVE_USED
from spinney.cluster.table import Holding
from spinney.coscheduling.feasibility.nominations import Nomination
from spinney.coscheduling.framework.points import CycleState, StateKey
from spinney.kube.keys import Key

DEVICES: Final[StateKey[ClaimBook]] = StateKey("device claims of a trial")
"""What filters look at instead of the cluster's claims while they are asked about a trial."""


class TrialState:
    """A private copy of the cluster. Mutable."""

    def __init__(
        self, cluster: "ClusterState | TrialState", claims: ClaimBook, nominations: Iterable[Nomination] = ()
    ) -> None:
        self.view: ClusterView = cluster.view.fork()
        self.on_node: PodIndex = cluster.on_node.fork()
        self.claims = claims.fork()
        self._given_up: dict[Key, list[ClaimState]] = {}
        for nomination in nominations:
            row = self.view.table.find(nomination.node)
            if row is not None:
                self.place(nomination.record, row)

    def fork(self) -> "TrialState":
        """Return a trial that goes on from here, in one of several ways; what was evicted before stays so in it."""
        return TrialState(self, self.claims)

    @contextmanager
    def asked(self, state: CycleState) -> Iterator[None]:
        """Have filters that are asked within the block look at the trial's devices."""
        with state.lending(DEVICES, self.claims):
            yield

    def pods_on(self, row: int) -> Mapping[Key, PodRecord]:
        """Return the pods that are on a node in the cluster and were not evicted here."""
        return self.on_node.of_row(row)

    def evict(self, record: PodRecord) -> None:
        """Take a pod off its node."""
        row = self.view.table.row(record.node)
        self.view.table.subtract(row, holding_of(record.status), record.request.requests)
        self.view.pods.remove(record.key)
        self.on_node.remove(row, record.key)
        claims = (self.claims.claims[key] for key in self._claims_of(record))
        held = [claim for claim in claims if record.uid in claim.consumers]
        if held:
            self._given_up[record.key] = held
            for claim in held:
                self.claims.release(claim.key, record.uid)

    def restore(self, record: PodRecord) -> None:
        """Undo :meth:`evict`."""
        row = self.view.table.row(record.node)
        self.view.table.add(row, holding_of(record.status), record.request.requests)
        self.view.pods.place(record.pod, row)
        self.on_node.add(row, record)
        for claim in self._given_up.pop(record.key, ()):
            self.claims.assign(claim.key, claim.node, claim.devices, record.uid)

    def place(self, record: PodRecord, row: int) -> None:
        """Put a pending pod on a node; it does not count among :meth:`pods_on`, for it is nobody's victim."""
        if record.status in ACTIVE_USED:
            return
        self.view.table.add(row, Holding.ACTIVE, record.request.requests)
        self.view.pods.place(record.pod, row)
        self._take_devices(record, self.view.table.names[row])

    def _take_devices(self, record: PodRecord, node: str) -> None:
        keys = self._claims_of(record)
        wanted = [key for key in keys if not self.claims.claims[key].allocated]
        asks = [self.claims.claims[key].ask for key in wanted]
        given = allocate(self.claims.catalogue, node, asks, self.claims.taken()) or [()] * len(wanted)
        devices = dict(zip(wanted, given, strict=True))
        for key in keys:
            self.claims.assign(key, node, devices.get(key, ()), record.uid)

    def _claims_of(self, record: PodRecord) -> list[Key]:
        if not record.pod.spec.resource_claims:
            return []
        return [key for key in claims_of(record.pod) if key in self.claims.claims]
