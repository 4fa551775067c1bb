"""Disruption budgets over whole sets of victims.

A budget says how many more of its pods may be disrupted now. The API server checks evictions one by one; a set that is
only worth evicting as a whole has to be counted before the first one goes. Preemption of single pods weighs budgets
instead: they are avoided where possible and never a reason not to preempt.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from spinney.api.policy import PodDisruptionBudget
from spinney.cluster.pods import PodRecord
from spinney.kube.keys import Key, key_of


class Budgets:
    """The disruption budgets of the cluster, less what was spent. Mutable; fed by watch events, forked for sessions."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[Key, PodDisruptionBudget]] = {}
        self._spent: Counter[Key] = Counter()

    def __bool__(self) -> bool:
        return any(self._budgets.values())

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take in a budget that appeared or changed."""
        key = key_of(budget)
        self._budgets[key.namespace] = {**self._budgets.get(key.namespace, {}), key: budget}

    def remove(self, key: Key) -> None:
        kept = self._budgets.get(key.namespace, {})
        self._budgets[key.namespace] = {other: budget for other, budget in kept.items() if other != key}

    def fork(self) -> "Budgets":
        """Return an independent copy."""
        copy = Budgets()
        copy._budgets = dict(self._budgets)
        copy._spent = self._spent.copy()
        return copy

    def refusal(self, victims: Iterable[PodRecord]) -> str | None:
        """Return which budget forbids that all of ``victims`` go, or None if they may."""
        for key, count in self._counted(victims).items():
            allowed = self._allowed(key)
            if count > allowed:
                more = f"{max(allowed, 0)} more disruption{'' if allowed == 1 else 's'}"
                return f"disruption budget {key} allows {more}, and {count} {'is' if count == 1 else 'are'} needed"
        return None

    def violated_by(self, victims: Iterable[PodRecord]) -> list[bool]:
        """Tell for each victim whether taking it, after those before it, takes more than some budget allows."""
        left: dict[Key, int] = {}
        answers = []
        for victim in victims:
            violates = False
            for key in self._protecting(victim):
                left[key] = left.get(key, self._allowed(key)) - 1
                violates |= left[key] < 0
            answers.append(violates)
        return answers

    def spend(self, victims: Iterable[PodRecord]) -> None:
        """Count ``victims`` as gone."""
        self._spent.update(self._counted(victims))

    def _counted(self, victims: Iterable[PodRecord]) -> Counter[Key]:
        """Return how many of ``victims`` each budget protects; those that are on their way out count already."""
        return Counter(key for victim in victims for key in self._protecting(victim))

    def _protecting(self, victim: PodRecord) -> Iterator[Key]:
        """Yield the budgets that count the disruption of a pod."""
        for key, budget in self._budgets.get(victim.namespace, {}).items():
            selector = budget.spec.selector
            if selector is None or victim.name in budget.status.disrupted_pods:
                continue
            if selector.matches(victim.labels):
                yield key

    def _allowed(self, key: Key) -> int:
        """Return how many more disruptions a budget allows."""
        return self._budgets[key.namespace][key].status.disruptions_allowed - self._spent[key]
