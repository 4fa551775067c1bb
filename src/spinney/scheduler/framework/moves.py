"""Who was moved for whom: so that nobody is moved again and again.

A move restarts a workload and is worth that once. Two rules make sure that moving ends, whatever happens between:

* a job has another workload moved at most once;
* a workload is never moved for one that was itself moved for it, not even by way of others.

The first bounds what a job that waits can cause. The second does the same for workloads whose pods are gangs of their
own, each new pod a new job: by it, moves for one another make no circles, so the gang that was moved least often can
cause only so many moves, those moved for it only so many more, and so on. Both hold for a while, after which the
cluster has changed. What is remembered is lost with the process; then each move may happen once more.
"""

from datetime import datetime, timedelta

from spinney.gangs.sources import bare
from spinney.scheduler.framework.jobs import PodGroupInfo


def workload_of(job: PodGroupInfo) -> str:
    """Return what stays the same when pods are replaced: the job, or for a pod that is a job, what made the pod."""
    if job.key.source == bare.SOURCE:
        for _, record in job.members.pods.values():
            maker = record.pod.metadata.controller
            if maker is not None:
                return maker.uid
    return job.uid


class Moves:
    """What was moved within the time that is remembered; with no such time, nothing is. Mutable."""

    def __init__(self, remembered: timedelta) -> None:
        self._remembered = remembered
        self._by_job: dict[tuple[str, str], datetime] = {}
        """By the job that gained by it and the workload that was moved."""
        self._for: dict[str, dict[str, datetime]] = {}
        """By the workload that was moved and the one that gained by it."""

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def note(self, job: str, gaining: str, moved: str, moment: datetime) -> None:
        """Remember that ``moved`` was moved for a job, which is (a part of) the workload ``gaining``."""
        if self._remembered:
            self._by_job[job, moved] = moment
            self._for.setdefault(moved, {})[gaining] = moment

    def forget_old(self, now: datetime) -> None:
        """Forget what no longer counts."""
        since = now - self._remembered
        self._by_job = {pair: moment for pair, moment in self._by_job.items() if moment > since}
        lately = {
            moved: {gaining: moment for gaining, moment in reasons.items() if moment > since}
            for moved, reasons in self._for.items()
        }
        self._for = {moved: reasons for moved, reasons in lately.items() if reasons}

    def bar(self, job: str, gaining: str, moved: str) -> datetime | None:
        """Return until when ``moved`` is not moved for a job of the workload ``gaining``; ``None`` if it may be."""
        moment = self._by_job.get((job, moved)) or self._moved_for(gaining, moved)
        return moment + self._remembered if moment is not None else None

    def limit(self, job: str, workload: str) -> bool:
        """Tell whether some jobs may not be moved for a job, though for others like it."""
        return workload in self._for or any(each == job for each, _ in self._by_job)

    def _moved_for(self, workload: str, other: str) -> datetime | None:
        """Return when ``workload`` was moved for ``other``, or for one that was, and so on: the oldest of these."""
        seen: set[str] = set()
        left: list[tuple[str, datetime | None]] = [(workload, None)]
        while left:
            current, oldest = left.pop()
            for gaining, moment in self._for.get(current, {}).items():
                link = moment if oldest is None else min(oldest, moment)
                if gaining == other:
                    return link
                if gaining not in seen:
                    seen.add(gaining)
                    left.append((gaining, link))
        return None
