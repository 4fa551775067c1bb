"""Kinds of pods, and which selectors mean them.

Pods with the same namespace and labels cannot be told apart by a selector, so a selector is tried once per kind. A kind
knows the selectors that mean it; a pod that comes or goes then touches only their counts.
"""

from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

from spinney.cluster.filters.pod_selectors import Labels, PodSelector, SelectorIndex, demanded

SELECTORS_KEPT: Final = 2048


class PodKind:
    """What pods have in common that selectors cannot tell apart. Mutable: ``selectors`` is replaced, never changed."""

    __slots__ = ("__weakref__", "labels", "namespace", "selectors", "terminating")

    def __init__(self, namespace: str, labels: Labels, *, terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.selectors: frozenset[PodSelector] = frozenset()

    def meant_by(self, selector: PodSelector) -> bool:
        """Tell whether ``selector`` means pods of this kind."""
        return selector.matches(self.namespace, self.labels, terminating=self.terminating)


class PodKinds:
    """Selectors and kinds of pods, and which mean which. Mutable.

    Shared by all forks, one of which may be at work in another thread: hence the lock, and sets replaced whole.
    """

    def __init__(self) -> None:
        self.edition = 0
        self._kinds: WeakValueDictionary[tuple[str, tuple[tuple[str, str], ...], bool], PodKind] = WeakValueDictionary()
        self._selectors: set[PodSelector] = set()
        self._index: SelectorIndex[PodSelector] = SelectorIndex()
        self._lock = Lock()
        self._last: PodKind | None = None
        """The kind that was asked for last."""

    def kind(self, namespace: str, labels: Labels, *, terminating: bool) -> PodKind:
        """Return the kind of such pods. It is forgotten when nobody holds it any more."""
        last = self._last
        if (
            last is not None
            and (last.namespace, last.terminating) == (namespace, terminating)
            and last.labels == labels
        ):
            return last  # pods of a gang come together
        key = (namespace, tuple(sorted(labels.items())), terminating)
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None:
                kind = self._kinds[key] = PodKind(namespace, labels, terminating=terminating)
                kind.selectors = frozenset(s for s in self._index.candidates(labels) if kind.meant_by(s))
            self._last = kind
            return kind

    def has_any(self, selector: PodSelector) -> bool:
        """Tell whether a registered selector means any kind of which there are pods."""
        with self._lock:
            return any(selector in kind.selectors for kind in self._kinds_for(selector))

    def register(self, selector: PodSelector) -> None:
        """Have every kind, present and future, know whether ``selector`` means it."""
        with self._lock:
            if selector in self._selectors:
                return
            if len(self._selectors) >= SELECTORS_KEPT:
                self._start_afresh()
            self._selectors.add(selector)
            self._index.add(selector)
            for kind in self._kinds_for(selector):
                if kind.meant_by(selector):
                    kind.selectors |= {selector}

    def _kinds_for(self, selector: PodSelector) -> list[PodKind]:
        kinds = list(self._kinds.values())
        demand = demanded(selector.selector) if selector.selector is not None else None
        if demand is None:
            return kinds
        key, wanted = demand.key, frozenset(demand.values)
        return [kind for kind in kinds if kind.labels.get(key) in wanted]

    def _start_afresh(self) -> None:
        """Forget all selectors: most belong to jobs long gone. Counts of an earlier edition are no longer kept up."""
        self.edition += 1
        self._selectors.clear()
        self._index = SelectorIndex()
        for kind in list(self._kinds.values()):
            kind.selectors = frozenset()
