"""What the operator watches, indexed the way its controllers look things up."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.meta import Metadata
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.kube.cache import Change, WatchCache
from spinney.kube.controller import Mapper
from spinney.kube.keys import Key, key_of
from spinney.kube.manager import Manager
from spinney.operator.desired import topologies
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.operator.headcounts import Headcount, Headcounts

MANAGED = f"{marks.MANAGED_BY}={marks.MANAGED_BY_GROVE}"

BY_OWNER = "controller uid"
BY_SET = "PodCliqueSet"
BY_SCALING_GROUP = "PodCliqueScalingGroup"
BY_GANG = "PodGang"
BY_BASE_GANG = "base PodGang"
BY_TOPOLOGY = "topology"


Labelled = PodClique | PodCliqueScalingGroup | PodGang | Pod


@dataclass(frozen=True)
class Caches:
    """The shared caches of the operator, and the questions its controllers ask them."""

    sets: WatchCache[PodCliqueSet]
    cliques: WatchCache[PodClique]
    groups: WatchCache[PodCliqueScalingGroup]
    gangs: WatchCache[PodGang]
    pods: WatchCache[Pod]
    bindings: WatchCache[ClusterTopologyBinding]
    topology_enabled: bool
    _headcounts: Headcounts = field(default_factory=Headcounts)
    _layouts: dict[Key, Layout] = field(default_factory=dict)

    @classmethod
    def of(cls, manager: Manager, *, topology_enabled: bool) -> "Caches":
        """Declare the caches with the manager, which runs them."""
        by_labels = {
            BY_SET: _by_label(marks.PART_OF),
            BY_SCALING_GROUP: _by_label(marks.SCALING_GROUP),
            BY_GANG: _by_label(marks.POD_GANG),
            BY_BASE_GANG: _by_label(marks.BASE_POD_GANG),
        }
        by_set = {BY_SET: _by_label(marks.PART_OF)}
        caches = cls(
            sets=manager.cache(POD_CLIQUE_SET, PodCliqueSet, indexes={BY_TOPOLOGY: _topology_of}),
            cliques=manager.cache(POD_CLIQUE, PodClique, indexes=by_labels),
            groups=manager.cache(POD_CLIQUE_SCALING_GROUP, PodCliqueScalingGroup, indexes=by_set),
            gangs=manager.cache(POD_GANG, PodGang, indexes=by_set),
            pods=manager.cache(POD, Pod, label_selector=MANAGED, indexes={BY_OWNER: _owner}),
            bindings=manager.cache(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding),
            topology_enabled=topology_enabled,
        )
        caches.sets.subscribe(caches._forget_layout)
        caches.pods.subscribe(caches._headcounts.observe)
        return caches

    def layout(self, pcs: PodCliqueSet) -> Layout:
        """Return the layout of a set, worked out once for each version of it."""
        key = key_of(pcs)
        known = self._layouts.get(key)
        if known is None or known.pcs is not pcs:
            known = self._layouts[key] = Layout(pcs) if known is None else known.of_version(pcs)
        return known

    def _forget_layout(self, change: Change[PodCliqueSet]) -> None:
        if change.new is None:
            self._layouts.pop(change.key, None)

    def set_of(self, metadata: Metadata) -> PodCliqueSet | None:
        """Return the PodCliqueSet a generated object belongs to, unless that is gone or going."""
        name = metadata.labels.get(marks.PART_OF)
        found = self.sets.get(Key(metadata.namespace or "", name)) if name else None
        return None if found is None or found.metadata.deleting else found

    def gang_of(self, pcs: PodCliqueSet, name: str) -> PodGang | None:
        """Return a gang of a set by name; one of a former set of the same name, seen late, is none of it."""
        gang = self.gangs.get(Key(pcs.metadata.namespace or "", name))
        owner = gang.metadata.controller if gang is not None else None
        return gang if owner is not None and owner.uid == pcs.metadata.uid else None

    def pods_of(self, clique: PodClique) -> list[Pod]:
        """Return the pods that a PodClique controls, by name."""
        return self.pods.index(BY_OWNER, clique.metadata.uid)

    def headcount(self, clique: PodClique) -> Headcount:
        """Return how many pods a PodClique controls, without a look at each."""
        return self._headcounts.of(clique.metadata.uid)

    def clique(self, namespace: str | None, name: str) -> PodClique | None:
        """Return a PodClique by name."""
        return self.cliques.get(Key(namespace or "", name))

    def topology_of(self, pcs: PodCliqueSet) -> SetTopology:
        """Return the topology in force for a set."""
        name = topologies.topology_name(pcs)
        binding = self.bindings.get(Key("", name)) if name is not None else None
        return SetTopology(self.topology_enabled, name, binding)


def to_parts(cache: WatchCache[PodClique] | WatchCache[PodCliqueScalingGroup]) -> Mapper:
    """Map a set to what it is made of in ``cache``, if the change is any business of that."""

    def parts(change: Change[PodCliqueSet]) -> Iterable[Key]:
        old, new = change.old, change.new
        if new is None or (old is not None and _concern_of_parts(old) == _concern_of_parts(new)):
            return ()
        return cache.index_keys(BY_SET, change.key)

    return parts


def _concern_of_parts(pcs: PodCliqueSet) -> object:
    """Return what of a set the parts go by: what is asked for, and whose turn it is in an update."""
    progress, metadata = pcs.status.update_progress, pcs.metadata
    turns = None if progress is None else (progress.update_ended_at, progress.currently_updating)
    return metadata.generation, metadata.annotations, pcs.status.current_generation_hash, turns


def _by_label(label: str) -> Callable[[Labelled], Iterable[Hashable]]:
    def values(obj: Labelled) -> Iterable[Hashable]:
        name = obj.metadata.labels.get(label)
        return () if name is None else (Key(obj.metadata.namespace or "", name),)

    return values


def _owner(pod: Pod) -> Iterable[Hashable]:
    controller = pod.metadata.controller
    return () if controller is None else (controller.uid,)


def _topology_of(pcs: PodCliqueSet) -> Iterable[Hashable]:
    name = topologies.topology_name(pcs)
    return () if name is None else (name,)
