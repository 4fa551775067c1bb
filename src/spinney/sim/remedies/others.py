"""Levers over other workloads: wait for those whose end is known, restart some elsewhere, or end some."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from spinney.api.core import Pod
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.explain.amounts import counted, first_few
from spinney.gangs.tree import GangKey
from spinney.scheduler.plugins.backfill.run_times import expected_of, stated_by
from spinney.sim.remedies.change import SHOWN, Lever, Maker, Makers, RemedyPrice
from spinney.sim.remedies.situation import Situation
from spinney.sim.snapshots.snapshot import ClusterSnapshot, identity
from spinney.sim.whatif.simulation import made_anew

_AT_MOST: Final = 256
"""How many workloads are considered."""
_MOVED: Final = 32
"""How many workloads are considered to be restarted."""
_NAMED: Final = 8
"""Up to so many pods are named in a command."""
_REPLACING: Final = frozenset({"PodClique", "ReplicaSet", "StatefulSet", "ReplicationController"})
"""Controllers that make another pod for each that has ended."""
_SYSTEM: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})


@dataclass(frozen=True)
class _Workload:
    """A gang that holds what the waiting gang asks for."""

    key: GangKey
    pods: tuple[PodRecord, ...]
    gpus: int
    priority: int
    queue: str
    near: bool
    ends: datetime | None

    @property
    def has_deadline(self) -> bool:
        """Tell whether Kubernetes ends it, and not only its own word."""
        return all(
            record.pod.spec.active_deadline_seconds is not None and not _comes_back(record.pod) for record in self.pods
        )


def wait_lever(situation: Situation) -> Iterator[Lever[_Workload]]:
    """Yield the lever that waits for workloads whose end is known, the next to end first."""
    ending = sorted(
        (each for each in _holders(situation) if each.ends is not None), key=lambda each: (each.ends, each.key)
    )
    if not ending:
        return

    def text(picked: Sequence[_Workload]) -> str:
        until = max(each.ends for each in picked if each.ends is not None)
        verb = "has" if len(picked) == 1 else "have"
        ended = "ended" if all(each.has_deadline for each in picked) else "ended, by the run time stated"
        return f"wait until {until:%Y-%m-%d %H:%M} UTC, when {_named(picked)} {verb} {ended}"

    yield Lever(name="wait", elements=ending, apply=_without, text=text, ordered=True, waits=True)


def move_lever(situation: Situation) -> Iterator[Lever[_Workload]]:
    """Yield the lever that restarts other workloads, which then find room elsewhere."""
    movable = [
        each
        for each in _holders(situation)
        if all(record.pod.metadata.controller is not None for record in each.pods) and not each.ends
    ]
    movable.sort(key=lambda each: (not each.near, each.gpus, each.priority, each.key))
    movable = movable[:_MOVED]
    if not movable:
        return

    def command(picked: Sequence[_Workload]) -> str:
        pods = [record for each in picked for record in each.pods]
        if len({record.namespace for record in pods}) > 1 or len(pods) > _NAMED:
            return ""
        return f"kubectl delete pods -n {pods[0].namespace} {' '.join(record.name for record in pods)}"

    yield Lever(
        name="move",
        elements=movable,
        apply=lambda snapshot, picked: snapshot.with_objects(
            made_anew(pod, situation.simulation.runtime) for pod in _pods_of(picked, snapshot)
        ),
        text=lambda picked: f"restart {_named(picked)}, which finds room on other nodes",
        command=command,
        price=lambda picked: RemedyPrice(
            moved=tuple(str(each.key) for each in picked), gpus=sum(each.gpus for each in picked)
        ),
        restarts=lambda picked: [each.key for each in picked],
    )


def _named(picked: Sequence[_Workload]) -> str:
    return first_few([each.key for each in picked], SHOWN)


def _without(snapshot: ClusterSnapshot, gone: Iterable[_Workload]) -> ClusterSnapshot:
    return snapshot.without_objects(_pods_of(gone, snapshot))


def _pods_of(picked: Iterable[_Workload], snapshot: ClusterSnapshot) -> list[Pod]:
    names = {(record.namespace, record.name) for each in picked for record in each.pods}
    return [pod for pod in snapshot.pods if identity(pod) in names]


def end_lever(situation: Situation) -> Iterator[Lever[_Workload]]:
    """Yield the lever that ends other workloads: where the gang nearly fits first, then lowest priority, youngest.

    What the gang itself is made from is none: it may have other gangs, which run.
    """
    makers = situation.makers
    own = makers.each_of(record.pod for record in situation.members)
    holders = [each for each in _by_maker(_holders(situation), makers) if makers.of(each.pods[0].pod) not in own]
    holders = sorted(holders, key=lambda each: (not each.near, each.priority, each.gpus, each.key))[:_AT_MOST]
    if not holders:
        return

    def text(picked: Sequence[_Workload]) -> str:
        gpus = sum(each.gpus for each in picked)
        held = f" ({counted(gpus, 'GPU')})" if gpus else ""
        return f"end {_named(picked)}{held}"

    def command(picked: Sequence[_Workload]) -> str:
        ended = makers.each_of(record.pod for each in picked for record in each.pods)
        return "\n".join(each.command for each in ended[:_NAMED])

    def price(picked: Sequence[_Workload]) -> RemedyPrice:
        ended = tuple(f"{each.key} in queue {each.queue}" if each.queue else str(each.key) for each in picked)
        return RemedyPrice(ended=ended, gpus=sum(each.gpus for each in picked))

    yield Lever(
        name="end",
        elements=holders,
        apply=_without,
        text=text,
        command=command,
        price=price,
        likely=_likely(situation, holders),
    )


def _by_maker(holders: Iterable[_Workload], makers: Makers) -> list[_Workload]:
    """Return workloads, those that are made from one thing as one: nobody can end some of them for good."""
    found: dict[Maker | GangKey, _Workload] = {}
    for each in holders:
        maker = makers.of(each.pods[0].pod)
        if maker is None:
            found[each.key] = each
            continue
        named = replace(each, key=GangKey(each.key.source, each.key.namespace, maker.name))
        found[maker] = _merged(found[maker], named) if maker in found else named
    return list(found.values())


def _merged(one: _Workload, other: _Workload) -> _Workload:
    return replace(
        one,
        pods=(*one.pods, *other.pods),
        gpus=one.gpus + other.gpus,
        priority=max(one.priority, other.priority),
        near=one.near or other.near,
    )


def _likely(situation: Situation, holders: Sequence[_Workload]) -> int | None:
    """Return how many of the workloads, from the first, hold as many GPUs as the gang finds no room for."""
    if situation.short_of is None or not situation.pending:
        return None
    asked = sum(record.request.gpus for record in situation.waiting)
    missing = situation.short_of * asked / situation.pending
    freed = accumulate(each.gpus for each in holders)
    return next((number for number, gpus in enumerate(freed, 1) if gpus >= missing), None) if missing else None


def _holders(situation: Situation) -> list[_Workload]:
    """Return the gangs that hold some of what the waiting gang asks for and could be ended."""
    simulation = situation.simulation
    wants_gpus = any(record.request.gpus for record in situation.waiting)
    near, key = situation.nearest or {}, situation.required_key or ""
    domain = {node.metadata.name: node.metadata.labels.get(key) for node in situation.snapshot.nodes}
    by_gang: dict[GangKey, list[PodRecord]] = {}
    for record in simulation.inventory.cluster.pods():
        if record.status in ACTIVE_ALLOCATED and _may_end(record):
            by_gang.setdefault(simulation.gang_of(record), []).append(record)
    found = []
    for gang, records in by_gang.items():
        gpus = sum(record.request.gpus for record in records)
        if gang == situation.key or (wants_gpus and not gpus):
            continue
        known = simulation.gang(gang)
        found.append(
            _Workload(
                key=gang,
                pods=tuple(records),
                gpus=gpus,
                priority=known.priority if known is not None else records[0].pod.priority,
                queue=known.queue if known is not None else "",
                near=bool(near) and any(domain.get(record.node) == near.get(key) for record in records),
                ends=_end(records),
            )
        )
    return found


def _may_end(record: PodRecord) -> bool:
    """Tell whether a user would end a pod to make room: nothing of the system, nothing that every node runs."""
    controller = record.pod.metadata.controller
    return record.namespace not in _SYSTEM and (controller is None or controller.kind not in ("DaemonSet", "Node"))


def _end(records: Iterable[PodRecord]) -> datetime | None:
    """Return when the last of the pods ends, by its deadline or by what it states; ``None`` if some says nothing."""
    ends = []
    for record in records:
        seconds, started = stated_by(record.pod), record.pod.status.start_time
        if _comes_back(record.pod) and expected_of(record.pod) is None:
            return None  # its deadline ends the pod, and not the workload
        if seconds is None or started is None:
            return None
        ends.append(started + timedelta(seconds=seconds))
    return max(ends, default=None)


def _comes_back(pod: Pod) -> bool:
    """Tell whether a controller makes another pod when this one has ended."""
    controller = pod.metadata.controller
    return controller is not None and controller.kind in _REPLACING
