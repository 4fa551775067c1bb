"""The PodCliqueScalingGroup controller: the PodCliques of each of its replicas."""

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.api import labels as marks
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, PodClique, PodCliqueScalingGroup
from spinney.api.meta import owner_reference
from spinney.api.time import to_seconds
from spinney.kube.controller import Controller, Requeue, to_controller_of, to_label
from spinney.kube.events import reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import Latest, a_controller, delete_exactly, patch_each, remove_finalizer, write_each
from spinney.operator.caches import BY_SCALING_GROUP, to_parts
from spinney.operator.controllers.shared import Shared
from spinney.operator.desired import names, podcliques
from spinney.operator.desired.claims import claims_of_group
from spinney.operator.desired.hashes import TemplateHashes
from spinney.operator.desired.layout import Layout
from spinney.operator.owned.taken_names import create_own
from spinney.operator.status.last_errors import TRIED_AGAIN_SECONDS, ErrorReports, only_tells
from spinney.operator.status.podcliquescalinggroup import by_replica, group_status
from spinney.operator.status.podcliqueset import replica_index
from spinney.operator.status.writing import write_status
from spinney.operator.updates import termination
from spinney.operator.updates.podcliquescalinggroup import GroupUpdate, group_update
from spinney.operator.updates.podcliqueset import is_on_delete, is_selected


@dataclass(frozen=True)
class GroupObservation:
    """Everything a reconcile of one scaling group looks at."""

    key: Key
    group: PodCliqueScalingGroup
    layout: Layout
    config: str
    replica: int
    hashes: TemplateHashes
    members: Sequence[PodClique]


class PodCliqueScalingGroupController:
    """Reconciles PodCliqueScalingGroups. Mutable: own writes not seen yet."""

    def __init__(self, shared: Shared) -> None:
        self._client = shared.client.trusting()
        self._clock = shared.client.runtime.clock
        self._caches, self._events = shared.caches, shared.events
        self._claims, self._growth, self._interlock = shared.claims, shared.growth, shared.interlock
        self._latest: Latest[PodCliqueScalingGroup] = Latest()

    def register(self, manager: Manager, *, workers: int) -> Controller:
        """Run under a manager: woken by groups, their PodCliques and their sets."""
        reports = ErrorReports(self._client, self._events, POD_CLIQUE_SCALING_GROUP, self._caches.groups.get)
        reconcile = reports.of(self.reconcile)
        controller = a_controller(
            manager, "podcliquescalinggroup", reconcile, workers=workers, longest_delay=TRIED_AGAIN_SECONDS
        )
        controller.watch(self._caches.groups, unless=only_tells)
        controller.watch(self._caches.cliques, to_label(marks.SCALING_GROUP))
        controller.watch(self._caches.sets, to_parts(self._caches.groups))
        if self._claims.cache is not None:
            controller.watch(self._claims.cache, to_controller_of(POD_CLIQUE_SCALING_GROUP))
        return controller

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring one scaling group to where it should be."""
        cached = self._caches.groups.get(key)
        if cached is None:
            self._latest.forget(key)
            return None
        group = self._latest.of(key, cached)
        if group.metadata.deleting:
            await remove_finalizer(self._client, POD_CLIQUE_SCALING_GROUP, group, marks.SCALING_GROUP_FINALIZER)
            return None
        scene = self._scene(key, group)
        if scene is None:
            return None
        update = self._update(scene)
        verdict = termination.of_scaling_group(group, scene.members, scene.layout.pcs, self._clock.now())
        if verdict.recycle:
            text = f"replicas {', '.join(map(str, verdict.recycle))} lost their minimum for too long"
            about = reference(POD_CLIQUE_SCALING_GROUP, group)
            self._events.event(about, "Warning", "PodCliqueScalingGroupReplicaDeleteSuccessful", text)
        await self._write_status(scene, update)
        await self._delete(scene, update.delete, verdict.recycle)
        granted = self._growth.copies(group, scene.layout, scene.config)
        await self._sync(scene, granted)
        self._growth.check_granted(group.spec.copies, granted, scene.layout)
        return None if verdict.wait is None else Requeue(after=verdict.wait.total_seconds())

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _scene(self, key: Key, group: PodCliqueScalingGroup) -> GroupObservation | None:
        pcs = self._caches.set_of(group.metadata)
        i = replica_index(group.metadata.labels)
        if pcs is None or i < 0:
            return None
        layout = self._caches.layout(pcs)
        config = names.config_name(group.metadata.name, group.metadata.labels)
        if config not in layout.group_configs:
            return None
        members = self._caches.cliques.index(BY_SCALING_GROUP, key)
        return GroupObservation(key, group, layout, config, i, layout.hashes, members)

    def _update(self, scene: GroupObservation) -> GroupUpdate:
        pcs = scene.layout.pcs
        known = pcs.status.current_generation_hash == scene.hashes.generation
        return group_update(
            scene.group,
            scene.members,
            hashes=scene.hashes,
            selected=known and is_selected(pcs, scene.replica),
            on_delete=is_on_delete(pcs),
            now=to_seconds(self._clock.now()),
        )

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _delete(self, scene: GroupObservation, replaced: Sequence[PodClique], recycled: Sequence[int]) -> None:
        """Delete the PodCliques that are replaced, recycled or no longer wanted, highest index first."""
        names_replaced = {clique.metadata.name for clique in replaced}
        doomed = [
            clique
            for j, members in sorted(by_replica(scene.members).items(), reverse=True)
            for clique in members
            if j in recycled or j >= scene.group.spec.copies or clique.metadata.name in names_replaced
        ]
        await write_each(doomed, self._take)

    async def _take(self, clique: PodClique) -> None:
        async with self._interlock.deleting(clique):
            await delete_exactly(self._client, POD_CLIQUE, clique)

    async def _sync(self, scene: GroupObservation, replicas: int) -> None:
        wanted = podcliques.desired_scaling_group(scene.layout, scene.replica, scene.config)
        correction = podcliques.group_correction(scene.group, wanted)
        await patch_each(self._client, POD_CLIQUE_SCALING_GROUP, [(scene.group, correction)])
        owner = owner_reference(POD_CLIQUE_SCALING_GROUP, scene.group.metadata)
        plans = claims_of_group(scene.layout, scene.replica, scene.config, replicas)
        await self._claims.keep(scene.layout.pcs, owner, plans)
        existing = {clique.metadata.name: clique for clique in scene.members}
        desired = [
            podcliques.desired_clique(scene.layout, place, scene.hashes.cliques[place.template.name], owner)
            for j in range(replicas)
            for place in scene.layout.members(scene.replica, scene.config, j)
        ]
        missing = [each for each in desired if each.metadata.name not in existing]
        await write_each(missing, lambda clique: create_own(self._client, POD_CLIQUE, clique))
        pairs = [(existing[each.metadata.name], each) for each in desired if each.metadata.name in existing]
        patches = [
            (found, podcliques.correction(found, wanted))
            for found, wanted in pairs
            if self._may_correct(scene, found, wanted)
        ]
        await patch_each(self._client, POD_CLIQUE, patches)

    def _may_correct(self, scene: GroupObservation, existing: PodClique, desired: PodClique) -> bool:
        """Tell whether a PodClique is edited in place; a rolling update deletes it instead."""
        if existing.metadata.deleting:
            return False
        label = marks.POD_TEMPLATE_HASH
        same = existing.metadata.labels.get(label) == desired.metadata.labels.get(label)
        return same or is_on_delete(scene.layout.pcs)

    async def _write_status(self, scene: GroupObservation, update: GroupUpdate) -> None:
        group = scene.group
        status = group_status(
            group,
            scene.members,
            hashes=scene.hashes,
            progress=update.progress,
            settled=update.settled,
            now=self._clock.now(),
        )
        await write_status(
            self._client, POD_CLIQUE_SCALING_GROUP, group, status, latest=self._latest, type=PodCliqueScalingGroup
        )
