"""Whether evictions of a replay keep to the disruption budgets of its recording: counted from what happened alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from spinney.api.policy import PodDisruptionBudget, desired_healthy
from spinney.kube.keys import key_of
from spinney.sim.replay.budget_index import BudgetIndex
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.trace import Job, Trace


@dataclass(slots=True)
class _Standing:
    """A budget, and how many of its pods there are and run. Mutable."""

    budget: PodDisruptionBudget
    expected: int = 0
    healthy: int = 0

    def pods_of(self, job: Job) -> int:
        """Return how many pods of a job the budget counts."""
        selector, recorded = self.budget.spec.selector, job.recorded
        if selector is None or recorded is None or recorded.gang.namespace != self.budget.metadata.namespace:
            return 0
        return sum(selector.matches(each.pod.metadata.labels) for each in recorded.pods)

    def count(self, job: Job, before: bool | None, now: bool | None) -> bool:
        """Count a job that runs, waits (``False``) or is not there; tell whether the budget is about it."""
        pods = self.pods_of(job)
        self.expected += pods * ((now is not None) - (before is not None))
        self.healthy += pods * (bool(now) - bool(before))
        return pods > 0

    @property
    def needed(self) -> int:
        spec = self.budget.spec
        return desired_healthy(spec.min_available, spec.max_unavailable, self.expected)


class BudgetRules:
    """The budgets as they are at a moment. Mutable: it is moved on through what happened."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._changes = [each for each in trace.changes if isinstance(each.found, PodDisruptionBudget)]
        self._passed = 0
        self._budgets: BudgetIndex[_Standing] = BudgetIndex()
        self._runs: dict[int, bool] = {}
        """Whether a job that is there runs."""

    def problems(self, event: JobHappening) -> Iterator[str]:
        """Take in what happened, and yield which budgets did not allow it."""
        if not self._changes:
            return
        self._move_to(event.at)
        before, now = self._runs.pop(event.job, None), None
        if event.what in {"submitted", "started", "evicted", "failed"}:
            now = self._runs[event.job] = event.what == "started"
        job = self._trace.jobs[event.job]
        if job.recorded is None:
            return
        labels = (each.pod.metadata.labels for each in job.recorded.pods)
        for key, standing in self._budgets.about(job.recorded.gang.namespace, labels):
            if standing.count(job, before, now) and event.what == "evicted" and standing.healthy < standing.needed:
                yield (
                    f"was evicted, which leaves {standing.healthy} healthy pods where PodDisruptionBudget {key} needs "
                    f"{standing.needed}"
                )

    def _move_to(self, moment: float) -> None:
        while self._passed < len(self._changes) and self._changes[self._passed].at <= moment:
            change = self._changes[self._passed]
            self._passed += 1
            assert isinstance(change.found, PodDisruptionBudget), "others were left out"
            if change.gone:
                self._budgets.remove(key_of(change.found))
            else:
                standing = _Standing(change.found)
                self._budgets.put(change.found, standing)
                for number, runs in self._runs.items():
                    standing.count(self._trace.jobs[number], None, runs)
