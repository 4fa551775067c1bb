"""Disruption budgets, as preemption weighs them: avoided where possible, never a reason not to preempt."""

from collections.abc import Sequence

from spinney.api.policy import PodDisruptionBudget
from spinney.cluster.pods import PodRecord
from spinney.kube.keys import Key, key_of


class Budgets:
    """The disruption budgets of the cluster. Mutable; fed by watch events."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[Key, PodDisruptionBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take in a budget that appeared or changed."""
        key = key_of(budget)
        self._budgets.setdefault(key.namespace, {})[key] = budget

    def remove(self, key: Key) -> None:
        """Forget a budget."""
        self._budgets.get(key.namespace, {}).pop(key, None)

    def violated_by(self, victims: Sequence[PodRecord]) -> list[bool]:
        """Tell for each victim whether taking it, after those before it, takes more than some budget allows."""
        left: dict[Key, int] = {}
        answers = []
        for victim in victims:
            violates = False
            for key, budget in self._budgets.get(victim.namespace, {}).items():
                selector = budget.spec.selector
                disrupted = victim.name in budget.status.disrupted_pods
                if selector is None or disrupted or not selector.matches(victim.labels):
                    continue
                left[key] = left.get(key, budget.status.disruptions_allowed) - 1
                violates |= left[key] < 0
            answers.append(violates)
        return answers
