"""DynamicResources: pods that use device claims go where the devices are, and hold them before they are bound.

A claim that is allocated binds its users to the node of its devices; one that is not needs free devices there that
match what it asks for (:mod:`spinney.cluster.dra`). When a pod has a node, the devices are counted as taken; before it
is bound, its claims are allocated and reserved for it (:mod:`spinney.binding.device_claims`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from spinney.api.core import NODE, POD, Pod
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.binding.placement import ClaimAllocation, Placement
from spinney.cluster.dra.allocating import SearchBudget, allocate
from spinney.cluster.dra.book import MAX_CONSUMERS, ClaimBook, ClaimState, claims_of
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.feasibility.trial import DEVICES
from spinney.coscheduling.framework.events import Action, EventHint
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import ASKED_ABOUT, CycleState, Filter, PreBind, PreFilter, Reserve, StateKey
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.kube.errors import KubeError
from spinney.kube.keys import Key, key_of
from spinney.reporting.pods import INADMISSIBLE

_HELD: Final[StateKey[Placement]] = StateKey("placement with the devices of its claims")


class DynamicResources(PreFilter, Filter, Reserve, PreBind):
    """Filters by devices, keeps them for placed pods, and has claims allocated."""

    name = "DynamicResources"
    alike = True
    reason: ClassVar[str] = "cannot allocate all claims"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        super().__init__(handle, arguments)
        self._book = handle.services.claims

    def events(self) -> tuple[EventHint, ...]:
        """Return what may let claims be allocated: other claims that went, new devices, changed classes and nodes.

        A pod that loses its node before it is bound gives up devices that only this scheduler knew it had.
        """
        resources = (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS)
        others = (EventHint(NODE, Action.ADD | Action.UPDATE), EventHint(POD, Action.DELETE))
        return (*others, *(EventHint(resource, Action.ANY) for resource in resources))

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Refuse a pod whose claims are not there, or can be allocated nowhere."""
        problem = self._problem(pod) if pod.spec.resource_claims else ""
        return Status.unresolvable(problem, waits=INADMISSIBLE) if problem else SUCCESS

    def _problem(self, pod: Pod) -> str:
        keys = claims_of(pod)
        if len(keys) < len(pod.spec.resource_claims):
            return "waiting for a resource claim to be made from its template"
        for key in keys:
            claim = self._book.claims.get(key)
            if claim is None:
                return f'resourceclaim "{key.name}" not found'
            problem = "" if claim.allocated else self._book.problem(claim)
            if problem:
                return f'resourceclaim "{key.name}" cannot be allocated: {problem}'
            if pod.metadata.uid not in claim.consumers and len(claim.consumers) >= MAX_CONSUMERS:
                return f'resourceclaim "{key.name}" is reserved for {MAX_CONSUMERS} pods already'
        return ""

    def concerns(self, state: CycleState, pod: Pod) -> bool:
        """Tell whether the pod uses claims."""
        return bool(pod.spec.resource_claims)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Return the nodes that have the devices of the pod's claims, or can give them."""
        book = state.read(DEVICES) or self._book
        claims = _claims(book, pod)
        asks = [claim.ask for claim in claims.values() if not claim.allocated]
        places = {claim.node for claim in claims.values() if claim.allocated}
        catalogue, taken = book.catalogue, book.taken()
        within = state.read(ASKED_ABOUT)
        budget, mask = SearchBudget(), np.zeros_like(nodes.alive)
        for row in np.flatnonzero(nodes.alive if within is None else nodes.alive & within).tolist():
            name = nodes.names[row]
            if places <= {name}:
                mask[row] = not asks or allocate(catalogue, name, asks, taken, budget) is not None
        return mask

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Count devices of the node as those of the pod's claims."""
        if not pod.spec.resource_claims:
            return SUCCESS
        claims = _claims(self._book, pod)
        given = {key: claim.devices for key, claim in claims.items() if claim.allocated}
        wanted = [key for key in claims if key not in given]
        found = allocate(self._book.catalogue, node, [claims[key].ask for key in wanted], self._book.taken())
        if found is None:
            return Status.unschedulable(self.reason)
        given |= dict(zip(wanted, found, strict=True))
        uid = pod.metadata.uid or ""
        for key, devices in given.items():
            self._book.assume(key, node, devices, uid)
        allocations = tuple(ClaimAllocation(key, each, self._book.config(key, each)) for key, each in given.items())
        state.write(_HELD, Placement(key_of(pod), uid, node, claims=allocations))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Count the devices as free again, and take back what was written."""
        held = state.read(_HELD)
        if held is None:
            return
        for allocation in held.claims:
            self._book.forget(allocation.claim, held.uid)
        self._services.background(self._services.device_claims.release(held))

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Allocate the pod's claims and reserve them for it."""
        held = state.read(_HELD)
        if held is None:
            return SUCCESS
        try:
            await self._services.device_claims.prepare(held)
        except KubeError as error:
            return Status.error(error)
        return SUCCESS


def _claims(book: ClaimBook, pod: Pod) -> dict[Key, ClaimState]:
    return {key: book.claims[key] for key in claims_of(pod) if key in book.claims}
