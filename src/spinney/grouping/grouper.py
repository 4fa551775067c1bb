"""The grouper: caches, backends and controllers, composed."""

from collections.abc import Mapping
from typing import Final, Literal

import structlog

from spinney.api.core import CONFIG_MAP, NAMESPACE, POD, Pod
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.scheduling import PRIORITY_CLASS, PriorityClass
from spinney.api.struct import Struct
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.backends.builtin import every_backend
from spinney.backends.interface import BackendContext, SchedulerBackend
from spinney.backends.lending import LentGangs
from spinney.backends.profiles import ALWAYS_ENABLED
from spinney.backends.registry import Registry
from spinney.grouping.admission import PodAdmission
from spinney.grouping.configuration import ConfigMapReference, LoadedGrouperConfiguration
from spinney.grouping.controller import STATUS_SECONDS, GroupingController
from spinney.grouping.intake import PodIntake
from spinney.grouping.membership import Membership
from spinney.grouping.metrics import GroupingMetrics
from spinney.grouping.owner_cache import OwnerCache
from spinney.grouping.owners import Owner, projection
from spinney.grouping.selecting import without_marks
from spinney.grouping.world import InvalidDefaults, KindDefault, kind_defaults, parse_defaults
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller
from spinney.kube.keys import Key
from spinney.kube.manager import Manager

COMPONENT: Final = "spinney-grouper"
GATHERING_SECONDS: Final = 0.05
"""How long changes of a gang's pods are gathered: they come in bursts."""

_INHERITED: Final = ("labels", "annotations", "owner_references")
"""What of an owner's metadata its pods are placed by."""

log = structlog.get_logger()


class _ConfigMap(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}


class Grouper:
    """One grouper process, or the grouper's part of a simulation. Mutable until it runs.

    ``client`` writes; in a process with an election it is the one that refuses writes without the lease. The caches are
    the manager's, so in one process with a scheduler pods are watched once.
    """

    def __init__(
        self,
        client: Client,
        configuration: LoadedGrouperConfiguration,
        *,
        manager: Manager | None = None,
    ) -> None:
        self.manager = manager or Manager(client, client.runtime)
        self.registry = Registry()
        self._configuration = configuration
        self._catalogue = every_backend()
        self._client = client
        self._events = self.manager.recorder(COMPONENT)
        self._metrics = GroupingMetrics(self.manager.metrics.registry)
        self._membership = Membership()
        self._pods = self.manager.cache(POD, Pod)
        self._gangs = self.manager.cache(POD_GANG, PodGang)
        self._bindings = self.manager.cache(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding)
        self._classes = self.manager.cache(PRIORITY_CLASS, PriorityClass)
        self._namespaces: WatchCache[Owner] | None = None
        if configuration.written.namespace_labels:
            self._namespaces = self.manager.cache(NAMESPACE, projection("v1/Namespace", ()))
        self._defaults: Mapping[tuple[str, str], KindDefault] = kind_defaults(configuration.written.kind_defaults)
        self._default_map = self._map_of_defaults(configuration.written.kind_defaults_config_map)
        self.controllers: tuple[Controller, ...] = ()
        self.admission: PodAdmission | None = None
        """What new pods are told; known once prepared, and ``None`` where it is switched off."""

    async def prepare(self) -> None:
        """Initialise the backends and compose the controllers; a backend that cannot be initialised raises."""
        lookups = LentGangs(self._gangs, self._bindings)
        context = BackendContext(self._client, self._events, self._client.runtime.clock, lookups)
        await self.registry.initialize(self._catalogue, context, self._configuration.profiles.without_native_gangs())
        self.controllers = self._compose(_by_scheduler_name(self.registry, self._configuration))

    @property
    def scheduler_names(self) -> frozenset[str]:
        """Whose pods are grouped; known once prepared."""
        return self._intake.scheduler_names

    async def run(self) -> None:
        """Prepare, then run until the manager is stopped."""
        await self.prepare()
        await self.manager.run()

    def _compose(self, backends: Mapping[str, SchedulerBackend]) -> tuple[Controller, ...]:
        manager, workers = self.manager, self._configuration.written.workers
        owners = OwnerCache(
            self._client, self._configuration.rules, self._owner_changed, self._is_awaited, manager.metrics
        )
        intake = PodIntake(
            configuration=self._configuration,
            scheduler_names=frozenset(backends),
            pods=self._pods,
            owners=owners,
            priority_classes=self._classes,
            namespaces=self._namespaces,
            kind_defaults=lambda: self._defaults,
            events=self._events,
            metrics=self._metrics,
            membership=self._membership,
            wake=lambda key: gangs.enqueue_after(key, GATHERING_SECONDS),
            leave=lambda pod: grouping.leave(pod),  # noqa: PLW0108 - made below
        )
        grouping = GroupingController(self._client, intake, self._gangs, backends, self._events)
        pods = Controller(
            "grouping-pods", intake.reconcile, runtime=manager.runtime, workers=workers, metrics=manager.metrics
        )
        gangs = Controller(
            "grouping-gangs", grouping.reconcile, runtime=manager.runtime, workers=workers, metrics=manager.metrics
        )
        self._intake, self._grouping, self._pod_queue, self._gang_queue = intake, grouping, pods, gangs
        self._pods.subscribe(self._pod_changed)
        gangs.watch(self._gangs, unless=lambda change: _differs_in_status_only(change) or grouping.wrote(change))
        self._gangs.subscribe(self._gang_changed)
        self._classes.subscribe(self._class_changed)
        if self._namespaces is not None:
            self._namespaces.subscribe(self._namespace_changed)
        if self._configuration.written.admission.enabled:
            self.admission = PodAdmission(intake, self._gangs, backends, ready=self._knows_enough)
        # Every replica answers for new pods, leading or not.
        manager.add_runnable("owners of pods", owners.run, needs_lease=False)
        if self._default_map is not None:
            manager.add_runnable("defaults of kinds", self._default_map.run, needs_lease=False)
        manager.add(pods)
        manager.add(gangs)
        return pods, gangs

    def _knows_enough(self) -> bool:
        """Tell whether everything is known that decides where pods belong."""
        caches = (self._gangs, self._classes, *((self._namespaces,) if self._namespaces is not None else ()))
        return all(cache.synced for cache in caches) and (self._default_map is None or self._default_map.synced)

    # -- what wakes ----------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: Change[Pod]) -> None:
        old, new = change.old, change.new
        if new is not None:
            self._intake.count_foreign(old, new)
        if old is not None and new is not None and _belongs_alike(old, new):
            place = self._membership.place(change.key)
            if place is not None and (moved := _counts_differently(old, new)):
                self._gang_queue.enqueue_after(place.gang, GATHERING_SECONDS if moved == "floor" else STATUS_SECONDS)
            return
        if new is not None and old is None and self._intake.serves(new) and self._intake.take_in(change.key, new):
            return
        if (new is not None and self._intake.looks_at(new)) or self._membership.knows(change.key):
            self._pod_queue.enqueue(change.key)

    def _gang_changed(self, change: Change[PodGang]) -> None:
        """Look at what others say of a gang when its own status is due, not at every word of theirs."""
        if _differs_in_status_only(change) and not self._grouping.wrote(change):
            self._gang_queue.enqueue_after(change.key, self._grouping.seconds_to_report(change.key))

    def _owner_changed(self, change: Change[Owner]) -> None:
        old, new = change.old, change.new
        if old is None or new is None:
            return  # pods of a new owner come later, and those of one that is gone go
        pods = self._membership.pods_of_owner(new.metadata.uid or "")
        before, after = old.metadata, new.metadata
        if any(getattr(before, field) != getattr(after, field) for field in _INHERITED):
            for pod in pods:
                self._pod_queue.enqueue(pod)
        elif (old.spec, old.status) != (new.spec, new.status):
            rule = self._configuration.rules.get(new.group_kind, {})
            gangs: dict[Key, None] = {}
            for pod in pods:
                place = self._membership.place(pod)
                if place is None or (place.alone and rule is not None and rule.roles):
                    self._pod_queue.enqueue(pod)  # it may have a role now
                else:
                    gangs[place.gang] = None
            for gang in gangs:
                self._gang_queue.enqueue_after(gang, GATHERING_SECONDS)

    def _is_awaited(self, owner: str) -> bool:
        """Tell whether pods that are to be placed have the object of this uid among their owners."""
        pods = (self._pods.get(key) for key in self._membership.pods_of_owner(owner))
        return any(pod is not None and not pod.spec.node_name and not pod.metadata.deleting for pod in pods)

    def _class_changed(self, change: Change[PriorityClass]) -> None:
        if change.old is None or change.new is None:
            for key in self._membership.gangs():
                self._gang_queue.enqueue_after(key, GATHERING_SECONDS)

    def _namespace_changed(self, change: Change[Owner]) -> None:
        for key in self._pods:
            if key.namespace == change.key.name:
                self._pod_queue.enqueue(key)

    def _map_of_defaults(self, place: ConfigMapReference | None) -> WatchCache[_ConfigMap] | None:
        """Return a cache of the ConfigMap of per-kind defaults, if there is one."""
        if place is None:
            return None
        cache = WatchCache(
            self._client,
            CONFIG_MAP,
            _ConfigMap,
            runtime=self.manager.runtime,
            namespace=place.namespace,
            field_selector=f"metadata.name={place.name}",
            metrics=self.manager.metrics,
        )
        cache.subscribe(self._defaults_changed)
        return cache

    def _defaults_changed(self, change: Change[_ConfigMap]) -> None:
        own = kind_defaults(self._configuration.written.kind_defaults)
        try:
            self._defaults = own | (parse_defaults(change.new.data) if change.new is not None else {})
        except InvalidDefaults as error:
            log.warning("the defaults of kinds cannot be read", config_map=str(change.key), error=str(error))
            self._defaults = own
        for key in self._pods:
            if self._membership.place(key) is not None:
                self._pod_queue.enqueue(key)


def _by_scheduler_name(registry: Registry, configuration: LoadedGrouperConfiguration) -> dict[str, SchedulerBackend]:
    """Return the backends by the scheduler names of their pods, as far as these are served."""
    found: dict[str, SchedulerBackend] = {}
    for name in registry.names():
        backend = registry.get(name)
        if backend is not None:
            found[str(getattr(backend.config, "scheduler_name", name))] = backend
    wanted = configuration.written.scheduler_names or tuple(name for name in found if name != ALWAYS_ENABLED)
    return {name: found[name] for name in wanted if name in found}


def _differs_in_status_only(change: Change[PodGang]) -> bool:
    """Tell whether nothing differs that decides what is to be written of a gang, and to whom."""
    old, new = change.old, change.new
    if old is None or new is None or old.spec != new.spec:
        return False
    before, after = old.metadata, new.metadata
    return (
        (before.uid, before.deleting) == (after.uid, after.deleting)
        and (before.labels, before.annotations) == (after.labels, after.annotations)
        and before.owner_references == after.owner_references
    )


def _belongs_alike(old: Pod, new: Pod) -> bool:
    """Tell whether nothing differs that decides where a pod belongs."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.owner_references == after.owner_references
        and _are_alike(before.labels, after.labels)
        and _are_alike(before.annotations, after.annotations)
    )


def _are_alike(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return before == after or without_marks(before) == without_marks(after)


def _counts_differently(old: Pod, new: Pod) -> Literal["floor", "status"] | None:
    """Tell what of a gang a changed pod may change: what it needs, or only how far it has come."""
    if old.metadata.deleting != new.metadata.deleting or (new.terminal and old.status.phase != new.status.phase):
        return "floor"
    if (old.spec.node_name, old.status.conditions) != (new.spec.node_name, new.status.conditions):
        return "status"
    return None
