"""What the controllers share: pods made and deleted without ever counting one twice, and statuses that say so."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from spinney.api.core import POD, Pod
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, Conflict, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.expectations import Expectations
from spinney.kube.keys import Identified, Key, key_of
from spinney.kube.reconciling import Unread, unless_gone, write_each
from spinney.runtime import Clock
from spinney.workloads.objects import BY_OWNER, JOB, WorkloadObject


@dataclass(frozen=True)
class Upkeep:
    """Reads and writes the pods of the workloads of one kind."""

    client: Client
    resource: Resource
    workloads: WatchCache[WorkloadObject]
    pods: WatchCache[Pod]
    expectations: Expectations
    events: EventRecorder

    def due(self, key: Key) -> WorkloadObject | None:
        """Return a workload whose pods may be looked after now.

        ``None``: it is gone or going, or the cache has not yet shown what was written; the event of that wakes the
        controller.
        """
        found = self.workloads.get(key)
        if found is None:
            self.expectations.forget(key)
            return None
        return found if not found.metadata.deleting and self.expectations.is_satisfied(key) else None

    def of(self, found: WorkloadObject) -> list[Pod]:
        """Return the pods a workload controls, in order of name."""
        return self.pods.index(BY_OWNER, found.metadata.uid)

    @property
    def clock(self) -> Clock:
        """Return the clock of the cluster."""
        return self.client.runtime.clock

    def now(self) -> str:
        """Return the time, as objects write it."""
        return timestamp(self.clock.now())

    async def create(self, found: WorkloadObject, manifests: Iterable[JSON]) -> None:
        """Create pods for a workload; it says in an event why one is refused."""

        async def one(manifest: JSON) -> None:
            with self.expectations.creating(key_of(found)) as creation:
                try:
                    made = await self.client.create(POD, manifest, found.metadata.namespace, type=Identified)
                except ApiError as error:
                    said = f"Error creating: {error}"
                    self.events.event(reference(self.resource, found), "Warning", "FailedCreate", said)
                    raise
                creation.created(made.metadata.uid)

        await write_each(manifests, one)

    async def delete(self, found: WorkloadObject, pods: Iterable[Pod]) -> None:
        """Delete pods of a workload; one that is gone is fine, another of its name is not touched."""

        async def one(pod: Pod) -> None:
            uid = pod.metadata.uid or ""
            with suppress(NotFound, Conflict), self.expectations.deleting(key_of(found), uid):
                await self.client.delete(POD, pod.metadata.name, pod.metadata.namespace, uid=uid)

        await write_each((pod for pod in pods if not pod.metadata.deleting), one)

    async def report(self, found: WorkloadObject, status: JSON) -> None:
        """Write a workload's status if it differs from what is there."""
        if self.resource is not JOB:  # whose status has no generation
            status = {"observedGeneration": found.metadata.generation, **status}
        changed = {key: value for key, value in status.items() if (found.status.get(key) or None) != (value or None)}
        if not changed:
            return
        patch = {"metadata": {"uid": found.metadata.uid}, "status": changed}
        name, namespace = found.metadata.name, found.metadata.namespace
        await unless_gone(self.client.patch(self.resource, name, patch, namespace, subresource="status", type=Unread))
