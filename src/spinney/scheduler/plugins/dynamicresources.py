"""dynamicresources: pods that use device claims (DRA) go where the devices are.

A claim that is allocated binds its users to the node of its devices; one that is not needs free devices there that
match its selectors and constraints (:mod:`spinney.cluster.dra`). A claim for GPUs that several pods share must carry
the label of the queue that pays for it.

Argument ``maxConsumersPerClaim``: how many pods may share one claim, as many as Kubernetes allows by default.
"""

from typing import Annotated

import msgspec

from spinney.cluster.dra.book import MAX_CONSUMERS, claims_of
from spinney.cluster.table import Mask
from spinney.extensions.arguments import read_arguments
from spinney.scheduler.framework.events import Event, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Constraint, Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class ClaimLimits(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods may share one claim."""

    max_consumers_per_claim: Annotated[int, msgspec.Meta(ge=1)] = MAX_CONSUMERS


class DynamicResources(Plugin):
    """Filters nodes by device claims, and allocates claims as tasks are placed."""

    name = "dynamicresources"
    arguments_type = ClaimLimits
    honours = frozenset({Constraint.DEVICE_CLAIMS})
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the filters and the handler that keeps claims; nothing where there are no claims."""
        self._session = session
        self._most_consumers = read_arguments(ClaimLimits, self.arguments).max_consumers_per_claim
        session.add_victim_invariant_pre_predicate_fn(self._lacks_claim)
        if not session.claims.claims:
            session.add_pre_predicate_fn(self._may_use_claims, applies_to=_uses_claims)
            return
        session.add_pre_predicate_fn(self._may_use_claims, stateful=True, applies_to=_uses_claims)
        session.add_predicate_columns(self._reaches_devices, stateful=True, applies_to=_uses_claims)
        session.add_event_handler(EventHandler(allocate=self._allocated, deallocate=self._deallocated))

    def _lacks_claim(self, task: PodInfo) -> str | None:
        """Return which claim of a pod does not exist: nobody who leaves makes it."""
        wanted = task.record.pod.spec.resource_claims
        keys = claims_of(task.record.pod) if wanted else ()
        if len(keys) < len(wanted):
            return "a resource claim of the pod has not been made from its template yet"
        missing = (key for key in keys if key not in self._session.claims.claims)
        return next((f"resource claim {key.name} does not exist" for key in missing), None)

    def _may_use_claims(self, task: PodInfo, job: PodGroupInfo) -> str | None:
        lacking = self._lacks_claim(task)
        if lacking is not None:
            return lacking
        for key in claims_of(task.record.pod) if task.record.pod.spec.resource_claims else ():
            claim = self._session.claims.claims[key]
            problem = "" if claim.allocated else self._session.claims.problem(claim)
            if problem:
                return f"resource claim {key.name} cannot be allocated: {problem}"
            if claim.gpus and not claim.made_for_pod and claim.queue != job.queue:
                return f"resource claim {key.name} is for queue {claim.queue or 'none'}, but the pod is in {job.queue}"
            if task.uid not in claim.consumers and len(claim.consumers) >= self._most_consumers:
                return f"resource claim {key.name} is reserved for {self._most_consumers} pods already"
        return None

    def _reaches_devices(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        return self._session.devices.serving(claims_of(task.record.pod), nodes)

    def _allocated(self, event: Event) -> None:
        if _uses_claims(event.task):
            self._session.devices.take(event.task)

    def _deallocated(self, event: Event) -> None:
        if _uses_claims(event.task):
            self._session.devices.release(event.task)


def _uses_claims(task: PodInfo) -> bool:
    return bool(task.record.pod.spec.resource_claims)
