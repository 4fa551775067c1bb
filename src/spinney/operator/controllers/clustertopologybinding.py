"""The ClusterTopologyBinding controller: keeps schedulers' own topologies, or compares those that others keep."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

import structlog

from spinney.api.conditions import find_condition
from spinney.api.meta import Condition
from spinney.api.resource import Resource
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding, ClusterTopologyBindingStatus
from spinney.backends.interface import TopologyAware, TopologyState
from spinney.backends.registry import Registry
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import Unread, a_controller
from spinney.operator.caches import Caches
from spinney.operator.controllers.topology_questions import TopologyFault, topology_name, topology_state
from spinney.operator.owned.auxiliary import OwnedObject
from spinney.operator.status.clustertopologybinding import DRIFT, binding_status
from spinney.operator.status.writing import patch_status
from spinney.runtime.tasks import together

log = structlog.get_logger()


@dataclass(frozen=True)
class _Compared:
    """The topology a binding stands for with one scheduler, how it stands, and whether the backend failed to say."""

    topology: str
    state: TopologyState
    failed: bool = False


class ClusterTopologyBindingController:
    """Reconciles ClusterTopologyBindings."""

    def __init__(self, client: Client, caches: Caches, registry: Registry, events: EventRecorder) -> None:
        self._client = client
        self._clock = client.runtime.clock
        self._caches = caches
        self._registry = registry
        self._events = events

    def register(self, manager: Manager, *, served: Container[Resource]) -> Controller:
        """Run under a manager: woken by bindings and by the topologies of enabled backends.

        Those of a kind that is not ``served`` are followed once it is: a list of them would never come.
        """
        controller = a_controller(manager, "clustertopologybinding", self.reconcile)
        controller.watch(self._caches.bindings)
        kinds = dict.fromkeys(backend.topology_resource for backend in self._registry.topology_aware().values())
        for resource in kinds:
            if resource in served:
                controller.watch(manager.cache(resource, OwnedObject), self._bindings_of)
        if missing := {resource: OwnedObject for resource in kinds if resource not in served}:
            manager.follow_later(missing, lambda cache: controller.watch(cache, self._bindings_of))
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring the topologies of one binding, and its status, to where they should be."""
        binding = self._caches.bindings.get(key)
        if binding is None or binding.metadata.deleting:
            return None
        references = {each.scheduler_name: each.topology_reference for each in binding.spec.scheduler_topology_bindings}
        aware = self._registry.topology_aware()
        compared = await together(
            *(_compared(name, each, binding, references.get(name)) for name, each in aware.items())
        )
        states = {name: (each.topology, each.state) for name, each in zip(aware, compared, strict=True)}
        failed = any(each.failed for each in compared)
        unavailable = {name: topology for name, topology in references.items() if name not in states}
        status = binding_status(binding, states, unavailable, self._clock.now(), failed=failed)
        await self._write_status(binding, status)
        return Requeue() if failed else None

    async def _write_status(self, binding: ClusterTopologyBinding, status: ClusterTopologyBindingStatus) -> None:
        if status == binding.status:
            return
        self._announce(binding, find_condition(status.conditions, DRIFT))
        try:
            await patch_status(self._client, CLUSTER_TOPOLOGY_BINDING, binding, status, type=Unread)
        except NotFound:
            return

    def _announce(self, binding: ClusterTopologyBinding, new: Condition | None) -> None:
        old = find_condition(binding.status.conditions, DRIFT)
        if new is None or (old is not None and old.status == new.status):
            return
        about = reference(CLUSTER_TOPOLOGY_BINDING, binding)
        if new.status == "True":
            self._events.event(about, "Warning", "TopologyDriftDetected", new.message)
        elif new.status == "False" and old is not None:
            self._events.event(about, "Normal", "TopologyInSync", new.message)

    def _bindings_of(self, change: Change[OwnedObject]) -> Iterable[Key]:
        """Return the bindings that manage a topology, or refer to it."""
        name = change.key.name
        return [
            key
            for key, binding in self._caches.bindings.items()
            if key.name == name
            or any(each.topology_reference == name for each in binding.spec.scheduler_topology_bindings)
        ]


async def _compared(
    name: str, backend: TopologyAware, binding: ClusterTopologyBinding, reference: str | None
) -> _Compared:
    """Ask one backend; what it does wrong is shown, and none of the others' business."""
    topology = binding.metadata.name if reference is None else reference
    try:
        topology = topology_name(backend, binding)
        return _Compared(topology, await topology_state(backend, binding, reference))
    except TopologyFault as fault:
        log.warning("topology sync failed", binding=binding.metadata.name, backend=name, error=str(fault))
        return _Compared(topology, TopologyState(False, str(fault)), failed=True)
