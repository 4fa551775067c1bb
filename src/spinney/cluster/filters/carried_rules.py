"""The rules about other pods that placed pods carry: required anti-affinity, and the affinities that count for scores.

Per distinct rule there is one vector: how many pods on each node carry it. What all of them come to for a pod is summed
once for each topology key, and found again only after a pod that carries rules has come or gone: somebody's pods may
have thousands of rules that mean everybody's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import msgspec
import numpy as np

from spinney.api.selectors import Selector
from spinney.cluster.filters.count_vectors import Counts, CountVectors
from spinney.cluster.filters.pod_selectors import AffinityRule, Labels, SelectorIndex

KINDS_KEPT: Final = 4096
"""Of so many kinds of pods it is remembered which rules mean them."""
RULES_KEPT: Final = 1_000_000
"""So many rules are remembered for all kinds of pods together; kinds that the same rules mean share them."""
SUMS_KEPT: Final = 64
"""For so many sets of rules it is remembered what they come to."""


class RuleEffect(Enum):
    """What a rule that a placed pod carries means for a newcomer that it selects."""

    FORBIDS = "required anti-affinity"
    REQUIRED = "required affinity"
    PREFERRED = "preferred affinity or anti-affinity"


@dataclass(frozen=True, slots=True)
class CarriedRule:
    """A rule placed pods carry; ``weight`` is signed, 1 for required ones."""

    role: RuleEffect
    weight: int
    rule: AffinityRule
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.role, self.weight, self.rule)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def selector(self) -> Selector | None:
        """Return the selector to index by."""
        return self.rule.selector


class Attraction(msgspec.Struct, frozen=True):
    """What draws pods to nodes or keeps them off, by the carriers on each node; domains are not looked at yet."""

    carriers: Counts
    """How many rules the pods of each node carry, a rule as often as it is carried."""
    weights: Counts
    """The sum of their weights."""


class RulesAbout(msgspec.Struct, frozen=True):
    """What all rules of placed pods that mean a pod come to, by topology key."""

    forbidding: Mapping[str, Counts]
    """How many carriers of each node forbid it to be in their domain."""
    attracting: Mapping[str, Attraction]


@dataclass(frozen=True, slots=True, eq=False)
class _Meaning:
    """The rules that mean some kinds of pods. Compared by identity."""

    rules: tuple[CarriedRule, ...]


_NONE: Final = _Meaning(())
_Kind = tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""Namespace, its labels, and those of the pod."""


class CarriedRules:
    """The rules of placed pods. Mutable; a fork remembers what its original does, until either changes."""

    def __init__(self) -> None:
        self._counts: CountVectors[CarriedRule] = CountVectors()
        self._index: SelectorIndex[CarriedRule] = SelectorIndex()
        self._meant: dict[_Kind, _Meaning] = {}
        """By kind of pod; forgotten when a rule comes or goes."""
        self._meanings: dict[tuple[CarriedRule, ...], _Meaning] = {}
        self._summed: dict[tuple[_Meaning, int], RulesAbout] = {}
        """By rules and number of rows; forgotten when a pod that carries a rule comes or goes."""

    def count(self, carried: CarriedRule, row: int, pods: int, capacity: int) -> None:
        """Count so many more pods on a row that carry a rule."""
        self._summed = {}
        if carried not in self._counts:
            self._index.add(carried)
            self._forget()
        counts = self._counts.add(carried, row, pods, capacity)
        if pods < 0 and not counts[row] and not counts.any():
            self._counts.discard(carried)
            self._index.discard(carried)
            self._forget()

    def fork(self) -> "CarriedRules":
        """Return an independent copy."""
        copy = CarriedRules()
        copy._counts = self._counts.fork()
        copy._index = self._index.fork()
        copy._meant, copy._meanings, copy._summed = self._meant, self._meanings, self._summed
        return copy

    def meaning(self, namespace: str, namespace_labels: Labels, labels: Labels) -> tuple[CarriedRule, ...]:
        """Return the rules that mean a pod like this."""
        return self._meaning(namespace, namespace_labels, labels).rules

    def about(self, namespace: str, namespace_labels: Labels, labels: Labels, capacity: int) -> RulesAbout | None:
        """Return what the rules that mean a pod like this come to; ``None`` if there are none."""
        meaning = self._meaning(namespace, namespace_labels, labels)
        if not meaning.rules:
            return None
        known = self._summed.get((meaning, capacity))
        if known is None:
            if len(self._summed) >= SUMS_KEPT:
                self._summed = {}
            known = self._summed[meaning, capacity] = self._sum(meaning.rules, capacity)
        return known

    def _meaning(self, namespace: str, namespace_labels: Labels, labels: Labels) -> _Meaning:
        if not self._index.has_candidates(labels):
            return _NONE
        kind = namespace, tuple(sorted(namespace_labels.items())), tuple(sorted(labels.items()))
        known = self._meant.get(kind)
        if known is None:
            rules = tuple(
                carried
                for carried in self._index.candidates(labels)
                if carried.rule.matches(namespace, namespace_labels, labels)
            )
            if len(self._meant) >= KINDS_KEPT or (len(self._meanings) + 1) * len(self._counts) > RULES_KEPT:
                self._forget()
            known = self._meant[kind] = self._meanings.setdefault(rules, _Meaning(rules))
        return known

    def _sum(self, rules: Iterable[CarriedRule], capacity: int) -> RulesAbout:
        forbidding: dict[str, Counts] = {}
        carriers: dict[str, Counts] = {}
        weights: dict[str, Counts] = {}
        for carried in rules:
            counts = self._counts.of(carried, capacity)
            if counts is None:
                continue
            key, counts = carried.rule.topology_key, counts[:capacity]
            if carried.role is RuleEffect.FORBIDS:
                _add(forbidding, key, counts)
            else:
                _add(carriers, key, counts)
                _add(weights, key, carried.weight * counts)
        return RulesAbout(forbidding, {key: Attraction(carriers[key], weights[key]) for key in carriers})

    def _forget(self) -> None:
        self._meant, self._meanings = {}, {}


def _add(sums: dict[str, Counts], key: str, counts: Counts) -> None:
    known = sums.get(key)
    if known is None:
        sums[key] = counts.copy()
    else:
        np.add(known, counts, out=known)
