"""What ``spinney record`` wrote: snapshots of one cluster strung together, one file each, in a directory.

A gang is a job. It was submitted when its first pod was created, started when its last pod had a node, and ended at the
first snapshot that no longer has its pods, or has them finished; what runs in the last snapshot never ends. A node that
a later snapshot lacks has failed until one has it again. Pods of one gang that ask for different things are replayed as
if all asked for the most of each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from spinney.api.core import Pod
from spinney.api.labels import KAI_QUEUE
from spinney.api.quantity import milli, value
from spinney.cluster.classes import RequestClasses
from spinney.cluster.devices import DEVICE
from spinney.cluster.pods import PodRecord, record_of
from spinney.cluster.resources import CPU, MEMORY, ResourceAxis
from spinney.gangs.membership import membership
from spinney.gangs.tree import GangKey
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.objects import MODEL, pod_name
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, Outage, Trace
from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot

_MEBIBYTE: Final = 1 << 20
_DONE: Final = frozenset({"Succeeded", "Failed"})
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
        notes=tuple(f"left out, so what changed by then is seen in the snapshot after it: {fault}" for fault in faults),
    )


def _dated(file: Path) -> tuple[datetime, ClusterSnapshot]:
    """Return a snapshot and when it was taken; raises :class:`UnreadableSnapshot`."""
    snapshot = read_snapshot(file)
    if snapshot.taken is None:
        raise UnreadableSnapshot(f"{file}: does not say when it was taken")
    return snapshot.taken, snapshot


def _told_apart(jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield jobs whose pods all have names of their own: of two gangs with one name, the second has a number."""
    taken: set[str] = set()
    for job in jobs:
        named, number = job, 1
        while not taken.isdisjoint(names := [pod_name(named, place) for place in range(job.pods)] + [named.name]):
            number += 1
            named = replace(job, name=f"{job.name}.{number}")
        taken.update(names)
        yield named


@dataclass
class _Seen:
    """A gang as it was seen. Mutable."""

    records: dict[str, PodRecord] = field(default_factory=dict)
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None


def _jobs(snapshots: Sequence[tuple[datetime, ClusterSnapshot]], begin: datetime) -> Iterator[Job]:
    classes = RequestClasses(ResourceAxis())
    gangs: dict[GangKey, _Seen] = {}
    for moment, snapshot in snapshots:
        there: dict[GangKey, list[PodRecord]] = {}
        for pod in snapshot.pods:
            record = record_of(pod, classes)
            there.setdefault(membership(record)[0], []).append(record)
        for key, records in there.items():
            seen = gangs.setdefault(key, _Seen())
            alive = [each for each in records if each.pod.status.phase not in _DONE]
            seen.records |= {each.name: each for each in alive}
            seen.created = min(filter(None, (seen.created, *(each.created for each in records))), default=moment)
            if alive and seen.started is None and all(each.pod.spec.node_name for each in alive):
                seen.started = max((_start(each.pod) or moment for each in alive), default=moment)
            if not alive and seen.ended is None:
                seen.ended = moment
        for key, seen in gangs.items():
            if key not in there and seen.ended is None:
                seen.ended = moment
    for key, seen in gangs.items():
        if seen.records:
            yield _job(key, seen, begin)


def _job(key: GangKey, seen: _Seen, begin: datetime) -> Job:
    asks = [_ask(record) for record in seen.records.values()]
    first = next(iter(seen.records.values()))
    duration = None
    if seen.ended is not None:
        duration = max((seen.ended - (seen.started or seen.ended)).total_seconds(), 0.0)
    return Job(
        name=f"{key.namespace}-{key.name}".replace("/", "-"),
        submitted=max(((seen.created or begin) - begin).total_seconds(), 0.0),
        ask=Ask(
            cpu=max(ask.cpu for ask in asks),
            memory=max(ask.memory for ask in asks),
            gpus=max(ask.gpus for ask in asks),
            milli=max(ask.milli for ask in asks if ask.gpus) if any(ask.gpus for ask in asks) else WHOLE,
        ),
        pods=len(asks),
        duration=duration,
        queue=first.labels.get(KAI_QUEUE, "default"),
        kind=key.source,
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
    everything = {node.metadata.name for _, snapshot in snapshots for node in snapshot.nodes}
    gone: dict[str, float] = {}
    for moment, snapshot in snapshots:
        at = (moment - begin).total_seconds()
        here = {node.metadata.name for node in snapshot.nodes}
        for name in sorted(everything - here - gone.keys()):
            gone[name] = at
        for name in sorted(here & gone.keys()):
            yield Outage(name, gone.pop(name), at)
    yield from (Outage(name, at) for name, at in gone.items())
