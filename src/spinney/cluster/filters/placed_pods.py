"""The pods on the nodes, counted the ways filters and scores ask about them.

For every selector that was ever asked about there is one vector: how many pods it means on each node, ``[node]``.
Placing or removing a pod adds or takes one at its row, in the vectors of the selectors that mean it; nothing is counted
again. Counts per zone or rack are summed from the vector with the label column, in one pass over nodes in C; so a node
that changes its labels, or a constraint that leaves out some nodes, needs no table of its own.

The rules that placed pods impose on newcomers are kept the same way (:mod:`spinney.cluster.filters.carried_rules`). So
are host ports and claims in use.

All of it is integer arithmetic, so removing what was placed restores every count exactly.
"""

from typing import Final, NamedTuple, TypeVar

import numpy as np

from spinney.api.core import Pod
from spinney.cluster.classes import RequestClass, host_ports
from spinney.cluster.filters.candidate import Candidate, nonzero_requests
from spinney.cluster.filters.carried_rules import CarriedRule, CarriedRules, RuleEffect, RulesAbout
from spinney.cluster.filters.count_vectors import Counts, CountVectors
from spinney.cluster.filters.pod_kinds import PodKind, PodKinds
from spinney.cluster.filters.pod_selectors import Labels, PodSelector
from spinney.cluster.layered import LayeredDict

K = TypeVar("K")
PodKey = tuple[str, str]
"""Namespace and name."""

FOOTPRINTS_KEPT: Final = 4096
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - what an unset hostIP means


class Footprint(NamedTuple):
    """What a placed pod means for others, beside its labels: the same for all pods of a request class."""

    carried: tuple[CarriedRule, ...]
    ports: tuple[tuple[str, str, int], ...]
    claims: tuple[PodKey, ...]
    cpu: int
    memory: int
    plain: bool
    """It carries no rules, holds no host ports and uses no claims."""

    @classmethod
    def of(cls, pod: Pod) -> "Footprint":
        carried = _carried_by(Candidate(pod, _NO_REQUESTS)) if pod.spec.affinity is not None else ()
        ports = tuple((port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port) for port in host_ports(pod))
        claims = _claims_of(pod) if pod.spec.volumes else ()
        return cls(carried, ports, claims, *nonzero_requests(pod), plain=not (carried or ports or claims))


class _Placed:
    """A pod on a row. Shared by forks; its kind is found when a selector is first asked about."""

    __slots__ = ("footprint", "kind", "pod", "row")

    def __init__(self, pod: Pod, row: int, footprint: Footprint) -> None:
        self.pod = pod
        self.row = row
        self.footprint = footprint
        self.kind: PodKind | None = None


class PlacedPods:
    """The pods on nodes, by namespace and name. Mutable: :meth:`place` and :meth:`remove` undo each other exactly."""

    def __init__(self) -> None:
        self._capacity = 0
        self._kinds = PodKinds()
        self._footprints: dict[RequestClass, Footprint] = {}
        self._pods: LayeredDict[PodKey, _Placed] = LayeredDict()
        self._counts: CountVectors[PodSelector] = CountVectors()
        self._edition = 0
        self._rules = CarriedRules()
        self._ports: dict[tuple[str, int], CountVectors[str]] = {}
        self._claims: dict[PodKey, dict[int, int]] = {}
        """How many pods of each row use a claim."""
        self._weights = np.zeros((0, 2), dtype=np.int64)

    # -- pods coming and going ---------------------------------------------------------------------------------------

    def place(self, pod: Pod, row: int, request: RequestClass | None = None) -> None:
        """Put ``pod`` on a row of the node table; a pod of that name that was placed before is replaced.

        Where its request class is known, what it means for others need not be found out again.
        """
        metadata = pod.metadata
        key = (metadata.namespace or "", metadata.name)
        before = self._pods.get(key)
        if before is not None:
            self._book(before, -1)
        self.reserve(row + 1)
        footprint = self._footprints.get(request) if request is not None else None
        if footprint is None:
            footprint = Footprint.of(pod)
            if request is not None:
                if len(self._footprints) >= FOOTPRINTS_KEPT:
                    self._footprints.clear()  # most are of classes long gone, and one is soon found out again
                self._footprints[request] = footprint
        placed = _Placed(pod, row, footprint)
        self._pods[key] = placed
        self._book(placed, 1)

    def remove(self, key: PodKey) -> None:
        """Take the pod called ``key`` off its node; nothing happens if it is on none."""
        placed = self._pods.pop(key)
        if placed is not None:
            self._book(placed, -1)

    def renew(self, pod: Pod) -> None:
        """Hold on to this state of a placed pod that means the same for others as the last, which may then go."""
        placed = self._pods.get((pod.metadata.namespace or "", pod.metadata.name))
        if placed is not None:
            placed.pod = pod

    def reserve(self, capacity: int) -> None:
        """Make every vector at least ``capacity`` rows long."""
        if capacity <= self._capacity:
            return
        self._capacity = max(capacity, 2 * self._capacity)
        self._weights = np.pad(self._weights, ((0, self._capacity - len(self._weights)), (0, 0)))

    def fork(self) -> "PlacedPods":
        """Return an independent copy, to try placements on."""
        copy = PlacedPods()
        copy._capacity = self._capacity
        copy._kinds = self._kinds
        copy._footprints = self._footprints
        copy._pods = self._pods.fork()
        copy._counts = self._counts.fork()
        copy._edition = self._edition
        copy._rules = self._rules.fork()
        copy._ports = {port: addresses.fork() for port, addresses in self._ports.items()}
        copy._claims = {claim: dict(users) for claim, users in self._claims.items()}
        copy._weights = self._weights.copy()
        return copy

    # -- questions ---------------------------------------------------------------------------------------------------

    def counts(self, selector: PodSelector, capacity: int) -> Counts:
        """Return how many pods ``selector`` means on each of ``capacity`` rows. Not to be written to."""
        self.reserve(capacity)
        self._kinds.register(selector)
        if self._edition != self._kinds.edition:
            self._edition = self._kinds.edition
            self._counts.clear()
        counts = self._counts.of(selector, capacity)
        if counts is None:
            counts = self._count(selector)
            self._counts.put(selector, counts)
        return counts[:capacity]

    def have_rules_about(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Tell whether a rule of a placed pod means a pod like this."""
        return bool(self._rules.meaning(namespace, namespace_labels, labels))

    def rules_about(self, namespace: str, namespace_labels: Labels, labels: Labels, capacity: int) -> RulesAbout | None:
        """Return what the rules of placed pods that mean a pod like this come to; ``None`` if there are none."""
        self.reserve(capacity)
        return self._rules.about(namespace, namespace_labels, labels, capacity)

    def port_users(self, protocol: str, port: int, capacity: int) -> dict[str, Counts]:
        """Return, by host address, how many pods per row hold ``port``."""
        users = self._ports.get((protocol, port))
        found = ((address, users.of(address, capacity)) for address in users) if users is not None else ()
        return {address: counts[:capacity] for address, counts in found if counts is not None}

    def claim_users(self, namespace: str, name: str) -> int:
        """Return how many placed pods use a persistent volume claim."""
        return sum(self._claims.get((namespace, name), {}).values())

    def claim_rows(self, namespace: str, name: str) -> list[int]:
        """Return the rows of the pods that use a persistent volume claim."""
        return list(self._claims.get((namespace, name), ()))

    def nonzero_requested(self, capacity: int) -> Counts:
        """Return cpu and memory in use as scores count them, ``[node, 2]``. Not to be written to."""
        self.reserve(capacity)
        return self._weights[:capacity]

    def _count(self, selector: PodSelector) -> Counts:
        # Once anything has been counted, the kinds of all pods are known.
        if self._counts and not self._kinds.has_any(selector):
            return np.zeros(self._capacity, dtype=np.int64)
        rows = [placed.row for placed in self._pods.values() if selector in self._kind_of(placed).selectors]
        return np.bincount(np.array(rows, dtype=np.intp), minlength=self._capacity).astype(np.int64)

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    def _kind_of(self, placed: _Placed) -> PodKind:
        if placed.kind is None:
            metadata = placed.pod.metadata
            terminating = metadata.deletion_timestamp is not None
            placed.kind = self._kinds.kind(metadata.namespace or "", metadata.labels, terminating=terminating)
        return placed.kind

    def _book(self, placed: _Placed, sign: int) -> None:
        row, footprint = placed.row, placed.footprint
        if self._counts:
            for selector in self._kind_of(placed).selectors:
                if selector in self._counts:
                    self._counts.add(selector, row, sign, self._capacity)
        if not footprint.plain:
            self._book_rarities(footprint, row, sign)
        weights = self._weights
        weights[row, 0] += sign * footprint.cpu
        weights[row, 1] += sign * footprint.memory

    def _book_rarities(self, footprint: Footprint, row: int, sign: int) -> None:
        for carried in footprint.carried:
            self._rules.count(carried, row, sign, self._capacity)
        for address, protocol, port in footprint.ports:
            self._book_port(address, (protocol, port), row, sign)
        for claim in footprint.claims:
            users = self._claims.setdefault(claim, {})
            users[row] = users.get(row, 0) + sign
            if not users[row]:
                del users[row]
            if not users:
                del self._claims[claim]

    def _book_port(self, address: str, port: tuple[str, int], row: int, sign: int) -> None:
        addresses = self._ports.setdefault(port, CountVectors())
        if self._is_last(addresses, address, row, sign) and not addresses:
            del self._ports[port]

    def _is_last(self, book: CountVectors[K], key: K, row: int, sign: int) -> bool:
        """Count a pod on a row; tell whether it was the last with this key, which is then forgotten."""
        counts = book.add(key, row, sign, self._capacity)
        if sign > 0 or counts[row] or counts.any():
            return False
        book.discard(key)
        return True


_NO_REQUESTS: Final = np.zeros(0, dtype=np.int64)


def _carried_by(pod: Candidate) -> tuple[CarriedRule, ...]:
    return (
        *(CarriedRule(RuleEffect.FORBIDS, 1, rule) for rule in pod.required_anti_affinity),
        *(CarriedRule(RuleEffect.REQUIRED, 1, rule) for rule in pod.required_affinity),
        *(CarriedRule(RuleEffect.PREFERRED, weight, rule) for weight, rule in pod.preferred_affinity),
    )


def _claims_of(pod: Pod) -> tuple[PodKey, ...]:
    namespace = pod.metadata.namespace or ""
    names = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return tuple(dict.fromkeys((namespace, claim.claim_name) for claim in names if claim is not None))
