"""What backends may look up in the operator's caches; they are given copies."""

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.backends.lending import LentGangs, lent_set
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.operator.caches import Caches


class BackendLookups(LentGangs):
    """The look-ups of backends. Mutable: each version of a set is copied once, for it is asked for with every pod."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches.gangs, caches.bindings)
        self._caches = caches
        self._sets: dict[Key, tuple[PodCliqueSet, PodCliqueSet]] = {}
        caches.sets.subscribe(self._forget)

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        key = Key(gang.metadata.namespace or "", gang.metadata.labels.get(marks.PART_OF, ""))
        found = self._caches.sets.get(key)
        if found is None:
            return None
        known = self._sets.get(key)
        if known is None or known[0] is not found:
            known = self._sets[key] = (found, lent_set(found))
        return known[1]

    def _forget(self, change: Change[PodCliqueSet]) -> None:
        self._sets.pop(change.key, None)
