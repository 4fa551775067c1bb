"""What ``spinney record`` wrote: snapshots of one cluster strung together, one file each, in a directory.

They are read one after another, and only what changed from one to the next is looked at and kept: gangs become jobs
(:mod:`~spinney.sim.replay.formats.recorded_gangs`), nodes come, go and change, and so do queues, topologies and
namespaces. Who ran when the recording began, begins where it ran.

Where the cluster has queues, pods that are none of theirs (system pods, workloads of other schedulers) are in a queue
that has no bounds, are not preemptible, and say that nobody is to be preempted for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.kai import QUEUE, TOPOLOGY, Queue
from spinney.api.kueue import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE
from spinney.api.meta import ObjectMeta
from spinney.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget, PodDisruptionBudgetStatus, desired_healthy
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.sources.context import DEFAULT_QUEUE
from spinney.gangs.tree import GangKey
from spinney.kube.keys import Key
from spinney.scheduler.fairshare.amounts import NO_BOUND
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.scheduler.fairshare.sources import queue_of
from spinney.scheduler.topology.levels import TopologyLevels, topology_of
from spinney.sim.overview.gang_table import levels_of
from spinney.sim.replay.formats.recorded_claims import CLAIMED, RecordedClaims
from spinney.sim.replay.formats.recorded_gangs import RecordedGangs, RecordedJob
from spinney.sim.replay.formats.recorded_nodes import RecordedNodes
from spinney.sim.replay.formats.recorded_places import in_place
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.objects import pod_name
from spinney.sim.replay.trace import ClusterChange, Job, Trace
from spinney.sim.snapshots.files import SnapshotReader, UnreadableSnapshot, taken_at
from spinney.sim.snapshots.snapshot import KINDS, ClusterSnapshot, Differing, differing
from spinney.sim.whatif.loading import SESSION_NAMES, KueueQueues

_SNAPSHOTS: Final = "*.json.gz"
OTHERS_QUEUE: Final = "other-schedulers"
_QUEUES: Final = frozenset({QUEUE, CLUSTER_QUEUE, COHORT, LOCAL_QUEUE})
_TOPOLOGIES: Final = frozenset({TOPOLOGY, CLUSTER_TOPOLOGY_BINDING})
_DEFINITIONS: Final = frozenset(resource for resource, kind in KINDS.items() if kind in GangDefinitions.KINDS)
_REPLAYED: Final = (*_DEFINITIONS, *_QUEUES, *_TOPOLOGIES, NAMESPACE, POD_DISRUPTION_BUDGET, *CLAIMED)


def is_recorded(path: Path) -> bool:
    """Tell whether a path is a recording: a directory with snapshots in it."""
    return path.is_dir()


def is_snapshot_of(recording: Path, path: Path) -> bool:
    """Tell whether a file is read as a snapshot of a recording, be it there already or not."""
    return path.match(_SNAPSHOTS) and path.resolve().parent == recording.resolve()


def read_recorded(path: Path) -> Trace:
    """Return what a recording tells; raises :class:`InvalidTrace`. Snapshots that cannot be read are left out."""
    reader = SnapshotReader()
    recording: _Recording | None = None
    faults: list[str] = []
    for file in _in_order(path.glob(_SNAPSHOTS)):
        try:
            moment, snapshot = _dated(file, reader, recording.newest if recording is not None else None)
        except UnreadableSnapshot as error:
            faults.append(error.fault)
            continue
        if recording is None:
            recording = _Recording(moment)
        recording.see(moment, snapshot)
    if recording is None:
        why = f"none of its {len(faults)} can be read: {faults[0]}" if faults else "it holds none"
        raise InvalidTrace(f"{path}: has no snapshots to replay, {why}; 'spinney record DIRECTORY' writes some")
    return recording.trace(path.name, faults)


def _in_order(files: Iterable[Path]) -> list[Path]:
    """Return files as they were taken, whatever they are called; those that do not say when come first, by name."""
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(files, key=lambda file: (taken_at(file) or never, file.name))


def _dated(file: Path, reader: SnapshotReader, newest: datetime | None) -> tuple[datetime, ClusterSnapshot]:
    """Return a snapshot and when it was taken; raises :class:`UnreadableSnapshot`."""
    snapshot = reader.read(file)
    if snapshot.taken is None or snapshot.taken.tzinfo is None:
        raise UnreadableSnapshot(f"{file}: does not say when it was taken, with a time zone")
    if newest is not None and snapshot.taken <= newest:
        raise UnreadableSnapshot(f"{file}: was taken at {snapshot.taken}, no later than another one")
    for kind in (NODE, POD):
        if snapshot.refused(kind):
            raise UnreadableSnapshot(f"{file}: has no {kind.plural}, which could not be listed then")
    return snapshot.taken, snapshot


class _Recording:
    """What snapshots have shown so far. Mutable."""

    def __init__(self, begin: datetime) -> None:
        self.newest = self._begin = begin
        self._before = ClusterSnapshot()
        self._nodes = RecordedNodes()
        self._claims = RecordedClaims(self._came)
        self._gangs = RecordedGangs(begin, self._claims)
        self._kueue = KueueQueues()
        self._changes: list[ClusterChange] = []
        self._topologies: list[TopologyLevels] = []
        self._refused: dict[str, None] = {}
        self._unread: dict[str, None] = {}

    def see(self, moment: datetime, snapshot: ClusterSnapshot) -> None:
        """Take in the next snapshot."""
        refused = [resource for resource in _REPLAYED if snapshot.refused(resource)]
        self._refused |= dict.fromkeys(map(str, refused))
        # What may not be listed for a while is taken to stay as it was.
        kept = {resource: self._before.objects[resource] for resource in refused if resource in self._before.objects}
        snapshot = replace(snapshot, objects={**snapshot.objects, **kept})
        at = (moment - self._begin).total_seconds()
        found: dict[str, list[Differing]] = {"nodes": [], "pods": [], "definitions": [], "queues": [], "claims": []}
        for each in differing(self._before, snapshot):
            if each.resource == NODE:
                found["nodes"].append(each)
            elif each.resource == POD:
                found["pods"].append(each)
            elif each.resource in _DEFINITIONS:
                found["definitions"].append(each)
            elif each.resource in _QUEUES:
                found["queues"].append(each)
            elif each.resource in _TOPOLOGIES or each.resource == NAMESPACE:
                self._note(at, each)
            elif each.resource in CLAIMED:
                found["claims"].append(each)
            elif each.resource == POD_DISRUPTION_BUDGET:
                self._see_budget(at, each)
        self._nodes.see(at, found["nodes"])
        if found["queues"]:
            self._see_queues(at, found["queues"], KueueQueues.of(snapshot))
        self._claims.see(at, found["claims"], refused)
        memory = self._nodes.least_gpu_memory
        self._gangs.see(moment, map(self._labelled, found["definitions"]), map(self._labelled, found["pods"]), memory)
        self._before, self.newest = snapshot, moment

    def _labelled(self, each: Differing) -> Differing:
        return each._replace(new=self._kueue.labelled(each.new)) if each.new is not None else each

    def _note(self, at: float, each: Differing) -> None:
        self._changes.append(ClusterChange(at, each.new if each.new is not None else each.old, each.new is None))
        if each.resource in _TOPOLOGIES and each.new is not None:
            self._topologies.append(topology_of(each.new))

    def _see_budget(self, at: float, each: Differing) -> None:
        """Take in what a budget asks for; what it allows follows from the pods of the replay."""
        old, new = self._budget(each.old), self._budget(each.new)
        if new is not None and new != old:
            self._changes.append(ClusterChange(self._came(at, each), new))
        elif new is None and old is not None:
            self._changes.append(ClusterChange(at, old, gone=True))

    def _budget(self, found: PodDisruptionBudget | None) -> PodDisruptionBudget | None:
        """Return a budget without how it stands, if there is one that can be read: for schedulers there is no other."""
        if found is None:
            return None
        try:
            desired_healthy(found.spec.min_available, found.spec.max_unavailable, 1)
        except ValueError as error:
            self._unread[f"PodDisruptionBudget {found.metadata.namespace}/{found.metadata.name}: {error}"] = None
            return None
        metadata = ObjectMeta(name=found.metadata.name, namespace=found.metadata.namespace)
        return PodDisruptionBudget(metadata=metadata, spec=found.spec, status=PodDisruptionBudgetStatus())

    def _came(self, at: float, each: Differing) -> float:
        """Return when an object of a snapshot came or changed: a new one when it was created."""
        created: datetime | None = each.new.metadata.creation_timestamp
        if each.old is not None or created is None:
            return at
        return min(max((created - self._begin).total_seconds(), 0.0), at)

    def _see_queues(self, at: float, queues: Iterable[Differing], kueue: KueueQueues) -> None:
        for each in queues:
            if each.resource == QUEUE:
                old, new = self._queue(each.old), self._queue(each.new)
                if new is not None:
                    self._changes.append(ClusterChange(at, new))
                elif old is not None:
                    self._changes.append(ClusterChange(at, old, gone=True))
        before = {queue.name: queue for queue in self._kueue.queues}
        after = {queue.name: queue for queue in kueue.queues}
        self._changes += [ClusterChange(at, queue, gone=True) for name, queue in before.items() if name not in after]
        self._changes += [ClusterChange(at, queue) for name, queue in after.items() if before.get(name) != queue]
        self._kueue = kueue

    def _queue(self, found: Queue | None) -> QueueInfo | None:
        """Return the queue of an object, if there is one that can be read: for schedulers there is no other."""
        if found is None:
            return None
        try:
            return queue_of(found)
        except ValueError as error:
            self._unread[f"Queue {found.metadata.name}: {error}"] = None
            return None

    def trace(self, name: str, faults: Sequence[str]) -> Trace:
        """Return what all snapshots come to."""
        machines, outages = tuple(self._nodes.machines()), self._nodes.outages()
        absent = {outage.machine for outage in outages if not outage.begins}
        labels = {key for machine in machines for key in machine.labels}
        found = list(self._gangs.jobs(self._nodes.least_gpu_memory))
        changes = [*self._nodes.changes, *self._changes]
        queues = {change.found.name for change in changes if isinstance(change.found, QueueInfo)}
        if queues:
            apart = [_apart(each, queues) for each in found]
            if apart != found:
                changes.append(ClusterChange(0.0, QueueInfo(name=OTHERS_QUEUE, quota=NO_BOUND)))
            found = apart
        changes += self._claims.changes(_queues_of_others(found))
        found.sort(key=lambda each: (each.job.submitted, each.job.name))
        notes = [f"left out, so what changed by then is seen in the snapshot after it: {fault}" for fault in faults]
        notes += [f"left out, as by the schedulers of a cluster: {fault}" for fault in self._unread]
        if self._refused:
            kinds = ", ".join(self._refused)
            notes.append(f"could not be listed at times, and are replayed as they were last seen, if ever: {kinds}")
        return Trace(
            name=name,
            machines=machines,
            jobs=tuple(in_place(_anchored(_told_apart(found)), [each for each in machines if each.name not in absent])),
            outages=outages,
            closures=self._nodes.closures(),
            changes=tuple(sorted(changes, key=lambda change: change.at)),
            levels=tuple(key for _, key in reversed(levels_of(self._topologies, labels))),
            notes=tuple(notes),
            holding=self._claims.holding,
            reach=self._claims.reach,
        )


def _apart(each: RecordedJob, queues: set[str]) -> RecordedJob:
    """Return a job that no queue of the cluster knows in the one of all such; others stay as they are."""
    job, gang = each.job, each.gang
    if job.queue in queues and (job.queue != DEFAULT_QUEUE or each.scheduler in SESSION_NAMES):
        return each
    alone = replace(gang.gang, queue=OTHERS_QUEUE, preemptible=False, preempts=False)
    return each._replace(job=replace(job, queue=OTHERS_QUEUE, recorded=replace(gang, gang=alone)))


def _queues_of_others(found: Iterable[RecordedJob]) -> dict[Key, str]:
    """Return the queues of claims that pods of other schedulers use, which go by no queue."""
    return {
        claim: each.job.queue
        for each in found
        if each.scheduler not in SESSION_NAMES
        for place in range(each.job.pods)
        for claim in each.gang.claims_of(place)
    }


def _told_apart(found: Iterable[RecordedJob]) -> Iterator[RecordedJob]:
    """Yield jobs whose pods all have names of their own: of two gangs with one name, the second has a number."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for each in found:
        job = named = each.job
        while not taken.isdisjoint(names := [pod_name(named, place) for place in range(job.pods)] + [named.name]):
            numbers[job.name] = number = numbers.get(job.name, 1) + 1
            named = replace(job, name=f"{job.name}.{number}")
        taken.update(names)
        yield each._replace(job=named)


def _anchored(found: Iterable[RecordedJob]) -> Iterator[Job]:
    """Yield jobs that know which job they have to stay with: the newest of that gang by then."""
    newest: dict[GangKey, str] = {}
    for each in found:
        gang = each.gang
        newest[gang.gang.key] = each.job.name
        anchor = newest.get(gang.gang.anchor, "") if gang.gang.anchor is not None else ""
        yield replace(each.job, recorded=replace(gang, anchor=anchor))
