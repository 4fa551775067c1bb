"""Disruption budgets of a replay: who may be disrupted follows from the pods of the replay, not from those recorded.

The part of Kubernetes' disruption controller: a budget allows as many disruptions as there are ready pods beyond those
that have to stay. Counts are kept as pods come and go, and written to the budgets before a scheduler looks at them.
"""

from dataclasses import dataclass

import msgspec

from spinney.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus, desired_healthy
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PodStatus
from spinney.kube.keys import Key, key_of
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.replay.budget_index import BudgetIndex


@dataclass(slots=True)
class _Counted:
    """A budget and its pods. Mutable."""

    budget: PodDisruptionBudget
    expected: int = 0
    healthy: int = 0

    def count(self, record: PodRecord | None, step: int) -> bool:
        """Count a pod, or not any more; tell whether it is one of the budget's."""
        selector = self.budget.spec.selector
        if record is None or selector is None or not selector.matches(record.labels):
            return False
        self.expected += step
        self.healthy += step * (record.status is PodStatus.RUNNING)
        return True

    def as_it_is(self) -> PodDisruptionBudget:
        spec = self.budget.spec
        desired = desired_healthy(spec.min_available, spec.max_unavailable, self.expected)
        allowed = max(0, self.healthy - desired) if self.expected else 0
        return msgspec.structs.replace(self.budget, status=PodDisruptionBudgetStatus(disruptions_allowed=allowed))


class PlayedBudgets:
    """The budgets of a replay. Mutable: it follows the pods of an inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._budgets: BudgetIndex[_Counted] = BudgetIndex()
        self._changed: dict[Key, _Counted] = {}
        inventory.cluster.subscribe(self._pod_changed)

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take in a budget that appeared or changed."""
        key, counted = key_of(budget), _Counted(budget)
        for record in self._inventory.cluster.pods():
            if record.namespace == key.namespace:
                counted.count(record, 1)
        self._changed[key] = counted
        self._budgets.put(budget, counted)

    def remove(self, budget: PodDisruptionBudget) -> None:
        """Take out a budget that is gone."""
        key = key_of(budget)
        self._budgets.remove(key)
        self._changed.pop(key, None)
        self._inventory.delete(budget)

    def settle(self) -> None:
        """Have schedulers see what budgets allow now."""
        for counted in self._changed.values():
            self._inventory.apply(counted.as_it_is())
        self._changed.clear()

    def _pod_changed(self, change: PodChange) -> None:
        old, new = change
        pods = [each for each in change if each is not None]
        for key, counted in self._budgets.about(pods[0].namespace, (each.labels for each in pods)):
            was, is_ = counted.count(old, -1), counted.count(new, 1)
            if was or is_:
                self._changed[key] = counted
