"""A gang's story in order of time: what its objects say of themselves, and what was seen while the dashboard ran."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from spinney.api.conditions import find_condition
from spinney.api.podgang import INITIALIZED, SCHEDULED, PodGang
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.dashboard.history import Moment
from spinney.explain.amounts import counted


def timeline(
    gang: PodGang | None, created: datetime | None, records: Sequence[PodRecord], seen: Iterable[Moment]
) -> tuple[Moment, ...]:
    """Return created, gated, initialized, scheduled, running and evicted, each with what is known about it."""
    told = [*_of_object(gang, created), *_of_pods(records)]
    words = {moment.what for moment in told}
    told += [moment for moment in seen if moment.what not in words]
    return tuple(sorted(told, key=_order))


_IN_ORDER: Final = (
    "created", "pods created", "empty", "gated", "not initialized", "initialized", "pending", "not scheduled",
    "scheduled", "placed", "starting", "running", "evicted", "ended", "gone",
)  # fmt: skip
"""What happens first, of what happened in the same second: objects tell seconds, and nothing less."""


def _order(moment: Moment) -> tuple[int, int, datetime]:
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
    for record in records:
        target = record.pod.condition("DisruptionTarget")
        if target is not None and target.status == "True" and target.last_transition_time is not None:
            text = f"{record.name} leaves {record.node}: {target.message or target.reason}"
            yield Moment(at=target.last_transition_time, what="evicted", text=text, by=target.reason)


def _transitions(records: Iterable[PodRecord], kind: str) -> list[datetime]:
    found = (record.pod.condition(kind) for record in records)
    return [
        each.last_transition_time
        for each in found
        if each is not None and each.status == "True" and each.last_transition_time is not None
    ]
