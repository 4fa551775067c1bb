"""What backends may look up in the operator's caches; they are given copies."""

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends.lending import lent, lent_set
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.operator.caches import Caches


class BackendLookups:
    """The look-ups of backends. Mutable: each version of a set is copied once, for it is asked for with every pod."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._sets: dict[Key, tuple[PodCliqueSet, PodCliqueSet]] = {}
        caches.sets.subscribe(self._forget)

    def pod_gang(self, namespace: str, name: str) -> PodGang | None:
        """Return a gang as last seen."""
        found = self._caches.gangs.get(Key(namespace, name))
        return None if found is None else lent(found)

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        """Return the PodCliqueSet a gang belongs to; ``None`` once that is gone."""
        key = Key(gang.metadata.namespace or "", gang.metadata.labels.get(marks.PART_OF, ""))
        found = self._caches.sets.get(key)
        if found is None:
            return None
        known = self._sets.get(key)
        if known is None or known[0] is not found:
            known = self._sets[key] = (found, lent_set(found))
        return known[1]

    def topology_binding(self, name: str) -> ClusterTopologyBinding | None:
        """Return a topology binding by name."""
        found = self._caches.bindings.get(Key("", name))
        return None if found is None else lent(found)

    def _forget(self, change: Change[PodCliqueSet]) -> None:
        self._sets.pop(change.key, None)
