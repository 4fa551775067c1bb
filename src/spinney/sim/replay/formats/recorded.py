"""What ``spinney record`` wrote: snapshots of one cluster strung together, one file each, in a directory.

A gang is a job, of as many pods as were there at once. It was submitted when its first pod was created, started when
its last pod had a node, and ended at the first snapshot that no longer has its pods, or has them finished or all made
anew: what comes then is another job. What runs in the last snapshot never ends; what was gone before it started is
withdrawn at that moment. A node that a later snapshot lacks has failed until one has it again; one that is cordoned or
not ready takes no new pods for that time. Pods of one gang that ask for different things are replayed as if all asked
for the most of each.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from spinney.api import kai as kai_api
from spinney.api import volcano as volcano_api
from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.quantity import milli, value
from spinney.cluster.classes import RequestClasses
from spinney.cluster.devices import DEVICE
from spinney.cluster.pods import PodRecord, record_of
from spinney.cluster.resources import CPU, MEMORY, ResourceAxis
from spinney.gangs.membership import membership
from spinney.gangs.sources import kai, podgang, volcano
from spinney.gangs.sources.context import DEFAULT_QUEUE, SourceContext
from spinney.gangs.tree import GangKey
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.objects import MODEL, pod_name
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, Outage, Trace
from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot

_CONTEXT: Final = SourceContext()
_MEBIBYTE: Final = 1 << 20
_DONE: Final = frozenset({"Succeeded", "Failed"})
_SETTLED: Final = 0.001
"""Seconds after which what ran before the recording began has its place."""
_NO_MEMORY: Final = 16_000
"""MiB of a device that says nothing of its memory."""


def is_recorded(path: Path) -> bool:
    """Tell whether a path is a recording: a directory with snapshots in it."""
    return path.is_dir()


def read_recorded(path: Path) -> Trace:
    """Return what a recording tells; raises :class:`InvalidTrace`. Snapshots that cannot be read are left out."""
    found: list[tuple[datetime, ClusterSnapshot]] = []
    faults: list[str] = []
    for file in sorted(path.glob("*.json.gz")):
        try:
            found.append(_dated(file))
        except UnreadableSnapshot as error:
            faults.append(error.fault)
    if not found:
        why = f"none of its {len(faults)} can be read: {faults[0]}" if faults else "it holds none"
        raise InvalidTrace(f"{path}: has no snapshots to replay, {why}; 'spinney record DIRECTORY' writes some")
    snapshots = sorted(found, key=lambda each: each[0])
    begin = snapshots[0][0]
    jobs = sorted(_jobs(snapshots, begin), key=lambda job: (job.submitted, job.name))
    return Trace(
        name=path.name,
        machines=tuple(_machines(snapshots)),
        jobs=tuple(_told_apart(jobs)),
        outages=tuple(_outages(snapshots, begin)),
        closures=tuple(_closures(snapshots, begin)),
        notes=tuple(f"left out, so what changed by then is seen in the snapshot after it: {fault}" for fault in faults),
    )


def _dated(file: Path) -> tuple[datetime, ClusterSnapshot]:
    """Return a snapshot and when it was taken; raises :class:`UnreadableSnapshot`."""
    snapshot = read_snapshot(file)
    if snapshot.taken is None:
        raise UnreadableSnapshot(f"{file}: does not say when it was taken")
    for kind in (NODE, POD):
        if snapshot.refused(kind):
            raise UnreadableSnapshot(f"{file}: has no {kind.plural}, which could not be listed then")
    return snapshot.taken, snapshot


def _told_apart(jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield jobs whose pods all have names of their own: of two gangs with one name, the second has a number."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for job in jobs:
        named = job
        while not taken.isdisjoint(names := [pod_name(named, place) for place in range(job.pods)] + [named.name]):
            numbers[job.name] = number = numbers.get(job.name, 1) + 1
            named = replace(job, name=f"{job.name}.{number}")
        taken.update(names)
        yield named


@dataclass
class _Life:
    """A gang from when it was first seen until it was gone or finished. Mutable.

    A gang that comes again under its name, or all of whose pods were made anew, has another life: its work is done
    twice.
    """

    key: GangKey
    records: dict[str, PodRecord] = field(default_factory=dict)
    """Its pods, by identity, also those that others have taken the place of."""
    most: int = 0
    """How many of them were there at once."""
    queue: str = ""
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None

    def see(self, alive: Sequence[PodRecord], queue: str | None, moment: datetime) -> None:
        """Take in what is there of it in a snapshot; ``queue`` is the one that its object names."""
        staying = _staying(alive)
        self.queue = queue or self.queue or _CONTEXT.queue(staying[0].labels)
        self.records |= {_identity(each.pod): each for each in staying}
        self.most = max(self.most, len(staying))
        self.created = min(filter(None, (self.created, *(each.created for each in staying))), default=moment)
        if self.started is None and all(each.pod.spec.node_name for each in staying):
            self.started = max((_start(each.pod) or moment for each in staying), default=moment)

    def is_followed_by(self, alive: Sequence[PodRecord]) -> bool:
        """Tell whether pods that are there now are of a later life."""
        staying = _staying(alive)
        return bool(staying) and self.records.keys().isdisjoint(_identity(each.pod) for each in staying)


def _staying(alive: Sequence[PodRecord]) -> Sequence[PodRecord]:
    """Return those that are not about to go; all of them if the whole gang is."""
    return [each for each in alive if not each.pod.metadata.deleting] or alive


def _identity(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}/{pod.metadata.uid}"


def _jobs(snapshots: Sequence[tuple[datetime, ClusterSnapshot]], begin: datetime) -> Iterator[Job]:
    classes = RequestClasses(ResourceAxis())
    seen = [
        (moment, [record_of(pod, classes) for pod in snapshot.pods], _queues(snapshot))
        for moment, snapshot in snapshots
    ]
    # What a pod says last counts: one that was seen before the grouper named its gang was no gang of its own.
    gang_of = {_identity(each.pod): membership(each)[0] for _, records, _ in seen for each in records}
    lives: list[_Life] = []
    newest: dict[GangKey, _Life] = {}
    for moment, records, queues in seen:
        there: dict[GangKey, list[PodRecord]] = {}
        for each in records:
            if each.pod.status.phase not in _DONE:
                there.setdefault(gang_of[_identity(each.pod)], []).append(each)
        for key, life in list(newest.items()):
            if key not in there or life.is_followed_by(there[key]):
                life.ended = moment
                del newest[key]
        for key, alive in there.items():
            if key not in newest:
                newest[key] = _Life(key)
                lives.append(newest[key])
            newest[key].see(alive, queues.get(key), moment)
    yield from (_job(life, begin) for life in lives)


def _queues(snapshot: ClusterSnapshot) -> dict[GangKey, str]:
    """Return the queues of gangs whose object names one: their pods need not."""
    found: dict[GangKey, str] = {}
    for each in snapshot.of(POD_GANG, PodGang):
        found[GangKey.of(podgang.SOURCE, each.metadata)] = _CONTEXT.queue(
            each.metadata.labels, each.metadata.annotations
        )
    for group in snapshot.of(kai_api.POD_GROUP, kai_api.PodGroup):
        found[GangKey.of(kai.SOURCE, group.metadata)] = group.spec.queue or DEFAULT_QUEUE
    for other in snapshot.of(volcano_api.POD_GROUP, volcano_api.PodGroup):
        found[GangKey.of(volcano.SOURCE, other.metadata)] = other.spec.queue or DEFAULT_QUEUE
    return found


def _job(life: _Life, begin: datetime) -> Job:
    asks = [_ask(record) for record in life.records.values()]
    duration = ends = None
    if life.ended is not None and life.started is not None:
        duration = max((life.ended - max(life.started, begin)).total_seconds(), 0.0)
    elif life.ended is not None:
        ends = (life.ended - begin).total_seconds()
    return Job(
        name=f"{life.key.namespace}-{life.key.name}".replace("/", "-"),
        submitted=max(((life.created or begin) - begin).total_seconds(), 0.0),
        ask=Ask(
            cpu=max(ask.cpu for ask in asks),
            memory=max(ask.memory for ask in asks),
            gpus=max(ask.gpus for ask in asks),
            milli=max(ask.milli for ask in asks if ask.gpus) if any(ask.gpus for ask in asks) else WHOLE,
        ),
        pods=life.most,
        duration=duration,
        ends=ends,
        queue=life.queue,
        kind=life.key.source,
    )


def _ask(record: PodRecord) -> Ask:
    request = record.request
    cpu, memory = int(request.requests[CPU]), -(-int(request.requests[MEMORY]) // _MEBIBYTE)
    if request.share is None:
        return Ask(cpu=cpu, memory=memory, gpus=request.gpus)
    return Ask(
        cpu=cpu,
        memory=memory,
        gpus=request.share.devices,
        milli=min(-(-request.share.parts_on(_NO_MEMORY) * WHOLE // DEVICE), WHOLE),
    )


def _start(pod: Pod) -> datetime | None:
    return pod.status.start_time


def _machines(snapshots: Sequence[tuple[datetime, ClusterSnapshot]]) -> Iterator[Machine]:
    seen: dict[str, Machine] = {}
    for _, snapshot in snapshots:
        for node in snapshot.nodes:
            offered = node.status.allocatable
            seen.setdefault(
                node.metadata.name,
                Machine(
                    name=node.metadata.name,
                    cpu=milli(offered.get("cpu", 0)),
                    memory=value(offered.get("memory", 0)) // _MEBIBYTE,
                    gpus=value(offered.get("nvidia.com/gpu", 0)),
                    model=node.metadata.labels.get(MODEL, ""),
                    labels={key: text for key, text in node.metadata.labels.items() if key != MODEL},
                ),
            )
    yield from seen.values()


def _outages(snapshots: Sequence[tuple[datetime, ClusterSnapshot]], begin: datetime) -> Iterator[Outage]:
    """Yield when nodes were missing."""
    everything = {node.metadata.name for _, snapshot in snapshots for node in snapshot.nodes}
    return _stretches(
        ((moment - begin).total_seconds(), everything - {node.metadata.name for node in snapshot.nodes})
        for moment, snapshot in snapshots
    )


def _closures(snapshots: Sequence[tuple[datetime, ClusterSnapshot]], begin: datetime) -> Iterator[Outage]:
    """Yield when nodes took no new pods; what ran on one from the beginning may begin on it."""
    occupied = {pod.spec.node_name for pod in snapshots[0][1].pods if pod.status.phase not in _DONE}
    closed = (
        ((moment - begin).total_seconds(), {node.metadata.name for node in snapshot.nodes if _is_closed(node)})
        for moment, snapshot in snapshots
    )
    for each in _stretches(closed):
        yield replace(each, begins=_SETTLED) if not each.begins and each.machine in occupied else each


def _is_closed(node: Node) -> bool:
    """Tell whether a node is cordoned, or says that it is not ready."""
    ready = (each.status == "True" for each in node.status.conditions if each.type == "Ready")
    return node.spec.unschedulable or not all(ready)


def _stretches(held: Iterable[tuple[float, Set[str]]]) -> Iterator[Outage]:
    """Yield from when to when machines were among those that are given for each moment."""
    since: dict[str, float] = {}
    for at, names in held:
        for name in sorted(since.keys() - names):
            yield Outage(name, since.pop(name), at)
        since = dict.fromkeys(sorted(names), at) | since
    yield from (Outage(name, at) for name, at in since.items())
