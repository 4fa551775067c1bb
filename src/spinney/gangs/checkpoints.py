"""The talk between a scheduler and a gang that has to go: it is asked, it checkpoints, it says that it is ready.

A gang declares that it checkpoints with a duration (``spinney.dev/checkpoint-grace``) on its object or on any of its
pods. Its pods are asked by annotations: ``spinney.dev/checkpoint-by`` says until when, which a container can read as a
file of the downward API, and ``spinney.dev/eviction-request`` says for whom and why, so that the scheduler that runs
next knows it too. The gang answers with ``spinney.dev/checkpoint-ready``, which repeats the time it was given, or with
``spinney.dev/last-checkpoint``, a time since it was asked. One pod speaks for its gang: the gang is one program.

A gang that declares ``SIGTERM`` instead of a duration is not asked: being evicted is the signal.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from spinney.api.interruption import checkpoints_on_sigterm
from spinney.api.labels import (
    CHECKPOINT_BY,
    CHECKPOINT_GRACE,
    CHECKPOINT_READY,
    EVICTION_REQUEST,
    LAST_CHECKPOINT,
    MIN_RUNTIME,
)
from spinney.api.time import timestamp, to_seconds
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import PLACED
from spinney.gangs.book import GangMembers
from spinney.gangs.sources.context import duration_of, timestamp_of
from spinney.gangs.tree import GangKey

REQUESTED: Final = "CheckpointRequested"
"""The word for it in events and conditions."""
EVICTED: Final = "EvictedByScheduler"
"""The word in conditions for a gang that had to go."""
ANSWERS: Final = (CHECKPOINT_READY, LAST_CHECKPOINT)
"""The annotations by which a gang says that it may go."""
_READ: Final = frozenset({CHECKPOINT_GRACE, CHECKPOINT_READY, LAST_CHECKPOINT, MIN_RUNTIME})
_SKEW: Final = timedelta(minutes=1)
"""How far the clocks of two schedulers may differ."""
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time that says which zone it is in."""


class EvictionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a pod was asked: to be ready to go by a moment, for a job that waits for its place."""

    beneficiary: GangKey
    """The gang that waits."""
    asked: Moment
    by: Moment
    message: str = ""
    action: str = ""
    moves_to: str = ""
    """The node that is kept for the pod's successor, if it is moved."""
    scheduler: str = ""
    """The scheduler name of the gang that waits, where that is the coscheduler, which then decides."""

    @property
    def waits(self) -> bool:
        """Tell whether the pod was given time; else it only goes together with others that were."""
        return self.by > self.asked


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A pod, and what it is asked or was asked."""

    pod: PodKey
    uid: str
    gang: GangKey
    request: EvictionRequest


class Withdrawn(msgspec.Struct, frozen=True, gc=False):
    """A pod that need not go after all, and why."""

    asked: Asked
    why: str


def request(beneficiary: GangKey, *, now: datetime, grace: timedelta, **said: str) -> EvictionRequest:
    """Return a request that ends ``grace`` from now; whole seconds, because that is what survives being stored.

    ``said`` are the fields of the request that are text.
    """
    asked = to_seconds(now)
    return EvictionRequest(beneficiary=beneficiary, asked=asked, by=asked + grace, **said)


def annotations_of(found: EvictionRequest | None) -> Mapping[str, str | None]:
    """Return the annotations that say a request, or, as a patch, that take any request back."""
    if found is None:
        return {EVICTION_REQUEST: None, **time_given(None)}
    by = time_given(found) if found.waits else {}
    return {EVICTION_REQUEST: msgspec.json.encode(found).decode(), **by}


def time_given(found: EvictionRequest | None) -> Mapping[str, str | None]:
    """Return the annotation that says until when a pod has time: all that is said where no scheduler waits for it."""
    return {CHECKPOINT_BY: timestamp(found.by) if found is not None else None}


def request_of(annotations: Mapping[str, str]) -> EvictionRequest | None:
    """Return what a pod was asked; ``None`` if nothing, or nothing that can be read."""
    text = annotations.get(EVICTION_REQUEST)
    if not text:
        return None
    try:
        found = msgspec.json.decode(text, type=EvictionRequest)
        return msgspec.structs.replace(found, asked=to_seconds(found.asked), by=to_seconds(found.by))
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return None


def grace_within(members: GangMembers, most: timedelta) -> timedelta:
    """Return how long a gang is given to checkpoint: what it declares, at most ``most``; nothing if it does not."""
    return max(timedelta(0), min(grace_of(members) or timedelta(0), most))


def grace_of(members: GangMembers) -> timedelta | None:
    """Return how long a gang wants to be given to checkpoint; ``None`` if it does not declare that it does."""
    if members.gang.checkpoint_grace is not None or members.gang.checkpoints_on_sigterm:
        return members.gang.checkpoint_grace
    return _longest(members, CHECKPOINT_GRACE)


def min_runtime_of(members: GangMembers) -> timedelta | None:
    """Return how long a gang wants to run before it is disturbed."""
    return members.gang.min_runtime if members.gang.min_runtime is not None else _longest(members, MIN_RUNTIME)


def last_checkpoint_of(members: GangMembers) -> datetime | None:
    """Return when a gang last made a checkpoint, as it says."""
    found = [each for said in _said(members) if (each := timestamp_of(said, LAST_CHECKPOINT)) is not None]
    return max((*found, *filter(None, (members.gang.last_checkpoint,))), default=None)


def saved_until(members: GangMembers, end: datetime) -> datetime | None:
    """Return until when the work of a gang that is evicted at ``end`` is saved; ``None`` if nothing of it is."""
    if members.gang.checkpoints_on_sigterm:
        return end
    if grace_of(members) is None and any(map(checkpoints_on_sigterm, _said(members))):
        return end
    return last_checkpoint_of(members)


def is_ready(members: GangMembers, asked: EvictionRequest) -> bool:
    """Tell whether a gang has answered a request: it repeats the time it was given, or has checkpointed since."""
    token = timestamp(asked.by)
    if any(said.get(CHECKPOINT_READY) == token for said in _said(members)):
        return True
    checkpoint = last_checkpoint_of(members)
    return checkpoint is not None and checkpoint >= asked.asked


def outcome_of(members: GangMembers, asked: EvictionRequest | None) -> str:
    """Return how a gang that is evicted now came to it, for counting; empty if it was given no time."""
    if asked is None or not asked.waits:
        return ""
    return "ready" if is_ready(members, asked) else "timed_out"


def end_of(asked: EvictionRequest, *, now: datetime, most: timedelta) -> datetime:
    """Return when a request ends: no later than the longest grace allows, whatever is written."""
    if asked.asked > now + _SKEW:
        return now  # nobody has asked yet
    return min(asked.by, asked.asked + most)


def may_go(members: GangMembers, asked: EvictionRequest, *, now: datetime, most: timedelta) -> bool:
    """Tell whether a gang has had its time, says that it is ready, or is broken and has nothing to save."""
    if not asked.waits or now >= end_of(asked, now=now, most=most) or is_ready(members, asked):
        return True
    return not members.has_minimum(PLACED)


def _longest(members: GangMembers, annotation: str) -> timedelta | None:
    found = [each for said in _said(members) if (each := duration_of(said, annotation)) is not None]
    return max(found, default=None)


def _said(members: GangMembers) -> list[Mapping[str, str]]:
    """Return the annotations of pods that say anything about it; mostly none does."""
    found = [record.pod.metadata.annotations for _, record in members.pods.values()]
    return [annotations for annotations in found if not _READ.isdisjoint(annotations)]
