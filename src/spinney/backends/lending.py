"""What backends are given to look at: copies, so that what they change in them is changed for nobody else.

Objects are frozen, but for the mappings in them. Of gangs, pods and topologies, labels and annotations are all that
anybody goes by. A set carries whole pod templates.
"""

from typing import TypeVar

from msgspec.structs import replace

from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.struct import convert, to_json
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.kube.cache import WatchCache
from spinney.kube.keys import Key

T = TypeVar("T", PodGang, Pod, ClusterTopologyBinding)


class LentGangs:
    """What backends may look up where gangs have no PodCliqueSet."""

    def __init__(self, gangs: WatchCache[PodGang], bindings: WatchCache[ClusterTopologyBinding]) -> None:
        self._gangs, self._bindings = gangs, bindings

    def pod_gang(self, namespace: str, name: str) -> PodGang | None:
        """Return a gang as last seen."""
        found = self._gangs.get(Key(namespace, name))
        return None if found is None else lent(found)

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        """Return the PodCliqueSet a gang belongs to; ``None`` once that is gone."""
        return None

    def topology_binding(self, name: str) -> ClusterTopologyBinding | None:
        """Return a topology binding by name."""
        found = self._bindings.get(Key("", name))
        return None if found is None else lent(found)


def lent(found: T) -> T:
    """Return a copy of an object whose labels and annotations are its own."""
    metadata = found.metadata
    own = replace(metadata, labels={**metadata.labels}, annotations={**metadata.annotations})
    return replace(found, metadata=own)


def lent_set(pcs: PodCliqueSet) -> PodCliqueSet:
    """Return a copy of a set that shares nothing with it."""
    return convert(PodCliqueSet, to_json(pcs))
