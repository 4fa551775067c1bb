"""One gang whole: its members, its story in order of time, and its objects as YAML.

The story is what its objects say of themselves, and what was seen while the dashboard ran.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import yaml

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.labels import PART_OF
from spinney.api.podgang import INITIALIZED, POD_GANG, SCHEDULED, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.dashboard.history import Moment
from spinney.dashboard.rows import GangRow
from spinney.dashboard.view import View
from spinney.explain.amounts import counted
from spinney.gangs.sources import native
from spinney.gangs.tree import GangKey
from spinney.kube.errors import KubeError, NotFound
from spinney.sim.advice.subjects import POD_GROUPS
from spinney.sim.snapshots.snapshot import LAST_APPLIED

SHOWN_PODS: Final = 5
"""Pods of a gang whose YAML is shown; the others differ from them in name and node."""


class MemberRow(Struct, frozen=True, kw_only=True):
    """A pod of a gang."""

    name: str
    group: str
    status: str
    node: str = ""
    ready: bool = False
    gpus: int = 0
    reason: str = ""


class GangPage(Struct, frozen=True, kw_only=True):
    """A gang, its members by group and name, and what happened to it, oldest first."""

    row: GangRow
    members: tuple[MemberRow, ...]
    moments: tuple[Moment, ...]


def gang_page(view: View, key: GangKey) -> GangPage | None:
    """Return a gang; ``None`` if it is not there or may not be seen."""
    board = view.board
    row, found = board.gang_row(key), board.gangs.members(key)
    if row is None or found is None:
        return None
    records = [record for _, record in found.pods.values()]
    members = [_member(group, record) for group, record in found.pods.values()]
    members.sort(key=lambda each: (each.group, len(each.name), each.name))  # worker-2 before worker-10
    seen = [each for each in board.history.moments(key) if not _of_one_before(each, found.gang.created)]
    moments = timeline(board.pod_gang(key), row.created, records, seen)
    return GangPage(row=row, members=tuple(members), moments=moments)


def _of_one_before(moment: Moment, created: datetime | None) -> bool:
    """Tell whether a moment is an eviction of a gang that had the name before: events outlast what they are about."""
    return moment.what == "evicted" and created is not None and moment.at < created


def _member(group: str, record: PodRecord) -> MemberRow:
    scheduled = record.pod.condition("PodScheduled")
    waits = scheduled is not None and scheduled.status == "False" and not record.node
    return MemberRow(
        name=record.name,
        group=group,
        status=record.status.value,
        node=record.node,
        ready=record.pod.is_true("Ready"),
        gpus=record.request.gpus,
        reason=scheduled.message if scheduled is not None and waits else "",
    )


async def objects_text(view: View, key: GangKey) -> str:
    """Return the objects of a gang as YAML, read now with the viewer's own credentials."""
    found = view.board.gangs.members(key)
    names = sorted(record.name for _, record in found.pods.values()) if found is not None else []
    wanted = [*_definitions(view, key), *((POD, name) for name in names[:SHOWN_PODS])]
    texts = await asyncio.gather(*(_text(view, kind, name, key.namespace) for kind, name in wanted))
    if len(names) > SHOWN_PODS:
        texts.append(f"# and {len(names) - SHOWN_PODS} more pods\n")
    return "---\n".join(texts)


def _definitions(view: View, key: GangKey) -> list[tuple[Resource, str]]:
    """Return the objects that define a gang, the one that its user wrote first."""
    wanted: list[tuple[Resource, str]] = []
    gang = view.board.pod_gang(GangKey("podgang", key.namespace, key.name))
    if gang is not None and (owner := gang.metadata.labels.get(PART_OF)):
        wanted.append((POD_CLIQUE_SET, owner))
    name = native.workload_of(key)[1] if key.source == native.WORKLOAD_SOURCE else key.name
    return wanted + [(kind, name) for kind in (POD_GANG, *POD_GROUPS) if view.holds(kind, key.namespace, name)]


async def _text(view: View, kind: Resource, name: str, namespace: str) -> str:
    try:
        found: JSON = await view.client.get(kind, name, namespace)
    except NotFound:
        return f"# {kind.kind} {name} is gone\n"
    except KubeError as error:
        return f"# {kind.kind} {name} could not be read: {' '.join(str(error).split())}\n"
    return yaml.safe_dump(_without_noise(found), sort_keys=False, allow_unicode=True)


def _without_noise(found: JSON) -> JSON:
    metadata: dict[str, Any] = {
        key: value for key, value in found.get("metadata", {}).items() if key != "managedFields"
    }
    notes = {key: value for key, value in metadata.get("annotations", {}).items() if key != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = notes
    return {**found, "metadata": metadata}


def timeline(
    gang: PodGang | None, created: datetime | None, records: Sequence[PodRecord], seen: Iterable[Moment]
) -> tuple[Moment, ...]:
    """Return created, gated, initialized, scheduled, running and evicted, each with what is known about it."""
    leaving = list(_evictions(records))
    told = [*_of_object(gang, created), *_of_pods(records), *leaving]
    words = {moment.what for moment in told}
    before = min((moment.at for moment in leaving), default=None)
    told += [
        moment
        for moment in seen
        if moment.what not in words or (moment.what == "evicted" and before is not None and moment.at < before)
    ]
    return tuple(sorted(told, key=_in_time))


_IN_ORDER: Final = (
    "created", "pods created", "empty", "gated", "not initialized", "initialized", "pending", "not scheduled",
    "scheduled", "placed", "starting", "running", "evicted", "ended", "gone",
)  # fmt: skip
"""What happens first, of what happened in the same second: objects tell seconds, and nothing less."""


def _in_time(moment: Moment) -> tuple[int, int, datetime]:
    rank = _IN_ORDER.index(moment.what) if moment.what in _IN_ORDER else len(_IN_ORDER)
    return int(moment.at.timestamp()), rank, moment.at


def _of_object(gang: PodGang | None, created: datetime | None) -> Iterator[Moment]:
    if created is not None:
        yield Moment(at=created, what="created")
    for kind, what in ((INITIALIZED, "initialized"), (SCHEDULED, "scheduled")):
        condition = find_condition(gang.status.conditions, kind) if gang is not None else None
        if condition is not None and condition.last_transition_time is not None and condition.status != "Unknown":
            word = what if condition.status == "True" else f"not {what}"
            yield Moment(at=condition.last_transition_time, what=word, text=condition.message)


def _of_pods(records: Sequence[PodRecord]) -> Iterator[Moment]:
    born = [record.created for record in records if record.created is not None]
    gated = [record for record in records if record.status is PodStatus.GATED]
    if born:
        yield Moment(at=min(born), what="pods created", text=counted(len(records), "pod"))
    if gated and born:
        names = sorted({gate.name for record in gated for gate in record.pod.spec.scheduling_gates})
        yield Moment(at=max(born), what="gated", text=f"{counted(len(gated), 'pod')} by {', '.join(names)}")
    placed = [record for record in records if record.status in ACTIVE_ALLOCATED]
    if moments := _transitions(placed, "PodScheduled"):
        yield Moment(at=max(moments), what="placed", text=f"{len(placed)} of {counted(len(records), 'pod')}")
    if len(moments := _transitions(records, "Ready")) == len(records) and moments:
        yield Moment(at=max(moments), what="running", text=f"all {counted(len(records), 'pod')} are ready")


def _evictions(records: Sequence[PodRecord]) -> Iterator[Moment]:
    """Tell of pods that are being evicted, of those for whom the same is said at the same time in one moment."""
    alike: dict[tuple[datetime, str, str], list[PodRecord]] = {}
    for record in records:
        target = record.pod.condition("DisruptionTarget")
        if target is not None and target.status == "True" and target.last_transition_time is not None:
            said = (target.last_transition_time, target.reason, target.message or target.reason)
            alike.setdefault(said, []).append(record)
    for (at, reason, message), (first, *others) in alike.items():
        who = f"{first.name} and {counted(len(others), 'more pod')} leave" if others else f"{first.name} leaves"
        where = f" {first.node}" if not others else ""
        yield Moment(at=at, what="evicted", text=f"{who}{where}: {message}", by=reason)


def _transitions(records: Iterable[PodRecord], kind: str) -> list[datetime]:
    found = (record.pod.condition(kind) for record in records)
    return [
        each.last_transition_time
        for each in found
        if each is not None and each.status == "True" and each.last_transition_time is not None
    ]
