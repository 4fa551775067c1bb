"""Which pods a constraint speaks of: selectors over namespace and labels, as hashable values with an index.

Spread constraints and pod affinity select pods by label within namespaces. Reduced to values, equal selectors of
different pods share one count table. The index answers "which of these selectors match these labels" without trying
all: a selector that wants ``app in (a, b)`` is only tried for pods whose ``app`` is ``a`` or ``b``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import msgspec

from spinney.api.affinity import PodAffinityTerm
from spinney.api.selectors import LabelSelector, Requirement, Selector, SelectorOperator

Labels = Mapping[str, str]


class PodTerm(msgspec.Struct, frozen=True):
    """Pods of some namespaces (``None``: of all) whose labels match; ``selector`` ``None`` matches no pod."""

    namespaces: frozenset[str] | None
    selector: Selector | None

    def matches(self, namespace: str, labels: Labels) -> bool:
        """Tell whether a pod is meant."""
        if self.selector is None or (self.namespaces is not None and namespace not in self.namespaces):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Pods that all ``terms`` mean; ``live`` leaves out those that are terminating."""

    terms: tuple[PodTerm, ...]
    live: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked for once per pod that comes or goes; walking the nested values each time would dominate.
        object.__setattr__(self, "_hash", hash((self.terms, self.live)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def selector(self) -> Selector | None:
        """Return the selector to index by."""
        return self.terms[0].selector

    def matches(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:
        """Tell whether a pod is meant."""
        return not (self.live and terminating) and all(term.matches(namespace, labels) for term in self.terms)


class AffinityRule(msgspec.Struct, frozen=True):
    """A pod affinity term, resolved for the pod that carries it."""

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector | None

    @classmethod
    def of(cls, term: PodAffinityTerm, namespace: str, labels: Labels) -> "AffinityRule":
        """Resolve ``term`` of a pod in ``namespace`` with ``labels``."""
        own = not term.namespaces and term.namespace_selector is None
        selector = with_label_keys(term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys)
        return cls(
            topology_key=term.topology_key,
            namespaces=frozenset([namespace]) if own else frozenset(term.namespaces),
            namespace_selector=term.namespace_selector.selector() if term.namespace_selector is not None else None,
            selector=selector,
        )

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Tell whether a pod in ``namespace``, which has ``namespace_labels``, is meant."""
        if self.selector is None or not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)

    def term(self, namespaces: Mapping[str, Labels]) -> PodTerm:
        """Return the pods this rule means while the cluster has these ``namespaces`` (name to labels)."""
        if self.namespace_selector is None:
            return PodTerm(self.namespaces, self.selector)
        if not self.namespace_selector.requirements:
            return PodTerm(None, self.selector)
        selected = (name for name, labels in namespaces.items() if self.namespace_selector.matches(labels))
        return PodTerm(self.namespaces.union(selected), self.selector)


def with_label_keys(
    selector: LabelSelector | None, labels: Labels, match: tuple[str, ...], mismatch: tuple[str, ...] = ()
) -> Selector | None:
    """Return ``selector`` narrowed by the pod's own values of ``match`` (equal) and ``mismatch`` (different).

    The API server writes these into the selector when it creates the pod; a key it has already written stays as it is.
    """
    if selector is None:
        return None
    requirements = selector.selector().requirements
    present = {(requirement.key, requirement.operator) for requirement in requirements}
    wanted = [(key, SelectorOperator.IN) for key in match] + [(key, SelectorOperator.NOT_IN) for key in mismatch]
    added = tuple(
        Requirement(key, operator, (labels[key],))
        for key, operator in wanted
        if key in labels and (key, operator) not in present
    )
    return Selector((*requirements, *added))


def demanded(selector: Selector) -> Requirement | None:
    """Return a requirement that names the values a label must have, if the selector has one: the quickest to check."""
    return next((found for found in selector.requirements if found.operator is SelectorOperator.IN), None)


class Indexed(Protocol):
    """Something that has a label selector and can be a key."""

    @property
    def selector(self) -> Selector | None: ...
    def __hash__(self) -> int: ...


K = TypeVar("K", bound=Indexed)


class SelectorIndex(Generic[K]):
    """Items by a label value their selector demands. Mutable; iterates in a fixed order."""

    def __init__(self) -> None:
        self._by_value: dict[tuple[str, str], dict[K, None]] = {}
        self._others: dict[K, None] = {}

    def add(self, item: K) -> None:
        """Index ``item`` by its selector; one that matches no pod is left out."""
        if item.selector is None:
            return
        demand = demanded(item.selector)
        if demand is None:
            self._others[item] = None
            return
        for value in demand.values:
            self._by_value.setdefault((demand.key, value), {})[item] = None

    def discard(self, item: K) -> None:
        """Take ``item`` out, if it is in."""
        demand = demanded(item.selector) if item.selector is not None else None
        if demand is None:
            self._others.pop(item, None)
            return
        for value in demand.values:
            bucket = self._by_value.get((demand.key, value), {})
            bucket.pop(item, None)
            if not bucket:
                self._by_value.pop((demand.key, value), None)

    def has_candidates(self, labels: Labels) -> bool:
        """Tell whether there is an item whose selector may match ``labels``."""
        return bool(self._others) or not self._by_value.keys().isdisjoint(labels.items())

    def candidates(self, labels: Labels) -> Iterator[K]:
        """Yield the items whose selector may match ``labels``; the caller still asks the selector."""
        yield from self._others
        seen: set[K] = set()
        for pair in sorted(labels.items()):
            for item in self._by_value.get(pair, ()):
                if item not in seen:
                    seen.add(item)
                    yield item

    def fork(self) -> "SelectorIndex[K]":
        """Return an independent copy."""
        copy: SelectorIndex[K] = SelectorIndex()
        copy._by_value = {pair: dict(bucket) for pair, bucket in self._by_value.items()}
        copy._others = dict(self._others)
        return copy
