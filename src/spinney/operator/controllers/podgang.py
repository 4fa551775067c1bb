"""The PodGang controller: what a gang refers to, what its backend makes of it, and what its status says.

The PodCliqueSet controller brings gangs into being and takes them away; everything in between happens here, for one
gang at a time: its spec follows the set and the pods that exist, its backend is told, its conditions are written. The
order of writes is the order others rely on: a recycled gang loses Initialized before anything else changes; references
are in the spec before Initialized is True.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import structlog

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, is_false, is_true, set_condition
from spinney.api.core import Pod
from spinney.api.grove import POD_CLIQUE_SET, PodClique, PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.podgang import (
    BACKEND_READY,
    INITIALIZED,
    MINIMUM_NOT_PLACED,
    POD_GANG,
    SCHEDULED,
    PodGang,
    PodGangSpec,
    PodGangStatus,
    written,
)
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends import additions
from spinney.backends.interface import SchedulerBackend
from spinney.backends.lending import lent
from spinney.backends.told import ToldGangs
from spinney.kube.cache import Change
from spinney.kube.controller import Controller, Requeue, to_label
from spinney.kube.errors import NotFound
from spinney.kube.events import reference
from spinney.kube.keys import Key, key_of
from spinney.kube.manager import Manager
from spinney.kube.reconciling import GatheringTime, HeldBack, Latest, gathering, patch_exactly, remove_finalizer
from spinney.operator.caches import BY_SET, BY_TOPOLOGY
from spinney.operator.controllers.backend_calls import BackendCalls
from spinney.operator.controllers.shared import Shared
from spinney.operator.desired import gangs, incarnations, podgangs
from spinney.operator.desired.gangs import GangPlan
from spinney.operator.desired.gates import was_initialized
from spinney.operator.desired.incarnations import Life
from spinney.operator.desired.labels import mirrored
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import Untranslatable
from spinney.operator.status import podgang as gang_status
from spinney.operator.status.podcliqueset import replica_index
from spinney.operator.status.podgang import BackendAnswer, Members
from spinney.operator.status.writing import patch_status

log = structlog.get_logger()

GATHERING = GatheringTime(0.02, seconds_per_part=0.00005)
STATUS_GATHERING = GatheringTime(0.1, seconds_per_part=0.0002)
"""How long changes of members are gathered: shortly while the gang is being brought up, longer for its status.

A gang refers to every pod, so a large one is expensive to write.
"""

SyncToken = tuple[str | None, str, PodGangSpec, bool, bool]
"""What ``sync_pod_gang`` was last called for: uid, hash of the structure, spec, Initialized, Scheduled."""


@dataclass(frozen=True)
class Desired:
    """What a gang should be, the required domains that keep its pods gated, and the life it has reached."""

    gang: PodGang
    held: tuple[Untranslatable, ...]
    life: Life


class PodGangController:
    """Reconciles PodGangs. Keeps only what may be forgotten: own writes not seen yet, and what backends were told."""

    def __init__(self, shared: Shared) -> None:
        self._client = shared.client.trusting()
        self._clock = shared.client.runtime.clock
        self._caches, self._registry, self._events = shared.caches, shared.registry, shared.events
        self._growth, self._interlock = shared.growth, shared.interlock
        self._lost: dict[Key, frozenset[str]] = {}  # labels and annotations of sets that their gangs still carry
        self._latest: Latest[PodGang] = Latest()
        self._told: ToldGangs[SyncToken] = ToldGangs(self._clock)
        self._held_back = HeldBack(self._clock)
        self._calls = BackendCalls(wake=lambda key: None)

    def register(self, manager: Manager, *, workers: int) -> Controller:
        """Run under a manager: woken by gangs, and by the sets, PodCliques and pods they are made of."""
        controller = Controller(
            "podgang", self.reconcile, runtime=manager.runtime, workers=workers, metrics=manager.metrics
        )
        controller.watch(self._caches.gangs, unless=self._has_been_heeded)
        gather = gathering(controller, to_label(marks.POD_GANG), self._patience)
        self._caches.cliques.subscribe(gather)
        self._caches.pods.subscribe(gather)
        controller.watch(self._caches.sets, self._gangs_of_set)
        controller.watch(self._caches.bindings, self._gangs_of_topology)
        self._calls = BackendCalls(wake=controller.enqueue)
        manager.add_runnable("backend calls", self._calls.run)
        manager.add(controller)
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring one gang to where it should be."""
        cached = self._caches.gangs.get(key)
        if cached is None:
            self._latest.forget(key)
            self._lost.pop(key, None)
            self._told.forget(key)
            self._held_back.forget(key)
            self._interlock.backend_unready(key)
            self._calls.forget(key)
            return None
        gang = self._latest.of(key, cached)
        if gang.metadata.deleting:
            return await self._release(gang)
        pcs = self._caches.set_of(gang.metadata)
        plan = None if pcs is None else self._plan(pcs, gang)
        if pcs is None or plan is None:
            return None
        members = self._members(plan, gang.metadata.namespace)
        desired = self._desired(self._caches.layout(pcs), plan, gang, members)
        gang = await self._bring_up_to_date(key, gang, desired, members)
        answer = await self._sync_backend(key, gang)
        status = self._status(gang, desired, members, answer)
        replicas = pcs.spec.replicas or 0
        if _is_coming_up(gang.status, status) and (left := self._held_back.seconds_left(key, replicas)) > 0:
            return Requeue(after=left)
        self._held_back.forget(key)
        if is_true(gang.status.conditions, INITIALIZED) or not is_true(status.conditions, INITIALIZED):
            await self._write_status(key, gang, status)
        elif not await self._complete(key, gang, status, plan):
            return Requeue()
        return None if answer is None or answer.ready else Requeue()

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _plan(self, pcs: PodCliqueSet, gang: PodGang) -> GangPlan | None:
        layout = self._caches.layout(pcs)
        i = replica_index(gang.metadata.labels)
        if not 0 <= i < layout.replicas:
            return None
        return gangs.plan_of(layout, i, gang.metadata.name, self._growth.live_replicas(layout))

    def _members(self, plan: GangPlan, namespace: str | None) -> Members:
        found = ((place.name, self._caches.clique(namespace, place.name)) for place in plan.places)
        cliques = {name: clique for name, clique in found if clique is not None}
        return Members(cliques, {name: self._caches.headcount(clique) for name, clique in cliques.items()})

    def _parts(self, members: Members) -> Iterator[PodClique | Pod]:
        for clique in members.cliques.values():
            yield clique
            yield from self._caches.pods_of(clique)

    def _desired(self, layout: Layout, plan: GangPlan, gang: PodGang, members: Members) -> Desired:
        topology = self._caches.topology_of(layout.pcs)
        life = incarnations.life(gang, members.cliques.values())
        content = gangs.content(plan, layout, topology, members.pods)
        spec = content.spec
        if content.held:
            spec = gangs.with_constraints_of(spec, gang.spec)
        initialized = was_initialized(gang) and not life.starts_over
        complete = gang_status.missing(msgspec.structs.replace(gang, spec=spec), members) is None
        if not initialized and (life.survived or not complete):
            # Until the gang is complete its references are written once, not with every pod.
            spec = gangs.with_references_of(spec, None if life.starts_over or life.survived else gang.spec)
        annotations = gangs.gang_annotations(layout, topology, spec)
        if initialized or life.incarnation or any(group.pod_references for group in spec.pod_groups):
            annotations |= life.annotations()  # in the first life they come with the references, in one write
        wanted = podgangs.manifest(
            gang.metadata,
            spec,
            labels=gangs.gang_labels(layout, plan, gang.metadata.labels.get(marks.SCHEDULER_NAME, "")),
            annotations=annotations,
            backend=self._backend(gang),
        )
        return Desired(wanted, content.held, life)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _bring_up_to_date(self, key: Key, gang: PodGang, desired: Desired, members: Members) -> PodGang:
        if desired.life.starts_over and was_initialized(gang):
            log.info("gang is recycled", gang=str(key))
            gang = await self._write_status(key, gang, self._status(gang, desired, members, None))
        lost = self._lost.get(key, frozenset())
        if patch := podgangs.correction(gang, desired.gang, lost):
            stored = await patch_exactly(self._client, POD_GANG, gang, patch, type=PodGang)
            gang = self._latest.wrote(key, stored)
        if self._lost.get(key) == lost:
            del self._lost[key]
        return gang

    async def _sync_backend(self, key: Key, gang: PodGang) -> BackendAnswer | None:
        """Tell the backend if there is something new for it; returns ``None`` while it has not answered."""
        token = (gang.metadata.uid, gangs.structure_hash(gang), gang.spec, *_flags(gang))
        if self._told.knows(key, token):
            return BackendAnswer()
        backend = self._backend(gang)
        if backend is None:
            name = gang.metadata.labels.get(marks.SCHEDULER_NAME)
            enabled = ", ".join(self._registry.names())
            text = f"scheduler backend {name!r} is not enabled (enabled: {enabled}); enable its profile again"
            return self._failed(gang, "BackendNotEnabled", text)
        outcome = await self._calls.outcome(key, token, backend.name, lambda: backend.sync_pod_gang(lent(gang)))
        if outcome is None:
            return None
        if outcome.error is not None:
            self._told.forget(key)
            self._interlock.backend_unready(key)
            log.warning("backend sync failed", gang=str(key), backend=backend.name, error=outcome.error)
            return self._failed(gang, "SyncFailed", outcome.error)
        self._told.note(key, token)
        self._interlock.backend_ready(key, gang)
        return BackendAnswer()

    def _failed(self, gang: PodGang, reason: str, message: str) -> BackendAnswer:
        self._events.event(reference(POD_GANG, gang), "Warning", reason, message)
        pcs = self._set_that_owns(gang)
        if pcs is not None:
            self._events.event(reference(POD_CLIQUE_SET, pcs), "Warning", reason, message)
        return BackendAnswer(reason, message)

    def _status(self, gang: PodGang, desired: Desired, members: Members, answer: BackendAnswer | None) -> PodGangStatus:
        return gang_status.gang_status(
            gang,
            members,
            initialized=self._initialized(gang, desired, members),
            backend=answer,
            derive_scheduled=_derives_scheduled(gang, self._backend(gang)),
            now=self._clock.now(),
        )

    async def _write_status(self, key: Key, gang: PodGang, status: PodGangStatus) -> PodGang:
        """Write our part of the status and leave the scheduler's as it was; refused if it changed meanwhile."""
        if status == _own_part(gang.status, status):
            return gang
        ours = {condition.type for condition in status.conditions}
        others = tuple(condition for condition in gang.status.conditions if condition.type not in ours)
        whole = msgspec.structs.replace(
            status, conditions=status.conditions + others, placement_score=gang.status.placement_score
        )
        try:
            stored = await patch_status(self._client, POD_GANG, gang, whole, type=PodGang, shared=True)
        except NotFound:
            return gang
        return self._latest.wrote(key, stored)

    async def _complete(self, key: Key, gang: PodGang, status: PodGangStatus, plan: GangPlan) -> bool:
        """Write that a gang is Initialized, unless something of it has gone meanwhile or is going."""
        members = self._members(plan, gang.metadata.namespace)
        if gang_status.missing(gang, members) is not None or await self._interlock.is_any_deleted(self._parts(members)):
            return False
        with self._interlock.initializing(key):
            await self._write_status(key, gang, status)
        return True

    def _initialized(self, gang: PodGang, desired: Desired, members: Members) -> Condition:
        # While a recycled gang still has its old annotations its references, too, are of its former life.
        former = desired.life.survived or (desired.life.starts_over and bool(podgangs.correction(gang, desired.gang)))
        return gang_status.initialized(gang, members, desired.held, former_life=former)

    async def _release(self, gang: PodGang) -> Requeue | None:
        """Let a deleted gang go, after its backend has cleaned up; a backend no longer enabled does not hold it."""
        if additions.BACKEND_FINALIZER not in gang.metadata.finalizers:
            return None
        backend = self._backend(gang)
        if backend is not None:
            key, purpose = key_of(gang), ("delete", gang.metadata.uid)
            outcome = await self._calls.outcome(
                key, purpose, backend.name, lambda: backend.on_pod_gang_delete(lent(gang))
            )
            if outcome is None:
                return None
            if outcome.error is not None:
                await self._tell_of_cleanup(key, gang, self._failed(gang, "CleanupFailed", outcome.error))
                return Requeue()
        await remove_finalizer(self._client, POD_GANG, gang, additions.BACKEND_FINALIZER)
        return None

    async def _tell_of_cleanup(self, key: Key, gang: PodGang, answer: BackendAnswer) -> None:
        """Say on a gang, and so on its set, why it does not go."""
        condition = Condition(type=BACKEND_READY, status="False", reason=answer.reason, message=answer.message)
        conditions = set_condition(gang.status.conditions, condition, self._clock.now())
        told = tuple(each for each in conditions if each.type == BACKEND_READY)
        await self._write_status(key, gang, msgspec.structs.replace(gang.status, conditions=told, placement_score=None))

    def _set_that_owns(self, gang: PodGang) -> PodCliqueSet | None:
        """Return the set of a gang, also while it is being deleted: its user waits for that."""
        owner = gang.metadata.controller
        pcs = self._caches.sets.get(Key(gang.metadata.namespace or "", gang.metadata.labels.get(marks.PART_OF, "")))
        return pcs if pcs is not None and owner is not None and owner.uid == pcs.metadata.uid else None

    def _backend(self, gang: PodGang) -> SchedulerBackend | None:
        return self._registry.get(gang.metadata.labels.get(marks.SCHEDULER_NAME, ""))

    def _has_been_heeded(self, change: Change[PodGang]) -> bool:
        """Tell whether a change is our own write, and none that the backend is told."""
        old, new = change.old, change.new
        return old is not None and new is not None and self._latest.is_written(change) and _flags(old) == _flags(new)

    def _patience(self, key: Key) -> float:
        gang = self._caches.gangs.get(key)
        if gang is None:
            return GATHERING.of(0)
        return (STATUS_GATHERING if was_initialized(gang) else GATHERING).of(gang.size)

    def _gangs_of_set(self, change: Change[PodCliqueSet]) -> Iterable[Key]:
        old, new = change.old, change.new
        if new is None or (old is not None and not _concerns_gangs(old, new)):
            return ()
        concerned = self._caches.gangs.index_keys(BY_SET, change.key)
        if old is not None and (lost := _lost(old, new)):
            self._lost |= {key: lost | self._lost.get(key, frozenset()) for key in concerned}
        return concerned

    def _gangs_of_topology(self, change: Change[ClusterTopologyBinding]) -> Iterable[Key]:
        sets = self._caches.sets.index_keys(BY_TOPOLOGY, change.key.name)
        return [gang for each in sets for gang in self._caches.gangs.index_keys(BY_SET, each)]


def _flags(gang: PodGang) -> tuple[bool, bool]:
    """Return what of a gang's status its backend is told of: Initialized and Scheduled."""
    conditions = gang.status.conditions
    return is_true(conditions, INITIALIZED), is_true(conditions, SCHEDULED)


def _derives_scheduled(gang: PodGang, backend: SchedulerBackend | None) -> bool:
    """Tell whether Scheduled is ours to write; of a backend that is not enabled the last writer goes on."""
    if backend is not None:
        return not backend.capabilities.writes_scheduled
    condition = find_condition(gang.status.conditions, SCHEDULED)
    return condition is not None and condition.reason in ("MinimumPlaced", MINIMUM_NOT_PLACED)


def _lost(old: PodCliqueSet, new: PodCliqueSet) -> frozenset[str]:
    """Return the labels and annotations that a set has lost, and its gangs are to lose, too."""
    before, after = old.metadata, new.metadata
    return frozenset(
        (mirrored(before.labels).keys() - after.labels.keys())
        | (mirrored(before.annotations).keys() - after.annotations.keys())
    )


def _own_part(observed: PodGangStatus, wanted: PodGangStatus) -> PodGangStatus:
    """Return what of an observed status the operator writes, to compare with what it would write."""
    kinds = {condition.type for condition in wanted.conditions}
    own = {condition.type: condition for condition in written(observed.conditions) if condition.type in kinds}
    ordered = tuple(own[condition.type] for condition in wanted.conditions if condition.type in own)
    return PodGangStatus(phase=observed.phase, conditions=ordered, scheduled=observed.scheduled)


def _is_coming_up(observed: PodGangStatus, wanted: PodGangStatus) -> bool:
    """Tell whether a status differs only in what the initialisation is waiting for, or is the first and all is well."""
    own = _own_part(observed, wanted)
    if not own.conditions:
        return not is_true(wanted.conditions, INITIALIZED) and not is_false(wanted.conditions, BACKEND_READY)
    return own != wanted and _without_progress(own) == _without_progress(wanted)


def _without_progress(status: PodGangStatus) -> PodGangStatus:
    conditions = tuple(
        msgspec.structs.replace(each, message="") if each.type == INITIALIZED and each.status == "False" else each
        for each in status.conditions
    )
    return msgspec.structs.replace(status, conditions=conditions)


def _concerns_gangs(old: PodCliqueSet, new: PodCliqueSet) -> bool:
    return (
        old.metadata.generation != new.metadata.generation
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
    )
