"""The grouping controller: a PodGang for each gang that the rules see, and labels on its pods.

Two queues. Pods are given their places (:mod:`.intake`); gangs are then brought to what their pods and their workload
say: the PodGang first, then what the scheduler's backend makes of it, then the labels by which pods say that they are
in it. A scheduler that waits for the grouper starts nothing before. A gang without pods goes after a moment, so that a
workload that restarts keeps its gang.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import POD_GANG, PodGang
from spinney.backends.interface import SchedulerBackend
from spinney.backends.lending import lent
from spinney.backends.told import ToldGangs
from spinney.grouping import joining, podgangs, selecting, statuses
from spinney.grouping.describing import GangDescription
from spinney.grouping.finished import FinishedPods, noting
from spinney.grouping.intake import REFUSED, PodIntake
from spinney.grouping.joining import Marks
from spinney.grouping.terms import RuleRefused
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Requeue
from spinney.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key, key_of
from spinney.kube.reconciling import Latest, Unread, delete_exactly, unless_gone, write_each
from spinney.runtime.faults import raised_later, told

STATUS_SECONDS: Final = 5.0
"""How long changes of pods are gathered before the gang's status says so."""
INCOMPLETE_SECONDS: Final = 1.0
"""How long a new gang waits for the pods that it needs before it is written down."""
EMPTY_SECONDS: Final = 5.0
"""How long a gang without pods is kept: a workload that restarts makes them anew."""

FOREIGN: Final = "ForeignPodGang"
SYNC_FAILED: Final = "SyncFailed"
UNJOINABLE: Final = "CannotJoin"
_INSTEAD: Final = "name a PodGroup in the pod template (spec.schedulingGroup), or use schedulerName spinney-scheduler"

log = structlog.get_logger()


@dataclass
class GroupingController:
    """Reconciles gangs. Keeps only what may be forgotten: own writes not seen yet, and what backends were told."""

    client: Client
    intake: PodIntake
    gangs: WatchCache[PodGang]
    backends: Mapping[str, SchedulerBackend]
    """By the scheduler name of pods."""
    events: EventRecorder
    _latest: Latest[PodGang] = field(default_factory=Latest)
    _told: ToldGangs[PodGang] = field(init=False)
    _complaints: dict[Key, str] = field(default_factory=dict)
    _empty_since: dict[Key, float] = field(default_factory=dict)
    _status_due: dict[Key, float] = field(default_factory=dict)
    _waiting_since: dict[Key, float] = field(default_factory=dict)
    _finished: FinishedPods = field(default_factory=FinishedPods)

    def __post_init__(self) -> None:
        self.client = self.client.trusting()
        self._told = ToldGangs(self.client.runtime.clock)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring one gang to where it should be."""
        cached = self.gangs.get(key)
        found = self._latest.of(key, cached) if cached is not None else None
        pods = self._pods(key)
        if not pods:
            return await self._without_pods(key, found)
        self._empty_since.pop(key, None)
        if found is not None and found.metadata.deleting:
            return None
        first = min(pods, key=lambda pod: (pod.metadata.deleting, pod.metadata.name))
        backend = self.backends[first.spec.scheduler_name]
        unable = joining.unable(backend)
        if found is None and not unable and (left := self._patience(key, len(pods), self._needed(first))) > 0:
            return Requeue(after=left)
        try:
            grouping, _ = await self.intake.described(first, pods)
        except RuleRefused:
            return None  # the pod itself says so
        place = self.intake.membership.place(key_of(first))
        if place is None or podgangs.gang_name(grouping.gang) != key.name:
            return None  # its pods are being looked at again
        if place.alone and not backend.capabilities.every_pod_in_a_group:
            return await self._stand_alone(key, first, grouping.gang)
        if unable:
            return await self._leave_alone(key, pods, grouping.gang, unable)
        if found is not None and marks.GROUPED not in found.metadata.labels:
            text = f"PodGang {key} exists and is not the grouper's; rename it, or the workload that needs the name"
            self.events.event(reference(POD, first), "Warning", FOREIGN, text)
            await write_each(pods, self._withdraw)
            return Requeue()
        return await self._together(key, found, grouping.gang, pods, backend)

    def wrote(self, change: Change[PodGang]) -> bool:
        """Tell whether a change is our own write, seen again."""
        return self._latest.is_written(change)

    def seconds_to_report(self, key: Key) -> float:
        """Return in how many seconds the status of a gang is to be written, counted from the first change of it."""
        now = self.client.runtime.clock.monotonic()
        return self._status_due.setdefault(key, now + STATUS_SECONDS) - now

    async def leave(self, pod: Pod) -> None:
        """Say on a pod that it is not grouped, unless its scheduler places none without a group."""
        lacking = joining.left_marks(pod)
        able = not self.backends[pod.spec.scheduler_name].capabilities.every_pod_in_a_group
        if lacking is not None and able and not _has_ended(pod):
            await self._patch(pod, lacking)

    # -- one pod -------------------------------------------------------------------------------------------------------

    async def _stand_alone(self, key: Key, pod: Pod, gang: GangDescription) -> Requeue | None:
        """Say on a pod that it is a gang of its own, and how it stands; what it says itself stays."""
        lacking = joining.alone_marks(pod, gang)
        if lacking is None or _has_ended(pod):
            return None
        try:
            await self._patch(pod, lacking)
        except (BadRequest, Forbidden, Invalid) as error:
            self._refused(key, (pod,), f"the labels of a gang of its own cannot be written: {error}")
            return Requeue()
        self.intake.metrics.pods_grouped.labels(gang.rule.kind).inc()
        return None

    async def _leave_alone(self, key: Key, pods: Sequence[Pod], gang: GangDescription, unable: str) -> Requeue | None:
        """Say on pods whose scheduler cannot be handed their gang that they are scheduled one by one."""
        retry: Requeue | None = None
        for pod in pods:
            if podgangs.needed(gang) > 1 and marks.GROUPED not in pod.metadata.labels and not _has_ended(pod):
                text = f"{unable}, so the gang of {gang.owner.kind} {gang.owner.metadata.name} is not kept together"
                self.events.event(reference(POD, pod), "Warning", UNJOINABLE, f"{text}; {_INSTEAD}")
                self.intake.metrics.refusals.labels(gang.rule.kind).inc()
            retry = await self._stand_alone(key, pod, gang) or retry
        return retry

    # -- several pods --------------------------------------------------------------------------------------------------

    async def _together(
        self, key: Key, found: PodGang | None, gang: GangDescription, pods: Sequence[Pod], backend: SchedulerBackend
    ) -> Requeue | None:
        if found is None and (left := self._patience(key, len(pods), podgangs.needed(gang))) > 0:
            return Requeue(after=left)
        groups = self._groups(key, pods)
        wanted = podgangs.pod_gang(gang, backend.name, groups)
        finished = {} if gang.shape.finished_counted else self._finished.counts(wanted, groups, found)
        wanted = podgangs.with_floors(noting(wanted, finished, groups), finished, found)
        wanted, problem = _with_queue_kept(wanted, found, pods)
        with self.events.giving_way():  # a scheduler waits for these writes
            try:
                stored = await self._write(key, found, wanted)
            except (BadRequest, Forbidden, Invalid) as error:
                self._refused(key, pods, f"PodGang {key.name} cannot be written: {error}")
                return Requeue()
            if stored is None:
                return Requeue()
            if found is None:
                self.intake.metrics.gangs_made.labels(gang.rule.kind).inc()
            retry = await self._sync(key, stored, backend)
            if retry is None:
                await self._join(key, stored, pods, backend, gang.rule.kind)
        problems = "; ".join(filter(None, (*gang.problems, problem, joining.several_schedulers(pods))))
        later = await self._report(key, stored, groups, problems, backend)
        return retry or later

    def _refused(self, key: Key, pods: Sequence[Pod], text: str) -> None:
        """Say on the pods that the API server does not take their gang: a quota, a webhook, a name."""
        if self._complaints.get(key) == text:
            return
        self._complaints[key] = text
        for pod in pods:
            self.events.event(reference(POD, pod), "Warning", REFUSED, f"{text}; the pod waits until it can")

    def _needed(self, pod: Pod) -> int:
        """Return how many pods the gang of a pod needs, as was known when the pod got its place."""
        place = self.intake.membership.place(key_of(pod))
        return 0 if place is None else place.needed

    def _patience(self, key: Key, pods: int, needed: int) -> float:
        """Return how much longer a new gang may wait for pods: it is written once, not with every one of them."""
        if pods >= needed:
            self._waiting_since.pop(key, None)
            return 0.0
        now = self.client.runtime.clock.monotonic()
        return self._waiting_since.setdefault(key, now) + INCOMPLETE_SECONDS - now

    async def _write(self, key: Key, found: PodGang | None, wanted: PodGang) -> PodGang | None:
        """Create the PodGang, or change what differs; ``None``: another client was faster, look again."""
        try:
            if found is None:
                return self._latest.wrote(key, await self.client.create(POD_GANG, wanted, type=PodGang))
            patch = podgangs.correction(found, wanted)
            if patch is None:
                return found
            patch.setdefault("metadata", {})["uid"] = found.metadata.uid
            stored = await self.client.patch(POD_GANG, key.name, patch, key.namespace, type=PodGang)
            return self._latest.wrote(key, stored)
        except AlreadyExists:
            return self._latest.wrote(key, await self.client.get(POD_GANG, key.name, key.namespace, type=PodGang))
        except NotFound:
            self._latest.forget(key)
            return None

    async def _sync(self, key: Key, gang: PodGang, backend: SchedulerBackend) -> Requeue | None:
        """Tell the backend if there is something new for it."""
        structure = _structure(gang)
        if self._told.knows(key, structure):
            return None
        try:
            await backend.sync_pod_gang(lent(gang))
        except raised_later() as error:  # whatever a backend raises is its own, and is said on the gang
            text = f"{backend.name}: {told(error)}"
            if self._complaints.get(key) != text:
                self._complaints[key] = text
                self.events.event(reference(POD_GANG, gang), "Warning", SYNC_FAILED, text)
                log.warning("backend sync failed", gang=str(key), backend=backend.name, error=text)
            return Requeue()
        self._complaints.pop(key, None)
        self._told.note(key, structure)
        return None

    async def _join(self, key: Key, gang: PodGang, pods: Sequence[Pod], backend: SchedulerBackend, kind: str) -> None:
        """Have every pod say that it is in the gang, as its scheduler reads it."""
        lacking: list[tuple[Pod, Marks]] = []
        for pod in pods:
            place = self.intake.membership.place(key_of(pod))
            if place is None or place.gang != key or _has_ended(pod):
                continue
            wanted = selecting.gang_labels(key.name, place.group)
            if not selecting.labels_match(pod.metadata.labels, wanted):
                lacking.append((pod, joining.gang_marks(pod.metadata.name, gang, place.group, backend)))
        await write_each(lacking, lambda each: self._patch(*each))
        self.intake.metrics.pods_grouped.labels(kind).inc(len(lacking))

    async def _withdraw(self, pod: Pod) -> None:
        """Take a pod out of a gang that turned out not to be the grouper's; it waits."""
        if marks.GROUPED in pod.metadata.labels and not _has_ended(pod):
            left = selecting.leaving(pod)
            await self._patch(pod, {**left, "labels": {**left["labels"], marks.GROUPED: None}})

    async def _patch(self, pod: Pod, metadata: Marks) -> None:
        patch = {"metadata": {"uid": pod.metadata.uid, **{key: each for key, each in metadata.items() if each}}}
        await unless_gone(self.client.patch(POD, pod.metadata.name, patch, pod.metadata.namespace, type=Unread))

    # -- the end, and what is said -------------------------------------------------------------------------------------

    async def _without_pods(self, key: Key, found: PodGang | None) -> Requeue | None:
        """Delete a gang that has had no pods for a moment."""
        if found is None or marks.GROUPED not in found.metadata.labels or found.metadata.deleting:
            self._forget(key)
            return None
        self._finished.start_anew(key)
        now = self.client.runtime.clock.monotonic()
        left = self._empty_since.setdefault(key, now) + EMPTY_SECONDS - now
        if left > 0:
            return Requeue(after=left)
        await delete_exactly(self.client, POD_GANG, found)
        self._forget(key)
        return None

    async def _report(
        self,
        key: Key,
        gang: PodGang,
        groups: Mapping[str, Sequence[Pod]],
        problem: str,
        backend: SchedulerBackend,
    ) -> Requeue | None:
        """Write the status, not more often than once in a while."""
        clock = self.client.runtime.clock
        left = self.seconds_to_report(key)
        if left > 0:
            return Requeue(after=left)
        del self._status_due[key]
        wanted = statuses.status(
            gang,
            groups,
            problem=problem,
            backend=self._complaints.get(key, ""),
            derive_scheduled=not backend.capabilities.writes_scheduled,
            now=clock.now(),
        )
        if wanted == gang.status:
            return None
        metadata = {"uid": gang.metadata.uid, "resourceVersion": gang.metadata.resource_version}
        patch = {"metadata": metadata, "status": msgspec.to_builtins(wanted)}
        try:
            stored = await self.client.patch(
                POD_GANG, key.name, patch, key.namespace, subresource="status", type=PodGang
            )
        except (NotFound, Conflict):
            return Requeue(after=STATUS_SECONDS)
        self._latest.wrote(key, stored)
        return None

    def _pods(self, key: Key) -> list[Pod]:
        found = (self.intake.pods.get(pod) for pod in self.intake.membership.pods(key))
        return [pod for pod in found if pod is not None]

    def _groups(self, key: Key, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
        groups: dict[str, list[Pod]] = {}
        for pod in pods:
            place = self.intake.membership.place(key_of(pod))
            if place is not None and place.gang == key and not pod.metadata.deleting and pod.status.phase != "Failed":
                groups.setdefault(place.group, []).append(pod)
        return groups

    def _forget(self, key: Key) -> None:
        self._latest.forget(key)
        self._told.forget(key)
        self._complaints.pop(key, None)
        self._empty_since.pop(key, None)
        self._status_due.pop(key, None)
        self._waiting_since.pop(key, None)
        self._finished.forget(key)


def _has_ended(pod: Pod) -> bool:
    """Tell whether a pod has done its part, or is on its way out: nobody schedules it any more."""
    return pod.metadata.deleting or pod.terminal


def _structure(gang: PodGang) -> PodGang:
    """Return what a backend has to hear of: what is asked for, and queue and the like; not which pods there are."""
    marked = ObjectMeta(labels=gang.metadata.labels, annotations=gang.metadata.annotations)
    return PodGang(metadata=marked, spec=podgangs.without_pods(gang.spec))


def _with_queue_kept(wanted: PodGang, found: PodGang | None, pods: Sequence[Pod]) -> tuple[PodGang, str]:
    """Keep the queue that a gang has once a pod of it is placed, and say so where another is asked for."""
    before = found.metadata.labels.get(marks.KAI_QUEUE) if found is not None else None
    asked = wanted.metadata.labels[marks.KAI_QUEUE]
    if not before or before == asked or not any(pod.spec.node_name for pod in pods):
        return wanted, ""
    labels = {**wanted.metadata.labels, marks.KAI_QUEUE: before}
    kept = msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata, labels=labels))
    return kept, f"queue {asked} is asked for, but the gang has begun in queue {before} and stays there"
