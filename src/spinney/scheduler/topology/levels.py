"""A topology as an administrator defines it: node labels from coarse to fine."""

import msgspec

from spinney.api import kai
from spinney.api.topology_binding import ClusterTopologyBinding


class TopologyLevels(msgspec.Struct, frozen=True):
    """Levels by node label key, coarse to fine; ``aliases`` are other names of levels."""

    name: str
    levels: tuple[str, ...]
    aliases: dict[str, str] = msgspec.field(default_factory=dict)
    kind: str = ""
    """The kind of object that defines it."""

    def depth(self, level: str) -> int | None:
        """Return the place of a level, 0 for the coarsest; ``None`` if there is no such level."""
        key = self.aliases.get(level, level)
        return self.levels.index(key) if key in self.levels else None

    def called(self, key: str) -> str:
        """Return what people call the level of a node label: the name it was given, or the last part of the label."""
        return next((name for name, label in self.aliases.items() if label == key), key.rpartition("/")[2])


def topology_of(found: kai.Topology | ClusterTopologyBinding) -> TopologyLevels:
    """Return the topology an object defines."""
    if isinstance(found, kai.Topology):
        levels = found.spec.levels
        aliases = {level.alias: level.node_label for level in levels if level.alias}
        return TopologyLevels(found.metadata.name, tuple(level.node_label for level in levels), aliases, found.kind)
    return TopologyLevels(
        found.metadata.name,
        tuple(level.key for level in found.spec.levels),
        {level.domain: level.key for level in found.spec.levels},
        found.kind,
    )
