"""The PodClique controller: as many pods as asked for, created gated, released when the gate rule says so.

Creation waits for the gang's backend; the gate waits for the gang. Both rules are in
:mod:`spinney.operator.desired.gates`. A pod's name follows from its PodClique, its index and how many pods of that
index have come and gone, so a creation that is repeated finds the pod already there
(:mod:`spinney.operator.controllers.pod_names`).
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import structlog

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique
from spinney.api.grove_status import PodCliqueStatus
from spinney.api.meta import owner_reference
from spinney.api.podgang import BACKEND_READY, INITIALIZED, PodGang
from spinney.api.struct import JSON
from spinney.api.time import to_seconds
from spinney.backends.interface import SchedulerBackend
from spinney.kube.cache import Change
from spinney.kube.client import PatchKind
from spinney.kube.controller import Controller, Requeue, to_controller_of
from spinney.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from spinney.kube.events import reference
from spinney.kube.expectations import Expectations
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import (
    GatheringTime,
    HeldBack,
    Latest,
    Unread,
    a_controller,
    gathering,
    remove_finalizer,
    write_each,
)
from spinney.operator.caches import BY_BASE_GANG, BY_GANG, to_parts
from spinney.operator.configuration import InitContainer
from spinney.operator.controllers.admitted_pods import AdmittedPod, PodAltered, check_kept
from spinney.operator.controllers.backend_questions import BackendFault, BackendQuestions
from spinney.operator.controllers.pod_names import PodNames
from spinney.operator.controllers.shared import Shared
from spinney.operator.desired import gates, pods
from spinney.operator.desired.claims import claims_of_clique
from spinney.operator.desired.layout import CliquePlace, Layout
from spinney.operator.headcounts import Headcount
from spinney.operator.pod_states import deletion_order, free_indexes, has_gate, is_active, is_scheduled
from spinney.operator.status.last_errors import TRIED_AGAIN_SECONDS, ErrorReports, only_tells
from spinney.operator.status.podclique import clique_status
from spinney.operator.status.writing import says_the_same, write_status
from spinney.operator.updates.podclique import CliqueUpdate, clique_update, is_due
from spinney.operator.updates.podcliqueset import is_on_delete, is_selected
from spinney.runtime.faults import raised_later

log = structlog.get_logger()

GATHERING = GatheringTime(0.1, seconds_per_part=0.0002)
"""How long changes of pods are gathered before their PodClique is looked at: most only change its status.

Until all pods are there and placed a reconcile looks at each, so a large PodClique waits longer.
"""


@dataclass(frozen=True)
class CliqueObservation:
    """Everything a reconcile of one PodClique looks at."""

    key: Key
    clique: PodClique
    layout: Layout
    place: CliquePlace
    gang: PodGang | None
    backend: SchedulerBackend | None
    counted: Headcount
    pods: Sequence[Pod]
    """Empty where the headcount says that nothing is to be done to any of them."""


class PodCliqueController:
    """Reconciles PodCliques. Mutable: expectations, and the names of pods that came and went."""

    def __init__(self, shared: Shared, *, waiting: InitContainer) -> None:
        client = self._client = shared.client
        self._trusting = client.trusting()
        self._clock = client.runtime.clock
        self._caches, self._registry, self._events = shared.caches, shared.registry, shared.events
        self._claims, self._growth, self._interlock = shared.claims, shared.growth, shared.interlock
        self._waiting = waiting
        self._expectations = Expectations(client.runtime)
        self._latest: Latest[PodClique] = Latest()
        self._held_back = HeldBack(client.runtime.clock)
        self._names = PodNames()
        self._of_this_life: dict[Key, object] = {}  # the gang and the pods between which nothing was out of place
        self._altered: set[Key] = set()  # PodCliques whose pods the admission of others changed
        self._opened: set[str] = set()  # pods released here whose release the cache has not shown yet

    def register(self, manager: Manager, *, workers: int) -> Controller:
        """Run under a manager: woken by PodCliques, their pods, their gangs and what those wait for."""
        reports = ErrorReports(self._client, self._events, POD_CLIQUE, self._caches.cliques.get)
        reconcile = reports.of(self._telling_set)
        controller = a_controller(manager, "podclique", reconcile, workers=workers, longest_delay=TRIED_AGAIN_SECONDS)
        self._caches.pods.subscribe(self._observe)
        self._caches.cliques.subscribe(self._forget)
        controller.watch(
            self._caches.cliques, unless=lambda change: self._latest.is_written(change) or only_tells(change)
        )
        gather = gathering(controller, to_controller_of(POD_CLIQUE), self._patience)
        self._caches.pods.subscribe(gather)
        controller.watch(self._caches.gangs, self._cliques_of_gang)
        self._interlock.on_backend_ready(lambda gang: self._wake_cliques(controller, gang))
        controller.watch(self._caches.cliques, self._scaled_siblings)
        controller.watch(self._caches.sets, to_parts(self._caches.cliques))
        if self._claims.cache is not None:
            controller.watch(self._claims.cache, to_controller_of(POD_CLIQUE))
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring one PodClique to where it should be."""
        cached = self._caches.cliques.get(key)
        if cached is None:
            self._expectations.forget(key)
            self._latest.forget(key)
            self._held_back.forget(key)
            self._of_this_life.pop(key, None)
            self._altered.discard(key)
            return None
        clique = self._latest.of(key, cached)
        if clique.metadata.deleting:
            await remove_finalizer(self._client, POD_CLIQUE, clique, marks.POD_CLIQUE_FINALIZER)
            return None
        if not self._expectations.is_satisfied(key):
            return None
        scene = self._scene(key, clique)
        if scene is None:
            return None
        update = self._update(scene)
        if update.progress != clique.status.update_progress:
            # Which pod an update takes is on record before it goes: after a crash another must not be taken.
            scene = replace(scene, clique=await self._write_status(scene, self._status(scene, update)))
            if _template(scene.clique) != _template(clique):
                return Requeue()  # it has changed meanwhile: the step was decided for another one
        former = _of_a_former_life(scene)
        if not former:
            self._of_this_life[key] = _life(clique, scene.gang, scene.counted)
        going = (*update.delete, *_failed(scene), *former, *self._excess(scene, update))
        doomed = {pod.metadata.uid: pod for pod in going}
        await write_each(doomed.values(), lambda pod: self._delete(scene, pod))
        owner = owner_reference(POD_CLIQUE, clique.metadata)
        staying = [pod for pod in scene.pods if pod.metadata.uid not in doomed] if doomed else scene.pods
        there = scene.counted.active - sum(map(is_active, doomed.values()))
        granted = self._growth.pods(clique, scene.layout, scene.place, there=there)
        await self._claims.keep(scene.layout.pcs, owner, claims_of_clique(scene.place, range(granted)))
        failure: BaseException | None = None
        try:
            await self._create_missing(scene, staying, granted - there)
        except raised_later() as error:  # raised below: pods that are there do not wait for those that are not
            failure = error
        refused = await self._open_gates(scene)
        if failure is not None:
            raise failure
        status = self._status(scene, update)
        coming_up = _is_coming_up(scene.clique, status)
        left = self._held_back.seconds_left(key, scene.layout.replicas) if coming_up else 0.0
        if left > 0:
            return Requeue(after=left)
        self._held_back.forget(key)
        await self._write_status(scene, status)
        self._growth.check_granted(clique.spec.replicas or 0, granted, scene.layout)
        return Requeue() if refused else None

    async def _telling_set(self, key: Key) -> Requeue | None:
        """Reconcile; what a backend does wrong is told on the set, too, where its user looks."""
        try:
            return await self.reconcile(key)
        except BackendFault as fault:
            clique = self._caches.cliques.get(key)
            pcs = None if clique is None else self._caches.set_of(clique.metadata)
            if pcs is not None:
                self._events.event(reference(POD_CLIQUE_SET, pcs), "Warning", "BackendFailed", str(fault))
            raise

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _scene(self, key: Key, clique: PodClique) -> CliqueObservation | None:
        pcs = self._caches.set_of(clique.metadata)
        if pcs is None:
            return None
        layout = self._caches.layout(pcs)
        place = layout.place(clique.metadata.name, clique.metadata.labels)
        if place is None:
            return None
        gang = self._caches.gang_of(pcs, place.gang)
        backend = None if gang is None else self._registry.get(gang.metadata.labels.get(marks.SCHEDULER_NAME, ""))
        counted = self._caches.headcount(clique)
        complete = counted.is_complete(clique.spec.replicas or 0, _template(clique)) and not is_due(clique)
        looked_at = counted.placed or self._of_this_life.get(key) == _life(clique, gang, counted)
        found = () if complete and looked_at else self._caches.pods_of(clique)
        return CliqueObservation(key, clique, layout, place, gang, backend, counted, found)

    def _update(self, scene: CliqueObservation) -> CliqueUpdate:
        pcs = scene.layout.pcs
        hashes = scene.layout.hashes
        known = pcs.status.current_generation_hash == hashes.generation
        current = hashes.cliques[scene.place.template.name] == _template(scene.clique)
        return clique_update(
            scene.clique,
            scene.pods,
            generation_hash=hashes.generation,
            # The set says whose turn it is; until it has spoken about this very template it is nobody's.
            selected=known and current and is_selected(pcs, scene.place.replica),
            on_delete=is_on_delete(pcs),
            now=to_seconds(self._clock.now()),
        )

    def _excess(self, scene: CliqueObservation, update: CliqueUpdate) -> list[Pod]:
        if scene.counted.active <= (scene.clique.spec.replicas or 0):
            return []
        leaving = {pod.metadata.uid for pod in update.delete}
        staying = [pod for pod in scene.pods if is_active(pod) and pod.metadata.uid not in leaving]
        surplus = len(staying) - (scene.clique.spec.replicas or 0)
        if surplus <= 0:
            return []
        current = _template(scene.clique) or ""
        partial = scene.backend is not None and scene.backend.capabilities.minimum_members_only
        return deletion_order(staying, current, minimum=scene.place.minimum if partial else None)[:surplus]

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _create_missing(self, scene: CliqueObservation, staying: Sequence[Pod], wanted: int) -> None:
        if (
            wanted <= 0
            or not gates.may_create_pods(scene.clique, scene.gang, backend_ready=self._interlock.is_backend_ready)
            or scene.gang is None
            or scene.backend is None
        ):
            return
        # That its pods go may be seen before it is seen that the PodClique went, too.
        if not self._has_lost_pods(scene) or await self._interlock.exists(scene.clique):
            there = {pod.metadata.name for pod in scene.pods}
            # A name the gang still refers to is not used again: the reference is to the pod that had it.
            taken = there | gates.referenced(scene.clique, scene.gang)
            create = partial(self._create, scene, scene.gang, scene.backend, there=there, taken=taken)
            await write_each(free_indexes(staying, wanted), create)

    def _has_lost_pods(self, scene: CliqueObservation) -> bool:
        return self._names.has_lost(scene.clique) or scene.counted.active < scene.counted.pods

    async def _create(
        self,
        scene: CliqueObservation,
        gang: PodGang,
        backend: SchedulerBackend,
        index: int,
        *,
        there: AbstractSet[str],
        taken: AbstractSet[str],
    ) -> None:
        clique = scene.clique
        name = self._names.begin(clique, index, there=there, taken=taken)
        manifest = pods.pod_manifest(clique, scene.layout, scene.place, index, name=name, waiting=self._waiting)
        BackendQuestions(backend, gang).prepare(manifest)
        with self._expectations.creating(scene.key) as creation:
            try:
                created = await self._admitted(scene.key, manifest)
            except AlreadyExists:
                return  # made before, by a request whose answer was lost or whose event is still on its way
            except ApiError as error:
                self._events.event(reference(POD_CLIQUE, clique), "Warning", "PodCreateFailed", str(error))
                raise
            creation.created(created.metadata.uid)
            self._names.made(clique, index)

    async def _admitted(self, key: Key, manifest: JSON) -> AdmittedPod:
        """Create a pod, and take it back where the admission of others took something off that we need.

        After that pods of the PodClique are tried first, so that none come and go for as long as it lasts.
        """
        if key in self._altered:
            check_kept(manifest, await self._client.create(POD, manifest, type=AdmittedPod, dry_run=True))
            self._altered.discard(key)
        created = await self._client.create(POD, manifest, type=AdmittedPod)
        try:
            check_kept(manifest, created)
        except PodAltered:
            self._altered.add(key)
            with suppress(NotFound, Conflict):
                await self._client.delete(POD, manifest["metadata"]["name"], key.namespace, uid=created.metadata.uid)
            raise
        return created

    async def _delete(self, scene: CliqueObservation, pod: Pod) -> None:
        uid = pod.metadata.uid or ""
        with self._expectations.deleting(scene.key, uid):
            async with self._interlock.deleting(pod):
                try:
                    await self._client.delete(POD, pod.metadata.name, scene.key.namespace, uid=uid)
                except NotFound:
                    self._expectations.observe(Change(scene.key, pod, None, ""))

    async def _open_gates(self, scene: CliqueObservation) -> bool:
        """Open the gates that may be opened; says whether to look again: the gang, or pods of its base, are going."""
        gang = scene.gang
        if gang is None or scene.backend is None or not scene.counted.gated:
            return False
        base_scheduled = True
        if scene.place.base_gang is not None:
            base = self._caches.gang_of(scene.layout.pcs, scene.place.base_gang)
            cliques = partial(self._caches.clique, scene.key.namespace)
            base_scheduled = base is not None and gates.is_scheduled(base, cliques)
            if base is not None and base_scheduled and gates.has_lost_minimum(base, cliques, self._caches.headcount):
                return True
        released = gates.releasable(
            scene.clique,
            gang,
            [pod for pod in scene.pods if pod.metadata.uid not in self._opened],
            base_scheduled=base_scheduled,
            may_release=BackendQuestions(scene.backend, gang).may_release,
        )
        refused: list[Pod] = []

        async def release(pod: Pod) -> None:
            with self._interlock.opening_gate(gang) as allowed:
                if allowed:
                    await self._open_gate(pod)
                else:
                    refused.append(pod)

        await write_each(released, release)
        return bool(refused)

    async def _open_gate(self, pod: Pod) -> None:
        """Remove our gate and no other; a pod whose gates changed meanwhile is looked at again."""
        position = [gate.name for gate in pod.spec.scheduling_gates].index(marks.POD_GANG_GATE)
        path = f"/spec/schedulingGates/{position}"
        patch: list[JSON] = [
            {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "test", "path": f"{path}/name", "value": marks.POD_GANG_GATE},
            {"op": "remove", "path": path},
        ]
        try:
            await self._trusting.patch(
                POD, pod.metadata.name, patch, pod.metadata.namespace, kind=PatchKind.JSON, type=Unread
            )
        except (NotFound, Invalid) as error:
            if isinstance(error, Invalid) and await self._is_gated_as_seen(pod):
                raise  # so says a policy of the cluster, not the patch
            log.debug("gate not opened", pod=pod.metadata.name, error=str(error))
        else:
            self._opened.add(pod.metadata.uid or "")

    async def _is_gated_as_seen(self, pod: Pod) -> bool:
        """Ask whether a pod still is the one that was seen, with the same gates."""
        try:
            found = await self._client.get(POD, pod.metadata.name, pod.metadata.namespace, type=Pod)
        except NotFound:
            return False
        return found.metadata.uid == pod.metadata.uid and found.spec.scheduling_gates == pod.spec.scheduling_gates

    def _status(self, scene: CliqueObservation, update: CliqueUpdate) -> PodCliqueStatus:
        return clique_status(
            scene.clique,
            scene.counted,
            generation_hash=scene.layout.hashes.generation,
            progress=update.progress,
            settled=update.settled,
            now=self._clock.now(),
        )

    async def _write_status(self, scene: CliqueObservation, status: PodCliqueStatus) -> PodClique:
        clique = scene.clique
        if clique.status.scheduled_replicas and not status.scheduled_replicas:
            text = f"none of {clique.status.scheduled_replicas} scheduled pods is left"
            self._events.event(reference(POD_CLIQUE, clique), "Warning", "AllScheduledReplicasLost", text)
        return await write_status(self._trusting, POD_CLIQUE, clique, status, latest=self._latest, type=PodClique)

    # -- waking --------------------------------------------------------------------------------------------------------

    def _observe(self, change: Change[Pod]) -> None:
        self._expectations.observe(change)
        if change.old is not None and (change.new is None or not has_gate(change.new)):
            self._opened.discard(change.old.metadata.uid or "")
        owner = change.old.metadata.controller if change.new is None and change.old is not None else None
        if change.old is not None and owner is not None:
            clique = self._caches.clique(change.key.namespace, owner.name)
            if clique is not None and clique.metadata.uid == owner.uid:
                self._names.lost(clique, change.old)

    def _patience(self, key: Key) -> float:
        clique = self._caches.cliques.get(key)
        return GATHERING.of((clique.spec.replicas or 0) if clique is not None else 0)

    def _forget(self, change: Change[PodClique]) -> None:
        if change.new is None and change.old is not None:
            self._names.forget(change.old.metadata.uid or "")

    def _cliques_of_gang(self, change: Change[PodGang]) -> Iterable[Key]:
        old, new = change.old, change.new
        if old is not None and new is not None and _same_for_cliques(old, new):
            return ()
        return self._caches.cliques.index_keys(BY_GANG, change.key)

    def _wake_cliques(self, controller: Controller, gang: Key) -> None:
        for key in self._caches.cliques.index_keys(BY_GANG, gang):
            controller.enqueue(key)

    def _scaled_siblings(self, change: Change[PodClique]) -> Iterable[Key]:
        """Wake the PodCliques of scaled gangs when their base gang may just have become scheduled."""
        old, new = change.old, change.new
        if new is None or marks.BASE_POD_GANG in new.metadata.labels:
            return ()
        if old is not None and old.status.scheduled_replicas == new.status.scheduled_replicas:
            return ()
        base = Key(change.key.namespace, new.metadata.labels.get(marks.POD_GANG, ""))
        return self._caches.cliques.index_keys(BY_BASE_GANG, base)


def _is_coming_up(clique: PodClique, status: PodCliqueStatus) -> bool:
    """Tell whether a status differs from the one on record while no pod has been placed yet."""
    placed = status.scheduled_replicas or clique.status.scheduled_replicas
    return not placed and not says_the_same(status, clique.status)


def _failed(scene: CliqueObservation) -> list[Pod]:
    """Return pods that failed for good; they are replaced, and their names and claims given back."""
    if scene.counted.active == scene.counted.pods:
        return []
    return [pod for pod in scene.pods if pod.status.phase == "Failed" and not pod.metadata.deleting]


def _of_a_former_life(scene: CliqueObservation) -> list[Pod]:
    """Return pods that wait for a node as members of what their gang was before it was deleted and made anew."""
    gang, backend = scene.gang, scene.backend
    if gang is None or gang.metadata.deleting or backend is None or scene.counted.active == scene.counted.scheduled:
        return []
    waiting = [pod for pod in scene.pods if is_active(pod) and not is_scheduled(pod)]
    questions = BackendQuestions(backend, gang)
    return [pod for pod in waiting if not questions.is_prepared(pod)]


def _life(clique: PodClique, gang: PodGang | None, counted: Headcount) -> object:
    """Return what it depends on whether pods are of a former life; not that some are placed, nor any status."""
    if gang is None:
        return clique.metadata.uid, counted.generation
    meta = gang.metadata
    described = (meta.uid, meta.generation, meta.deletion_timestamp, meta.labels, meta.annotations)
    return clique.metadata.uid, counted.generation, described


def _same_for_cliques(old: PodGang, new: PodGang) -> bool:
    if old.metadata.deletion_timestamp != new.metadata.deletion_timestamp or _spoken(old) != _spoken(new):
        return False
    if not gates.was_initialized(new):
        return True  # until then nobody goes by what it refers to
    return old.spec == new.spec and old.metadata.annotations == new.metadata.annotations


def _spoken(gang: PodGang) -> tuple[bool, dict[str, tuple[str, str]]]:
    """Return what of a gang's conditions its PodCliques wait for."""
    return gates.was_initialized(gang), {
        each.type: (each.status, each.message if each.type == BACKEND_READY else "")
        for each in gang.status.conditions
        if each.type != INITIALIZED
    }


def _template(clique: PodClique) -> str | None:
    """Return the hash of the template that the pods of a PodClique are made from."""
    return clique.metadata.labels.get(marks.POD_TEMPLATE_HASH)
