"""The ClusterTopologyBinding controller: keeps schedulers' own topologies, or compares those that others keep."""

from collections.abc import Iterable

import structlog

from spinney.api.conditions import find_condition
from spinney.api.meta import Condition
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding, ClusterTopologyBindingStatus
from spinney.backends.interface import TopologyState
from spinney.backends.registry import Registry
from spinney.extensions.answers import RAISED
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import Unread, a_controller
from spinney.operator.caches import Caches
from spinney.operator.owned.auxiliary import OwnedObject
from spinney.operator.status.clustertopologybinding import DRIFT, binding_status
from spinney.operator.status.writing import patch_status

log = structlog.get_logger()


class ClusterTopologyBindingController:
    """Reconciles ClusterTopologyBindings."""

    def __init__(self, client: Client, caches: Caches, registry: Registry, events: EventRecorder) -> None:
        self._client = client
        self._clock = client.runtime.clock
        self._caches = caches
        self._registry = registry
        self._events = events

    def register(self, manager: Manager) -> Controller:
        """Run under a manager: woken by bindings and by the topologies of enabled backends."""
        controller = a_controller(manager, "clustertopologybinding", self.reconcile)
        controller.watch(self._caches.bindings)
        for backend in self._registry.topology_aware().values():
            controller.watch(manager.cache(backend.topology_resource, OwnedObject), self._bindings_of)
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring the topologies of one binding, and its status, to where they should be."""
        binding = self._caches.bindings.get(key)
        if binding is None or binding.metadata.deleting:
            return None
        references = {each.scheduler_name: each.topology_reference for each in binding.spec.scheduler_topology_bindings}
        states: dict[str, tuple[str, TopologyState]] = {}
        failed = False
        for name, backend in self._registry.topology_aware().items():
            topology = backend.topology_name(binding)
            try:
                if name in references:
                    states[name] = (topology, await backend.check_topology(binding, references[name]))
                else:
                    states[name] = (topology, await backend.sync_topology(binding))
            except RAISED as error:  # a backend may raise anything; it is shown and retried
                failed = True
                log.warning("topology sync failed", binding=key.name, backend=name, error=str(error))
                states[name] = (topology, TopologyState(False, f"{type(error).__name__}: {error}"))
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
