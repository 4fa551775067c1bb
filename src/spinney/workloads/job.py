"""Job: pods until enough of them have succeeded, or too many have failed."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core import Pod
from spinney.api.struct import JSON
from spinney.api.time import parse_timestamp
from spinney.kube.controller import Requeue
from spinney.kube.keys import Key
from spinney.kube.reconciling import delete_exactly
from spinney.workloads.objects import (
    JOB,
    WorkloadObject,
    condition,
    dispensable_first,
    is_active,
    is_ready,
    pod_of,
)
from spinney.workloads.upkeep import Upkeep

INDEX: Final = "batch.kubernetes.io/job-completion-index"
_BACKOFF_LIMIT: Final = 6
_PER_INDEX: Final = "backoffLimitPerIndex"
_FINISHED: Final = ("Complete", "Failed")


@dataclass(frozen=True)
class Jobs:
    """Keeps the pods of Jobs."""

    upkeep: Upkeep

    async def reconcile(self, key: Key) -> Requeue | None:
        """Start what is due, end what is over, and count."""
        found = self.upkeep.due(key)
        if found is None:
            return None
        if is_finished(found):
            return await self._expire(found)
        pods = self.upkeep.of(found)
        active = [pod for pod in pods if is_active(pod)]
        failed = [pod for pod in pods if pod.status.phase == "Failed"]
        given_up = _given_up(found, failed)
        succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
        suspended = bool(found.spec.get("suspend"))
        ended = _ending(found, succeeded, active, len(failed), given_up, now=self.upkeep.clock.now())
        if suspended or ended is not None:
            await self.upkeep.delete(found, active)
            active = []
        else:
            start, surplus = due(found, active, succeeded, given_up)
            await self.upkeep.create(found, [_pod(found, index) for index in start])
            await self.upkeep.delete(found, surplus)
        await self.upkeep.report(found, self._status(found, active, succeeded, failed, ended, suspended=suspended))
        return _until_deadline(found, self.upkeep.clock.now())

    def _status(
        self,
        found: WorkloadObject,
        active: Sequence[Pod],
        succeeded: Sequence[Pod],
        failed: Sequence[Pod],
        ended: tuple[str, str, str] | None,
        *,
        suspended: bool,
    ) -> JSON:
        now, before = self.upkeep.now(), found.status.get("conditions") or []
        status: JSON = {
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "succeeded": len(succeeded),
            "failed": len(failed),
            "startTime": None if suspended else found.status.get("startTime") or now,
        }
        if _is_indexed(found):
            status["completedIndexes"] = intervals(_indexes(succeeded))
        if found.spec.get(_PER_INDEX) is not None:
            status["failedIndexes"] = intervals(_given_up(found, failed))
        conditions = [each for each in before if each.get("type") not in (*_FINISHED, "Suspended")]
        if ended is not None:
            kind, reason, message = ended
            conditions.append(condition(kind, True, reason, message, before=before, now=now))
            if kind == "Complete":
                status["completionTime"] = now
        if suspended or any(each.get("type") == "Suspended" for each in before):
            reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
            conditions.append(condition("Suspended", suspended, reason, message, before=before, now=now))
        return status | {"conditions": conditions}

    async def _expire(self, found: WorkloadObject) -> Requeue | None:
        """Delete a Job that is over once its time has come."""
        seconds = found.spec.get("ttlSecondsAfterFinished")
        times = [
            each["lastTransitionTime"] for each in found.status.get("conditions") or () if each["type"] in _FINISHED
        ]
        if seconds is None or not times:
            return None
        left = (parse_timestamp(times[0]) + timedelta(seconds=seconds) - self.upkeep.clock.now()).total_seconds()
        if left > 0:
            return Requeue(left)
        await delete_exactly(self.upkeep.client, JOB, found)
        return None


def is_finished(found: WorkloadObject) -> bool:
    """Tell whether a Job is over."""
    return any(
        each.get("type") in _FINISHED and each.get("status") == "True" for each in found.status.get("conditions") or ()
    )


def due(
    found: WorkloadObject, active: Sequence[Pod], succeeded: Sequence[Pod], given_up: Set[int] = frozenset()
) -> tuple[list[int | None], list[Pod]]:
    """Return the pods to start, each with its index where the Job has indexes, and the pods that are too many.

    ``given_up`` are indexes that have failed too often.
    """
    parallelism, completions = int(found.spec.get("parallelism", 1)), found.spec.get("completions")
    if completions is None:
        if succeeded:
            return [], []  # a work queue: no new pod once one has succeeded
        wanted = parallelism
    else:
        wanted = min(parallelism, max(int(completions) - len({*_done(found, succeeded), *given_up}), 0))
    surplus = dispensable_first(active)[: max(len(active) - wanted, 0)]
    room = max(wanted - len(active), 0)
    if not _is_indexed(found):
        return [None] * room, surplus
    taken = {*_indexes(active), *_indexes(succeeded), *given_up}
    free = [index for index in range(int(completions or 0)) if index not in taken]
    return list(free[:room]), surplus


def intervals(indexes: Iterable[int]) -> str:
    """Return numbers as Kubernetes writes completed indexes: ``0-2,5``."""
    parts: list[list[int]] = []
    for index in sorted(set(indexes)):
        if parts and index == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(map(str, part)) for part in parts)


def _given_up(found: WorkloadObject, failed: Sequence[Pod]) -> Set[int]:
    """Return the indexes of which more pods have failed than an index may have."""
    limit = found.spec.get(_PER_INDEX)
    if limit is None:
        return frozenset()
    failures = Counter(_indexes(failed))
    return {index for index, count in failures.items() if count > int(limit)}


def _done(found: WorkloadObject, succeeded: Sequence[Pod]) -> Iterable[object]:
    return _indexes(succeeded) if _is_indexed(found) else [pod.metadata.uid for pod in succeeded]


def _ending(
    found: WorkloadObject,
    succeeded: Sequence[Pod],
    active: Sequence[Pod],
    failed: int,
    given_up: Set[int],
    *,
    now: datetime,
) -> tuple[str, str, str] | None:
    """Return condition, reason and message of a Job that is over; ``None`` if it goes on."""
    completions = found.spec.get("completions")
    enough = succeeded and not active if completions is None else len(set(_done(found, succeeded))) >= int(completions)
    if enough:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if failed > int(found.spec.get("backoffLimit", _BACKOFF_LIMIT)):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    most = found.spec.get("maxFailedIndexes")
    if most is not None and len(given_up) > int(most):
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "Failed", "MaxFailedIndexesExceeded", message
    if given_up and len({*_done(found, succeeded), *given_up}) >= int(completions or 0):
        return "Failed", "FailedIndexes", "Job has failed indexes"
    deadline = _deadline(found)
    if deadline is not None and now >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _deadline(found: WorkloadObject) -> datetime | None:
    seconds, started = found.spec.get("activeDeadlineSeconds"), found.status.get("startTime")
    return parse_timestamp(started) + timedelta(seconds=seconds) if seconds is not None and started else None


def _until_deadline(found: WorkloadObject, now: datetime) -> Requeue | None:
    deadline = _deadline(found)
    return Requeue((deadline - now).total_seconds()) if deadline is not None and deadline > now else None


def _is_indexed(found: WorkloadObject) -> bool:
    return found.spec.get("completionMode") == "Indexed"


def _indexes(pods: Iterable[Pod]) -> list[int]:
    return [int(pod.metadata.annotations[INDEX]) for pod in pods if INDEX in pod.metadata.annotations]


def _pod(found: WorkloadObject, index: int | None) -> JSON:
    name = found.metadata.name
    if index is None:
        return pod_of(JOB, found, generateName=f"{name}-")
    number = {INDEX: str(index)}
    pod = pod_of(JOB, found, generateName=f"{name}-{index}-", labels=number, annotations=number)
    pod["spec"]["hostname"] = f"{name}-{index}"
    return pod
