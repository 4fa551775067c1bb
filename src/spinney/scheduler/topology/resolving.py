"""What a topology constraint means: looked up in one place, for placing, choosing victims, scoring and explaining.

A constraint names a topology and, where its object can mean only one, the kind of it; a KAI Topology and a
ClusterTopologyBinding may share a name. One that names none, as a native PodGroup's, means the first topology by name
that has its levels; failing that, the node labels that it names.
"""

from collections.abc import Iterable, Mapping

from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.topology.levels import TopologyLevels

TopologyKey = tuple[str, str]
"""Kind and name."""


class Topologies:
    """The topologies of one moment. Answers are kept; apart from that it does not change."""

    def __init__(self, topologies: Iterable[TopologyLevels]) -> None:
        ordered = sorted(topologies, key=lambda each: (each.name, each.kind))
        self._by_key: Mapping[TopologyKey, TopologyLevels] = {(each.kind, each.name): each for each in ordered}
        self._by_name: dict[str, TopologyLevels] = {}
        for each in ordered:
            self._by_name.setdefault(each.name, each)
        self._resolved: dict[TopologyConstraintInfo, TopologyLevels | None] = {}

    @property
    def first(self) -> TopologyLevels | None:
        """Return the first topology by name, where none is named."""
        return next(iter(self._by_key.values()), None)

    def resolve(self, constraint: TopologyConstraintInfo) -> TopologyLevels | None:
        """Return the topology that a constraint means; ``None`` if the one it names does not exist."""
        if constraint not in self._resolved:
            self._resolved[constraint] = self._named(constraint) if constraint.topology else self._having(constraint)
        return self._resolved[constraint]

    def required(self, constraint: TopologyConstraintInfo | None) -> tuple[TopologyLevels, int] | None:
        """Return the topology and the depth of the level that a constraint requires; ``None`` if there is none."""
        if constraint is None or not constraint.required:
            return None
        topology = self.resolve(constraint)
        depth = topology.depth(constraint.required) if topology is not None else None
        return (topology, depth) if topology is not None and depth is not None else None

    def _named(self, constraint: TopologyConstraintInfo) -> TopologyLevels | None:
        found = self._by_key.get((constraint.kind, constraint.topology))
        return found if found is not None else self._by_name.get(constraint.topology)

    def _having(self, constraint: TopologyConstraintInfo) -> TopologyLevels:
        levels = [level for level in (constraint.required, constraint.preferred) if level]
        having = (each for each in self._by_key.values() if all(each.depth(level) is not None for level in levels))
        return next(having, TopologyLevels("", tuple(dict.fromkeys(levels))))
