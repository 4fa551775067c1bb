"""Which disruption budgets may be about a pod: many clusters have one for each workload, and a pod is in few."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from spinney.api.policy import PodDisruptionBudget
from spinney.kube.keys import Key, key_of

T = TypeVar("T")
_Place = tuple[str, str, str]
"""A namespace and a label that pods of a budget must have; empty for budgets that ask for no one label."""


class BudgetIndex(Generic[T]):
    """What is kept of each budget, by namespace and one label of its selector. Mutable."""

    def __init__(self) -> None:
        self._at: dict[_Place, dict[Key, T]] = {}
        self._places: dict[Key, _Place] = {}

    def put(self, budget: PodDisruptionBudget, kept: T) -> None:
        """Keep something of a budget, in the place of what was kept of it before."""
        key, selector = key_of(budget), budget.spec.selector
        self.remove(key)
        label = min(selector.match_labels.items(), default=("", "")) if selector is not None else ("", "")
        self._places[key] = place = (key.namespace, *label)
        self._at.setdefault(place, {})[key] = kept

    def remove(self, key: Key) -> None:
        """Keep nothing of a budget any more."""
        place = self._places.pop(key, None)
        if place is not None:
            del self._at[place][key]
            if not self._at[place]:
                del self._at[place]

    def about(self, namespace: str, labels: Iterable[Mapping[str, str]]) -> Iterator[tuple[Key, T]]:
        """Yield the budgets, each once, that may be about pods with such labels; to tell is for who asks."""
        wanted = [("", ""), *dict.fromkeys(each for mine in labels for each in mine.items())]
        for label in wanted:
            yield from self._at.get((namespace, *label), {}).items()
