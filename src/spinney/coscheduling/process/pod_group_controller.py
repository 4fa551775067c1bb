"""The PodGroup controller: what the status of a scheduler-plugins PodGroup says, from the pods that name it.

The status is a function of the pods there are now, so it recovers by itself from every interruption:

==========  ==========================================================================================================
Finished    as many members as the minimum have succeeded; stays when the pods are cleaned up
Failed      a member has failed; left again once members exist and none of them is failed
Pending     fewer members than the minimum exist
Scheduling  enough members exist, fewer than the minimum run or have succeeded
Running     at least the minimum run or have succeeded
==========  ==========================================================================================================

``scheduleStartTime`` is the scheduler's to write. The controller runs in the scheduler's process, where its writes give
way to binds: while thousands of groups start, each is written once, and not before its pods.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import msgspec
import structlog

from spinney.api import coscheduling as api
from spinney.api.core import POD, Pod
from spinney.api.coscheduling import POD_GROUP, PodGroup, PodGroupStatus
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.struct import JSON
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Controller, Requeue, to_label
from spinney.kube.errors import NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.controller import GIVING_WAY_SECONDS

log = structlog.get_logger()

INDEX: Final = "coscheduling pod group"
CONTESTED: Final = "OccupiedByAnother"


class PodGroupController:
    """Keeps the status of PodGroups once they are followed. Mutable: it remembers which conflicts it has reported."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._client = manager.client
        self._events: EventRecorder = manager.recorder("podgroup-controller")
        self._followed: tuple[WatchCache[PodGroup], WatchCache[Pod]] | None = None
        self._contested: dict[Key, frozenset[str]] = {}
        self.controller = Controller(
            "podgroup", self._reconcile, runtime=manager.runtime, metrics=manager.metrics, workers=4
        )
        manager.add(self.controller)

    def follow(self, groups: WatchCache[PodGroup]) -> None:
        """Begin to write, at the start or when the kind is installed later."""
        pods = self._manager.cache(POD, Pod, indexes={INDEX: _groups_of})
        self._followed = (groups, pods)
        self.controller.watch(groups)
        self.controller.watch(pods, to_label(COSCHEDULING_GROUP))

    def enqueue(self, group: Key) -> None:
        """Look at a group soon."""
        self.controller.enqueue(group)

    async def _reconcile(self, key: Key) -> Requeue | None:
        await self._events.when_calm(GIVING_WAY_SECONDS)
        if self._followed is None:
            return None
        groups, all_pods = self._followed
        group = groups.get(key)
        if group is None:
            self._contested.pop(key, None)
            return None
        pods = all_pods.index(INDEX, key)
        status = next_status(group, pods)
        self._report_conflict(key, group, pods, status)
        if status == group.status:
            return None
        patch: JSON = {
            "metadata": {"resourceVersion": group.metadata.resource_version},
            "status": {
                "phase": status.phase,
                "occupiedBy": status.occupied_by or None,
                "scheduled": status.scheduled,
                "running": status.running,
                "succeeded": status.succeeded,
                "failed": status.failed,
            },
        }
        try:
            await self._client.patch(POD_GROUP, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        if status.phase != group.status.phase:
            log.info("pod group", group=str(key), phase=status.phase, was=group.status.phase or "")
            self._tell(group, status, pods)
        return None

    def _tell(self, group: PodGroup, status: PodGroupStatus, pods: Sequence[Pod]) -> None:
        """Record a turn in the life of a group as an event on it."""
        about = reference(POD_GROUP, group)
        minimum = group.spec.min_member
        if status.phase == api.RUNNING:
            self._events.event(about, "Normal", api.RUNNING, f"{status.running} pods run, at least {minimum} must")
        elif status.phase == api.FINISHED:
            self._events.event(about, "Normal", api.FINISHED, f"{status.succeeded} pods have succeeded")
        elif status.phase == api.FAILED:
            names = ", ".join(sorted(pod.metadata.name for pod in pods if pod.status.phase == "Failed"))
            self._events.event(about, "Warning", api.FAILED, f"failed: {names}")

    def _report_conflict(self, key: Key, group: PodGroup, pods: Sequence[Pod], status: PodGroupStatus) -> None:
        others = frozenset(owner for pod in pods if (owner := _owner(pod)) and owner != status.occupied_by)
        if not others or self._contested.get(key) == others:
            return
        self._contested[key] = others
        names = ", ".join(sorted({str(_owner_name(pod)) for pod in pods if _owner(pod) in others}))
        message = f"pods of {names} join the group, which is occupied by {status.occupied_by}"
        self._events.event(reference(POD_GROUP, group), "Warning", CONTESTED, message)


def next_status(group: PodGroup, pods: Iterable[Pod]) -> PodGroupStatus:
    """Return what the status of ``group`` should say, given the pods of its namespace that name it."""
    members = sorted(
        pods,
        key=lambda pod: (pod.metadata.creation_timestamp is None, pod.metadata.creation_timestamp, pod.metadata.name),
    )
    live = [pod for pod in members if not pod.terminal]
    was = group.status
    if was.phase == api.FINISHED and not live:
        return was
    failed = sum(pod.status.phase == "Failed" for pod in members)
    succeeded = sum(pod.status.phase == "Succeeded" for pod in members)
    running = sum(pod.status.phase == "Running" for pod in members)
    if was.phase == api.FAILED and not members:
        return was
    return msgspec.structs.replace(
        was,
        phase=_phase(group.spec.min_member, len(members), running, succeeded, failed),
        occupied_by=was.occupied_by if _still_there(was, members) else next(filter(None, map(_owner, members)), None),
        scheduled=sum(bool(pod.spec.node_name) for pod in live),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )


def _phase(minimum: int, members: int, running: int, succeeded: int, failed: int) -> str:
    if succeeded >= minimum:
        return api.FINISHED
    if failed:
        return api.FAILED
    if members < minimum:
        return api.PENDING
    return api.RUNNING if running + succeeded >= minimum else api.SCHEDULING


def _still_there(was: PodGroupStatus, members: Sequence[Pod]) -> bool:
    """Tell whether the owner on record still has pods in the group, or nobody else has."""
    owners = {_owner(pod) for pod in members} - {""}
    return bool(was.occupied_by) and (not owners or was.occupied_by in owners)


def _owner(pod: Pod) -> str:
    controller = pod.metadata.controller
    return controller.uid if controller is not None else ""


def _owner_name(pod: Pod) -> str:
    controller = pod.metadata.controller
    return f"{controller.kind} {controller.name}" if controller is not None else ""


def _groups_of(pod: Pod) -> Iterable[Hashable]:
    name = pod.metadata.labels.get(COSCHEDULING_GROUP)
    return (Key(pod.metadata.namespace or "", name),) if name else ()
