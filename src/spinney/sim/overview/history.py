"""What has happened so far: what could not be created, who was evicted and for whom, and how long something waits.

All of it is read from the objects of a snapshot and from events; nothing is simulated.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from spinney.api.conditions import find_condition
from spinney.api.core import EVENT
from spinney.api.events import Event
from spinney.api.grove_status import LastError
from spinney.api.podgang import DISRUPTION_TARGET, PodGang
from spinney.binding.evicting import MADE_ROOM
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import WAITING
from spinney.explain.amounts import counted
from spinney.gangs.checkpoints import REQUESTED
from spinney.kube.client import Client
from spinney.reporting.verdicts import WAITING_FOR_ROOM
from spinney.runtime.tasks import together

_EVICTIONS: Final = ("Evict", "Preempted", "GangReleased")
"""Reasons of events about pods that had to go: ours and KAI's, kube-scheduler's, and of gangs below their minimum."""
UNBOUND: Final = "FailedBinding"
"""The reason of schedulers' events about pods that the API server refused to bind, as a policy of the cluster does."""
UNGROUPED: Final = "GroupingRefused"
"""The reason of the grouper's events about pods that wait because a rule cannot be applied."""
GATED: Final = "SchedulingGated"
"""The reason of a condition that the API server wrote while a gate held the pod: no scheduler has spoken yet."""
_PLUGIN: Final = re.compile(r"(?:refused by plugin |plugin (?=\S+ (?:failed|keeps|could not)\b))([\w./-]*\w)")
"""A plugin in a refusal: that it refused nodes, that it divides them, or that it failed."""
_EARLIER: Final = " (and "
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class Said(NamedTuple):
    """What a component wrote about a subject, and since when it has said so."""

    who: str
    message: str
    since: datetime | None = None
    refused: bool = True
    """False: it was promised room, and waits for that."""


def foreign_plugins(said: Said, known: Collection[str]) -> list[str]:
    """Return the plugins that a scheduler of ours names in its refusal and that are not ``known``, in order."""
    return list(dict.fromkeys(name for name in _PLUGIN.findall(said.message) if name not in known))


def newest(said: Iterable[Said]) -> Said | None:
    """Return what was said last; of several at the same time, the first."""
    told = [each for each in said if each.message]
    return max(told, key=lambda each: each.since or _BEGINNING, default=None)


def said_of_pods(records: Iterable[PodRecord]) -> Iterator[Said]:
    """Yield what schedulers said of pods that they could not place."""
    for record in records:
        condition = record.pod.condition("PodScheduled")
        if condition is not None and condition.status == "False" and condition.reason != GATED:
            refused = condition.reason != WAITING_FOR_ROOM
            yield Said(record.pod.spec.scheduler_name, condition.message, condition.last_transition_time, refused)


def waits(records: Sequence[PodRecord], now: datetime) -> list[str]:
    """Return how long pods have waited, and since when their scheduler has refused them."""
    waiting = [record for record in records if record.status in WAITING]
    born = [record.created for record in waiting if record.created is not None]
    if not born:
        return []
    text = f"it has waited {lasted(now - min(born))}, since {_clock(min(born))}"
    refused = [each.since for each in said_of_pods(waiting) if each.since is not None and each.refused]
    return [f"{text}; refused since {_clock(min(refused))}"] if refused else [text]


def evictions(records: Iterable[PodRecord], now: datetime) -> list[str]:
    """Return the pods that are being evicted, by whom and for whom, as their conditions say; equal ones together."""
    found: dict[str, list[datetime | None]] = {}
    for record in records:
        condition = record.pod.condition(DISRUPTION_TARGET)
        if condition is not None and condition.status == "True":
            found.setdefault(condition.message or condition.reason, []).append(condition.last_transition_time)
    return [
        f"{counted(len(times), 'pod')} evicted{_ago(next(filter(None, times), None), now)}: {message}"
        for message, times in found.items()
    ]


def gang_eviction(gang: PodGang, now: datetime, known: Iterable[str] = ()) -> list[str]:
    """Return that a gang was evicted, or asked to go, by whom and for whom, while its PodGang says so.

    Of what is ``known`` already, as events of its pods tell it with their time, nothing is repeated. A condition keeps
    the time of its status: of a gang that was evicted it may be when the gang was asked to go.
    """
    condition = find_condition(gang.status.conditions, DISRUPTION_TARGET)
    if condition is None or condition.status != "True":
        return []
    why = " ".join((condition.message or condition.reason).split())
    if condition.reason != REQUESTED and any(line.partition(_EARLIER)[0].endswith(f": {why}") for line in known):
        return []
    asked = f"asked to checkpoint and go{_ago(condition.last_transition_time, now)}"
    done = asked if condition.reason == REQUESTED else "evicted"
    return [f"it was {done}: {why}"]


async def telling_events(client: Client, namespace: str) -> list[Event]:
    """Read the events of one namespace that tell of evictions, and of pods that could not be grouped or bound."""
    reasons = (*_EVICTIONS, UNBOUND, UNGROUPED)
    lists = await together(
        *(client.list(EVENT, namespace, type=Event, field_selector=f"reason={reason}") for reason in reasons)
    )
    return [event for each in lists for event in each.items]


async def refusal_events(client: Client, namespace: str | None) -> list[Event]:
    """Read the events of one namespace, or of all, that tell of pods that could not be grouped."""
    return list((await client.list(EVENT, namespace, type=Event, field_selector=f"reason={UNGROUPED}")).items)


def grouping_refusals(events: Iterable[Event]) -> dict[PodKey, str]:
    """Return what the grouper said last of each pod that it could not group."""
    told = [each for each in events if each.reason == UNGROUPED]
    return {
        PodKey(each.involved_object.namespace, each.involved_object.name): " ".join(each.message.split())
        for each in sorted(told, key=lambda each: moment_of(each) or _BEGINNING)
    }


def refused_bindings(events: Iterable[Event], records: Iterable[PodRecord], now: datetime) -> dict[PodKey, str]:
    """Return of each pod that waits how its last binding was refused; of the pod that was refused last, last."""
    waiting = {(record.key, record.pod.metadata.uid) for record in records if record.status in WAITING}
    found: dict[PodKey, str] = {}
    for event in sorted(events, key=lambda each: moment_of(each) or _BEGINNING):
        about = PodKey(event.involved_object.namespace, event.involved_object.name)
        if event.reason == UNBOUND and (about, event.involved_object.uid) in waiting:
            who = event.reporting_component or event.source.component
            found.pop(about, None)
            found[about] = (
                f"{about} was not bound{_ago(moment_of(event), now)} by {who}: {' '.join(event.message.split())}"
            )
    return found


def is_of_eviction(event: Event) -> bool:
    """Tell whether an event tells of something that had to go, and not of one for which others did."""
    return event.reason in _EVICTIONS and MADE_ROOM not in event.message


def past_evictions(events: Iterable[Event], names: Collection[str], now: datetime) -> list[str]:
    """Return the newest eviction that events tell of objects called so, or of pods whose names begin so."""
    beginnings = tuple(f"{name}-" for name in names)
    subjects = ((each, each.involved_object.name) for each in events if is_of_eviction(each))
    about = [each for each, name in subjects if name in names or name.startswith(beginnings)]
    newest_first = sorted(about, key=lambda each: moment_of(each) or _BEGINNING, reverse=True)
    if not newest_first:
        return []
    last = newest_first[0]
    alike = [each for each in about if each.message == last.message]
    who = last.reporting_component or last.source.component
    more = len(about) - len(alike)
    before = f"{_EARLIER}{counted(more, 'earlier eviction')})" if more else ""
    return [
        f"{last.involved_object.kind} {last.involved_object.name} was evicted"
        f"{_ago(moment_of(last), now)} by {who}: {' '.join(last.message.split())}{before}"
    ]


def moment_of(event: Event) -> datetime | None:
    """Return when an event happened last."""
    written = datetime.fromisoformat(event.event_time) if event.event_time else None
    return event.last_timestamp or written or event.first_timestamp


def failures(owners: Iterable[Any], now: datetime) -> list[str]:
    """Return what could not be done for objects that record their errors (``status.lastErrors``)."""
    found: list[str] = []
    for owner in owners:
        errors: Sequence[LastError] = owner.status.last_errors
        found += [
            f"{owner.kind} {owner.metadata.name} failed{_ago(error.observed_at, now)}: {error.description}"
            for error in errors
        ]
    return found


def lasted(time: timedelta) -> str:
    """Return a time as people say it, in at most two units: ``40s``, ``5m10s``, ``3h20m``, ``2d4h``."""
    seconds = max(int(time.total_seconds()), 0)
    for size, unit, smaller, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size}{unit}{f'{rest}{part}' if rest else ''}"
    return f"{seconds}s"


def _ago(moment: datetime | None, now: datetime) -> str:
    return f" {lasted(now - moment)} ago" if moment is not None else ""


def _clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
