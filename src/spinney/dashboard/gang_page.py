"""One gang whole: its members, its story, and its objects as YAML."""

import asyncio
from typing import Any, Final

import yaml

from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.labels import PART_OF
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct
from spinney.cluster.pods import PodRecord
from spinney.dashboard.history import Moment
from spinney.dashboard.rows import GangRow
from spinney.dashboard.timeline import timeline
from spinney.dashboard.view import View
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
    members = sorted((_member(group, record) for group, record in found.pods.values()), key=_order)
    moments = timeline(board.pod_gang(key), row.created, records, board.history.moments(key))
    return GangPage(row=row, members=tuple(members), moments=moments)


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


def _order(member: MemberRow) -> tuple[str, int, str]:
    return member.group, len(member.name), member.name  # worker-2 before worker-10


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
