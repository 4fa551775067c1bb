"""How far a set may grow: scaling groups and PodCliques are scaled by others, without admission being asked.

Admission bounds what a PodCliqueSet asks for (:mod:`spinney.api.schema.validate_size`). Its scaling groups and
PodCliques have replicas of their own, which autoscalers and users change. While the set with all of them is within its
limits they get what they ask for. Otherwise nothing grows beyond its template or what is there already; nothing is
taken away.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spinney.api import labels as marks
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.schema.validate_size import Size, SizeLimits, copies_of_group, pods_of_clique, size_of
from spinney.kube.cache import Change
from spinney.kube.keys import Key, key_of
from spinney.operator.caches import BY_SCALING_GROUP, BY_SET, Caches
from spinney.operator.desired import names
from spinney.operator.desired.layout import CliquePlace, Layout
from spinney.operator.status.last_errors import ReconcileFault
from spinney.operator.status.podcliquescalinggroup import by_replica


class TooLarge(ReconcileFault):
    """A set would exceed the limits on its pods or gangs."""


@dataclass
class _Sum:
    """How many objects were made from one template, and the replicas they ask for together. Mutable."""

    count: int = 0
    replicas: int = 0

    def add(self, replicas: int, sign: int) -> None:
        self.count += sign
        self.replicas += sign * replicas


class Growth:
    """Grants replicas to what exists of each set. Mutable: keeps count of what is asked for, event by event."""

    def __init__(self, caches: Caches, limits: SizeLimits) -> None:
        self._caches = caches
        self._limits = limits
        self._cliques: dict[Key, dict[str, _Sum]] = defaultdict(lambda: defaultdict(_Sum))
        self._groups: dict[Key, dict[str, _Sum]] = defaultdict(lambda: defaultdict(_Sum))
        caches.cliques.subscribe(self._saw_clique)
        caches.groups.subscribe(self._saw_group)
        caches.sets.subscribe(self._forget)

    def check(self, layout: Layout) -> None:
        """Raise :class:`TooLarge` for a set that asks for too much itself: scaled, or stored under other limits."""
        size = size_of(layout.pcs.spec)
        if not size.fits(self._limits):
            raise TooLarge(f"nothing more is made: {size.excess(self._limits)}")

    def copies(self, group: PodCliqueScalingGroup, layout: Layout, config: str) -> int:
        """Return how many replicas of a scaling group there may be."""
        asked = group.spec.copies
        template = copies_of_group(layout.group_configs[config])
        if asked <= template or self._size(layout).fits(self._limits):
            return asked
        there = by_replica(self._caches.cliques.index(BY_SCALING_GROUP, key_of(group)))
        return min(asked, max(template, 1 + max(there, default=-1)))

    def pods(self, clique: PodClique, layout: Layout, place: CliquePlace, *, there: int) -> int:
        """Return how many pods a PodClique may have, ``there`` of which exist."""
        asked, template = clique.spec.replicas or 0, pods_of_clique(place.template)
        if asked <= template or self._size(layout).fits(self._limits):
            return asked
        return min(asked, max(template, there))

    def check_granted(self, asked: int, granted: int, layout: Layout) -> None:
        """Raise :class:`TooLarge` where less was granted than asked for."""
        if granted < asked:
            excess = self._size(layout).excess(self._limits)
            raise TooLarge(f"asks for {asked} replicas and is kept at {granted}: {excess}")

    def live_replicas(self, layout: Layout) -> Mapping[str, int]:
        """Return the replicas granted to a set's scaling groups that exist, by name; each is worked out when asked."""
        return _LiveReplicas(self, self._caches, layout)

    def _size(self, layout: Layout) -> Size:
        """Return what a set comes to with the replicas that its parts ask for; parts not made yet ask as written."""
        key, replicas = Key(layout.pcs.metadata.namespace or "", layout.name), layout.replicas
        cliques, groups = self._cliques.get(key, {}), self._groups.get(key, {})
        pods, gangs = 0, replicas
        for name, template in layout.templates.items():
            found, each = cliques.get(name, _Sum()), pods_of_clique(template)
            if name in layout.groups_of_cliques:
                pods += max(0, found.replicas - found.count * each)  # beyond what its group is counted with
            else:
                pods += found.replicas + max(0, replicas - found.count) * each
        for name, config in layout.group_configs.items():
            found = groups.get(name, _Sum())
            copies = found.replicas + max(0, replicas - found.count) * copies_of_group(config)
            pods += copies * sum(pods_of_clique(layout.templates[clique]) for clique in config.clique_names)
            gangs += max(0, copies - replicas * config.minimum)
        return Size(pods=pods, gangs=gangs)

    def _saw_clique(self, change: Change[PodClique]) -> None:
        for clique, sign in ((change.old, -1), (change.new, 1)):
            if clique is not None:
                part = _template_of(clique)
                self._cliques[_set_of(clique)][part].add(clique.spec.replicas or 0, sign)

    def _saw_group(self, change: Change[PodCliqueScalingGroup]) -> None:
        for group, sign in ((change.old, -1), (change.new, 1)):
            if group is not None:
                part = names.config_name(group.metadata.name, group.metadata.labels)
                self._groups[_set_of(group)][part].add(group.spec.copies, sign)

    def _forget(self, change: Change[PodCliqueSet]) -> None:
        if change.new is None:
            for sums in (self._cliques, self._groups):
                if not any(each.count for each in sums.get(change.key, {}).values()):
                    sums.pop(change.key, None)


class _LiveReplicas(Mapping[str, int]):
    """The replicas of scaling groups: a gang asks for those of one, and a set may have thousands."""

    def __init__(self, growth: Growth, caches: Caches, layout: Layout) -> None:
        self._growth = growth
        self._caches = caches
        self._layout = layout
        self._namespace = layout.pcs.metadata.namespace or ""

    def __getitem__(self, name: str) -> int:
        group = self._caches.groups.get(Key(self._namespace, name))
        if group is None or group.spec.replicas is None or group.metadata.deleting:
            raise KeyError(name)
        config = names.config_name(name, group.metadata.labels)
        if config not in self._layout.group_configs:
            raise KeyError(name)
        return self._growth.copies(group, self._layout, config)

    def __iter__(self) -> Iterator[str]:
        groups = self._caches.groups.index(BY_SET, Key(self._namespace, self._layout.name))
        return (group.metadata.name for group in groups if group.metadata.name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _set_of(part: PodClique | PodCliqueScalingGroup) -> Key:
    return Key(part.metadata.namespace or "", part.metadata.labels.get(marks.PART_OF, ""))


def _template_of(clique: PodClique) -> str:
    """Return the template a PodClique was made from; one whose labels were changed is of none."""
    try:
        return names.template_name(clique.metadata.name, clique.metadata.labels)
    except names.UnknownPodClique:
        return ""
