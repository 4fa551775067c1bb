"""The PodCliqueSet controller: which gangs, PodCliques and scaling groups exist, and whose turn an update is.

Gangs come before what fills them. A new template is announced in the status before any PodClique gets
it, so that nobody starts to roll before it is his turn. Replicas that have lost their minimum for too long are recycled
here.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from spinney.api import labels as marks
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.meta import OwnerReference, owner_reference
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.schema.validate_update import kept_replicas
from spinney.api.struct import JSON
from spinney.api.time import timestamp, to_seconds
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends import additions
from spinney.backends.interface import SchedulerBackend
from spinney.kube.cache import Change
from spinney.kube.controller import Controller, Requeue, to_label
from spinney.kube.errors import NotFound
from spinney.kube.events import reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import (
    GatheringTime,
    Latest,
    a_controller,
    delete_exactly,
    gathering,
    patch_each,
    remove_finalizer,
    write_each,
)
from spinney.operator.caches import BY_SET, BY_TOPOLOGY
from spinney.operator.controllers.capabilities import VALIDATION_FAILED, SetCapabilities
from spinney.operator.controllers.shared import Shared
from spinney.operator.desired import auxiliary, gangs, names, podcliques
from spinney.operator.desired.claims import claims_of_set
from spinney.operator.desired.gangs import GangPlan
from spinney.operator.desired.hashes import TemplateHashes, adoption
from spinney.operator.desired.layout import CliquePlace, Layout, scheduler_name
from spinney.operator.desired.podgangs import new_gang
from spinney.operator.owned.auxiliary import AuxiliaryObjects, NameTaken, OwnedObject
from spinney.operator.owned.taken_names import create_own, taken_names
from spinney.operator.status import podcliqueset as set_status
from spinney.operator.status.last_errors import TRIED_AGAIN_SECONDS, ErrorReports, ReconcileFault, only_tells
from spinney.operator.status.podcliqueset import ObservedSet, replica_index
from spinney.operator.status.writing import write_status
from spinney.operator.updates import termination
from spinney.operator.updates.podcliqueset import set_update

log = structlog.get_logger()

GATHERING = GatheringTime(0.05, seconds_per_part=0.001)
"""How long changes below a set are gathered before it is looked at again: its status sums up all of them."""

REPLICAS_AT_ONCE = 4
WRITES_PER_REPLICA = 4
"""How many replicas are made at the same time, and how many objects of each: few, so that those begun are soon up."""


@dataclass(frozen=True)
class SetObservation:
    """Everything a reconcile of one PodCliqueSet looks at."""

    key: Key
    layout: Layout
    hashes: TemplateHashes
    observed: ObservedSet
    backend: SchedulerBackend

    @property
    def pcs(self) -> PodCliqueSet:
        """Return the set itself."""
        return self.layout.pcs


class StartupOrderOff(ReconcileFault):
    """A set has a start-up order in an installation that does not serve it."""


class PodCliqueSetController:
    """Reconciles PodCliqueSets. Mutable: own writes not seen yet, and each set's last answer from its backend."""

    def __init__(
        self,
        shared: Shared,
        *,
        auxiliary_objects: AuxiliaryObjects,
        mnnvl_enabled: bool,
        startup_order: bool = True,
    ) -> None:
        self._client = shared.client.trusting()
        self._clock = shared.client.runtime.clock
        self._caches, self._registry, self._events = shared.caches, shared.registry, shared.events
        self._claims, self._growth, self._interlock = shared.claims, shared.growth, shared.interlock
        self._auxiliary_objects = auxiliary_objects
        self._mnnvl_enabled = mnnvl_enabled
        self._startup_order = startup_order
        self._latest: Latest[PodCliqueSet] = Latest()
        self._synced: dict[Key, object] = {}
        self._touched: dict[Key, int] = {}
        self._capabilities = SetCapabilities(lambda key: None, self._clock)
        self._kept: dict[Key, list[str]] = {}

    def register(self, manager: Manager, *, workers: int) -> Controller:
        """Run under a manager: woken by sets, by everything made for them, and by topologies."""
        reports = ErrorReports(self._client, self._events, POD_CLIQUE_SET, self._caches.sets.get)
        reconcile = reports.of(self.reconcile)
        controller = a_controller(
            manager, "podcliqueset", reconcile, workers=workers, longest_delay=TRIED_AGAIN_SECONDS
        )
        controller.watch(self._caches.sets, unless=lambda change: self._is_own_status(change) or only_tells(change))
        self._caches.sets.subscribe(self._note_kept_replicas)
        controller.watch(self._caches.bindings, self._sets_of_topology)
        self._capabilities = SetCapabilities(controller.enqueue, self._clock)
        manager.add_runnable("questions to backends about sets", self._capabilities.run)
        gather = gathering(controller, to_label(marks.PART_OF), self._patience)
        self._caches.cliques.subscribe(gather)
        self._caches.groups.subscribe(gather)
        self._caches.gangs.subscribe(gather)
        self._caches.gangs.subscribe(self._gang_gone)
        for cache in (*self._auxiliary_objects.caches.values(), self._claims.cache):
            if cache is not None:
                cache.subscribe(self._touch)
                cache.subscribe(gather)
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring one set to where it should be."""
        cached = self._caches.sets.get(key)
        if cached is None:
            self._latest.forget(key)
            self._capabilities.forget(key)
            self._kept.pop(key, None)
            self._synced.pop(key, None)
            self._touched.pop(key, None)
            return None
        pcs = self._latest.of(key, cached)
        if pcs.metadata.deleting:
            await self._release(pcs)
            return None
        scene = await self._scene(key, pcs)
        if scene is None:
            return None
        for text in self._kept.pop(key, ()):
            self._events.event(reference(POD_CLIQUE_SET, pcs), "Warning", "ReplicasKept", text)
        verdict = termination.of_set(scene.layout, scene.observed, self._clock.now())
        for i in verdict.recycle:
            await self._recycle(scene, i)
        # The status announces a new template and whose turn it is before any PodClique changes.
        structure = self._structure(scene)
        synced = self._synced.get(key) == structure
        judged = await self._write_status(scene, synced=synced)
        if not synced:
            await self._sync(scene)
            self._synced[key] = structure
            if pcs.status.observed_generation != pcs.metadata.generation:
                judged = await self._write_status(scene, synced=True)
        if not judged:
            return Requeue()
        return None if verdict.wait is None else Requeue(after=verdict.wait.total_seconds())

    # -- deciding ------------------------------------------------------------------------------------------------------

    async def _scene(self, key: Key, pcs: PodCliqueSet) -> SetObservation | None:
        cliques = self._caches.cliques.index(BY_SET, key)
        adopted = adoption(pcs, cliques)
        if adopted is not None:
            patch = {"metadata": {"annotations": {additions.ADOPTED_HASHES: adopted}}}
            log.info("hashes adopted", podcliqueset=str(key))
            await self._client.patch(POD_CLIQUE_SET, key.name, patch, key.namespace)
            return None
        layout = self._caches.layout(pcs)
        self._growth.check(layout)
        backend = self._backend(pcs)
        if backend is None:
            return None
        return SetObservation(key, layout, layout.hashes, self._observed(key, cliques), backend)

    def _observed(self, key: Key, cliques: Iterable[PodClique]) -> ObservedSet:
        standalone: dict[str, PodClique] = {}
        members: dict[str, list[PodClique]] = {}
        for clique in cliques:
            group = clique.metadata.labels.get(marks.SCALING_GROUP)
            if group is None:
                standalone[clique.metadata.name] = clique
            else:
                members.setdefault(group, []).append(clique)
        return ObservedSet(
            cliques=standalone,
            members=members,
            groups={group.metadata.name: group for group in self._caches.groups.index(BY_SET, key)},
            gangs={gang.metadata.name: gang for gang in self._caches.gangs.index(BY_SET, key)},
        )

    def _structure(self, scene: SetObservation) -> object:
        """Return all that decides what must exist for a set; while it stays the same there is nothing to sync."""
        pcs, observed = scene.pcs, scene.observed
        binding = self._caches.topology_of(pcs).binding
        return (
            (pcs.metadata.uid, pcs.metadata.generation, pcs.metadata.labels, pcs.metadata.annotations),
            binding.metadata.generation if binding is not None else None,
            self._touched.get(scene.key, 0),
            [_shape(each) for each in observed.cliques.values()],
            [_shape(each) for each in observed.groups.values()],
            [(each.metadata.uid, each.metadata.deleting) for each in observed.gangs.values()],
        )

    def _backend(self, pcs: PodCliqueSet) -> SchedulerBackend | None:
        name = scheduler_name(pcs)
        backend = self._registry.named_or_default(name)
        if backend is None:
            text = f"scheduler {name!r} is not enabled (enabled: {', '.join(self._registry.names())})"
            self._events.event(reference(POD_CLIQUE_SET, pcs), "Warning", "BackendNotEnabled", text)
        return backend

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _sync(self, scene: SetObservation) -> None:
        layout, observed = scene.layout, scene.observed
        if not self._startup_order and auxiliary.has_startup_order(layout):
            raise StartupOrderOff(f"PodCliqueSet {scene.key}: {auxiliary.NO_STARTUP_ORDER}")
        owner = owner_reference(POD_CLIQUE_SET, scene.pcs.metadata)
        wanted = auxiliary.wanted(layout, mnnvl_enabled=self._mnnvl_enabled)
        plans = gangs.expected_gangs(layout, self._growth.live_replicas(layout))
        for taken in taken_names(layout, plans, self._caches):
            raise NameTaken(taken)
        await self._auxiliary_objects.keep(owner, scene.key.namespace, wanted)
        await self._claims.keep(scene.pcs, owner, claims_of_set(layout))
        await self._make(scene, plans)
        existing = [plan for plan in plans if plan.name in observed.gangs]
        await write_each(existing, lambda plan: self._adopt_gang(scene, plan))
        await self._correct_cliques(scene)
        await self._delete_surplus_groups(scene)
        await self._delete_surplus_gangs(scene, {plan.name for plan in plans})

    async def _make(self, scene: SetObservation, plans: Iterable[GangPlan]) -> None:
        """Make what is missing, replica by replica: of each the gangs first, then what fills them."""
        layout, observed = scene.layout, scene.observed
        missing: dict[int, list[GangPlan]] = {}
        for plan in plans:
            if plan.name not in observed.gangs:
                missing.setdefault(plan.replica, []).append(plan)
        await write_each(
            range(layout.replicas),
            lambda i: self._make_replica(scene, i, missing.get(i, ())),
            at_once=REPLICAS_AT_ONCE,
        )

    async def _make_replica(self, scene: SetObservation, i: int, plans: Iterable[GangPlan]) -> None:
        layout, observed = scene.layout, scene.observed
        topology = self._caches.topology_of(scene.pcs)
        manifests = [new_gang(layout, plan, topology, backend=scene.backend) for plan in plans]
        create = partial(create_own, self._client, POD_GANG)
        await write_each(manifests, create, at_once=WRITES_PER_REPLICA)
        owner = owner_reference(POD_CLIQUE_SET, scene.pcs.metadata)
        cliques = [
            podcliques.desired_clique(layout, place, scene.hashes.cliques[place.template.name], owner)
            for place in layout.standalone(i)
            if place.name not in observed.cliques
        ]
        create = partial(create_own, self._client, POD_CLIQUE)
        await write_each(cliques, create, at_once=WRITES_PER_REPLICA)
        groups = [
            podcliques.desired_scaling_group(layout, i, group)
            for group in layout.group_configs
            if names.scaling_group(layout.name, i, group) not in observed.groups
        ]
        create = partial(create_own, self._client, POD_CLIQUE_SCALING_GROUP)
        await write_each(groups, create, at_once=WRITES_PER_REPLICA)

    async def _adopt_gang(self, scene: SetObservation, plan: GangPlan) -> None:
        """Give a gang that Grove made the labels by which ours are found."""
        found = scene.observed.gangs[plan.name].metadata
        wanted = {marks.REPLICA_INDEX: str(plan.replica), marks.SCHEDULER_NAME: scene.backend.name}
        lacking = {label: value for label, value in wanted.items() if label not in found.labels}
        if lacking and not found.deleting:
            log.info("gang adopted", gang=plan.name, labels=lacking)
            await self._client.patch(POD_GANG, plan.name, {"metadata": {"labels": lacking}}, found.namespace)

    async def _correct_cliques(self, scene: SetObservation) -> None:
        """Give existing PodCliques what the set asks for now; those it does not ask for go."""
        owner = owner_reference(POD_CLIQUE_SET, scene.pcs.metadata)
        places = {place.name: place for i in range(scene.layout.replicas) for place in scene.layout.standalone(i)}
        existing = scene.observed.cliques
        kept = [each for name, each in existing.items() if name in places and not each.metadata.deleting]
        patches = [(each, self._correction(scene, each, places[each.metadata.name], owner)) for each in kept]
        await patch_each(self._client, POD_CLIQUE, patches)
        await write_each([each for name, each in existing.items() if name not in places], self._take)

    async def _take(self, clique: PodClique) -> None:
        async with self._interlock.deleting(clique):
            await delete_exactly(self._client, POD_CLIQUE, clique)

    def _correction(
        self, scene: SetObservation, found: PodClique, place: CliquePlace, owner: OwnerReference
    ) -> list[JSON]:
        template_hash = scene.hashes.cliques[place.template.name]
        return podcliques.correction(found, podcliques.desired_clique(scene.layout, place, template_hash, owner))

    async def _delete_surplus_groups(self, scene: SetObservation) -> None:
        layout = scene.layout
        wanted = {names.scaling_group(layout.name, i, g) for i in range(layout.replicas) for g in layout.group_configs}
        surplus = [group for name, group in scene.observed.groups.items() if name not in wanted]

        async def take(group: PodCliqueScalingGroup) -> None:
            async with self._interlock.deleting(*scene.observed.members.get(group.metadata.name, ())):
                await delete_exactly(self._client, POD_CLIQUE_SCALING_GROUP, group)

        await write_each(surplus, take)

    async def _delete_surplus_gangs(self, scene: SetObservation, wanted: Container[str]) -> None:
        """Delete gangs that are not wanted any more, once no gate is being opened on their word."""
        for name, gang in scene.observed.gangs.items():
            if name in wanted:
                self._interlock.reopen(gang)
        surplus = [gang for name, gang in scene.observed.gangs.items() if name not in wanted]
        await write_each(surplus, self._delete_gang)

    async def _delete_gang(self, gang: PodGang) -> None:
        await self._interlock.close(gang)
        await delete_exactly(self._client, POD_GANG, gang)

    def _gang_gone(self, change: Change[PodGang]) -> None:
        if change.new is None and change.old is not None:
            self._interlock.reopen(change.old)

    async def _recycle(self, scene: SetObservation, i: int) -> None:
        """Delete every PodClique of a replica; they are made anew, and its gangs start over."""
        observed = scene.observed
        cliques = [*observed.cliques.values(), *(each for members in observed.members.values() for each in members)]
        doomed = [each for each in cliques if replica_index(each.metadata.labels) == i and not each.metadata.deleting]
        log.info("replica is recycled", podcliqueset=str(scene.key), replica=i, podcliques=len(doomed))
        text = f"replica {i} lost its minimum for longer than {scene.pcs.spec.template.termination_delay or '4h'}"
        about = reference(POD_CLIQUE_SET, scene.pcs)
        self._events.event(about, "Warning", "PodCliqueSetReplicaDeleteSuccessful", text)
        gangs_of_replica = [gang for gang in observed.gangs.values() if replica_index(gang.metadata.labels) == i]
        await write_each(gangs_of_replica, self._announce_recycling)
        await write_each(doomed, self._take)

    async def _announce_recycling(self, gang: PodGang) -> None:
        patch = {"metadata": {"annotations": {additions.RECYCLE: timestamp(self._clock.now())}}}
        try:
            await self._client.patch(POD_GANG, gang.metadata.name, patch, gang.metadata.namespace)
        except NotFound:
            return

    async def _write_status(self, scene: SetObservation, *, synced: bool) -> bool:
        """Write the status; the generation counts as observed once everything it asks for has been written.

        Tells whether the backend need not be asked about the set again.
        """
        pcs = scene.pcs
        now = to_seconds(self._clock.now())
        topology = set_status.topology_condition(scene.layout, self._caches.topology_of(pcs))
        gangs = scene.observed.gangs.values()
        backend = set_status.backend_condition(gangs)
        met = await self._capabilities.condition(scene.key, pcs, scene.backend, gangs)
        told = (met, topology, backend)
        status = set_status.set_status(
            scene.layout,
            scene.observed,
            hashes=scene.hashes,
            progress=set_update(scene.layout, scene.observed, scene.hashes, now),
            conditions=[condition for condition in told if condition is not None],
            synced=synced,
            now=now,
        )
        await write_status(self._client, POD_CLIQUE_SET, pcs, status, latest=self._latest, type=PodCliqueSet)
        return met.reason != VALIDATION_FAILED

    async def _release(self, pcs: PodCliqueSet) -> None:
        await self._auxiliary_objects.release(pcs.metadata.uid or "")
        await remove_finalizer(self._client, POD_CLIQUE_SET, pcs, marks.POD_CLIQUE_SET_FINALIZER)

    def _touch(self, change: Change[OwnedObject]) -> None:
        """Note that something kept for a set was changed, by us or by others."""
        side = change.new or change.old
        name = side.metadata.labels.get(marks.PART_OF) if side is not None else None
        key = Key(change.key.namespace, name or "")
        if self._caches.sets.get(key) is not None:
            self._touched[key] = self._touched.get(key, 0) + 1

    def _is_own_status(self, change: Change[PodCliqueSet]) -> bool:
        """Tell whether a change is the status written here last, and nothing else: it was decided on with that."""
        old, new = change.old, change.new
        if old is None or new is None or not self._latest.is_written(change):
            return False
        before = old.metadata
        kept = {"resource_version": before.resource_version, "managed_fields": before.managed_fields}
        return bool(msgspec.structs.replace(new.metadata, **kept) == before)

    def _note_kept_replicas(self, change: Change[PodCliqueSet]) -> None:
        """Note that replicas in a template were changed, which does nothing to what exists."""
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.generation != new.metadata.generation:
            self._kept[change.key] = list(kept_replicas(new, old))

    def _patience(self, key: Key) -> float:
        pcs = self._caches.sets.get(key)
        return GATHERING.of((pcs.spec.replicas or 0) if pcs is not None else 0)

    def _sets_of_topology(self, change: Change[ClusterTopologyBinding]) -> Iterable[Key]:
        return self._caches.sets.index_keys(BY_TOPOLOGY, change.key.name)


def _shape(found: PodClique | PodCliqueScalingGroup) -> object:
    metadata = found.metadata
    return metadata.uid, metadata.generation, metadata.deleting, metadata.labels.get(marks.POD_TEMPLATE_HASH)
