"""The placement score of a gang: how near its constraints came to the levels they prefer.

Each constraint scores 1 if its pods lie in one domain of the level it prefers (or, where it prefers none, requires),
and less with every level they had to fall back: with a preferred level that is the third of three, pods in one domain
of the second score 2/3, of the first 1/3, and in none 0. The score of the gang is the mean over its constraints,
weighted by pods; without constraints it is 1.
"""

from collections.abc import Callable, Mapping, Sequence

from spinney.gangs.tree import GroupSet, TopologyConstraintInfo
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.topology.resolving import Topologies

Labels = Mapping[str, str]


def placement_score(root: GroupSet, nodes_of: Callable[[str], Sequence[Labels]], topologies: Topologies) -> float:
    """Return the score of a placed gang; ``nodes_of`` gives the labels of the nodes of a pod set's placed pods."""
    scores: list[tuple[float, int]] = []
    for part in root.parts():
        if part.topology is not None:
            nodes = [labels for pod_set in part.pod_sets() for labels in nodes_of(pod_set.name)]
            topology = topologies.resolve(part.topology)
            if nodes and topology is not None:
                scores.append((_score(part.topology, topology, nodes), len(nodes)))
    pods = sum(count for _, count in scores)
    return round(sum(score * count for score, count in scores) / pods, 4) if pods else 1.0


def _score(constraint: TopologyConstraintInfo, topology: TopologyLevels, nodes: Sequence[Labels]) -> float:
    wanted = topology.depth(constraint.preferred or constraint.required)
    if wanted is None:
        return 1.0
    shared = 0
    for level in topology.levels[: wanted + 1]:
        values = {labels.get(level) for labels in nodes}
        if len(values) > 1 or None in values:
            break
        shared += 1
    return shared / (wanted + 1)
