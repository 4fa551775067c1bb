"""Where pods of a gang went, and what their scheduler was told about it."""

from dataclasses import dataclass, field

from spinney.api import kai
from spinney.api.core import Node, Pod
from spinney.api.podgang import GangTopologyConstraint
from tests.e2e.floor import TOPOLOGY
from tests.e2e.harness import Stage

Level = tuple[str, str]
"""The node labels of the required and of the preferred level; empty where there is none."""

FREE: Level = ("", "")


def required(key: str) -> Level:
    """Return a level that must hold."""
    return key, ""


def preferred(key: str) -> Level:
    """Return a level that should hold."""
    return "", key


@dataclass(frozen=True)
class Leaf:
    """A group of pods in a gang: its minimum, its own level, and the replica of a scaling group it is packed with."""

    minimum: int
    level: Level = FREE
    parent: str | None = None


@dataclass(frozen=True)
class Tree:
    """What a gang asks of its scheduler."""

    leaves: dict[str, Leaf]
    top: Level = FREE
    parents: dict[str, Level] = field(default_factory=dict)
    topology: str = TOPOLOGY


def domains(stage: Stage, key: str, *cliques: str) -> set[str]:
    """Return the values of a node label under the pods of some PodCliques, or under all pods."""
    nodes = stage.chronicle.all(Node)
    return {nodes[pod.spec.node_name].metadata.labels[key] for pod in stage.bound(*cliques)}


def expect_together(stage: Stage, key: str, *cliques: str) -> None:
    """Check that the pods of some PodCliques, or all pods, are in one domain."""
    pods: list[Pod] = stage.bound(*cliques)
    assert pods
    found = domains(stage, key, *cliques)
    assert len(found) == 1, f"{[pod.metadata.name for pod in pods]} are in several domains of {key}: {sorted(found)}"


async def expect_tree(stage: Stage, gang: str, tree: Tree) -> None:
    """Check the constraints of a PodGang and, where the backend makes one, of its KAI PodGroup."""
    spec = stage.gang(gang).spec
    parents = {
        name: config.name for config in spec.topology_constraint_group_configs for name in config.pod_group_names
    }
    assert _level(spec.topology_constraint) == tree.top
    configs = spec.topology_constraint_group_configs
    assert {each.name: _level(each.topology_constraint) for each in configs} == tree.parents
    found = {
        group.name: Leaf(group.min_replicas, _level(group.topology_constraint), parents.get(group.name))
        for group in spec.pod_groups
    }
    assert found == tree.leaves
    if stage.backend.kai_objects:
        await _expect_pod_group(stage, gang, tree)


async def _expect_pod_group(stage: Stage, gang: str, tree: Tree) -> None:
    group = await stage.client.get(kai.POD_GROUP, gang, stage.namespace, type=kai.PodGroup)
    assert _kai_level(group.spec.topology_constraint, tree) == tree.top
    leaves = {each.name: each for each in group.spec.sub_groups if each.name in tree.leaves}
    inner = {each.name: each for each in group.spec.sub_groups if each.name not in tree.leaves}
    assert {name: _kai_level(each.topology_constraint, tree) for name, each in inner.items()} == tree.parents
    for name, each in inner.items():
        assert each.min_sub_group == sum(leaf.parent == name for leaf in tree.leaves.values())
    assert {
        name: Leaf(each.min_member or 0, _kai_level(each.topology_constraint, tree), each.parent)
        for name, each in leaves.items()
    } == tree.leaves
    assert group.spec.min_member == sum(leaf.minimum for leaf in tree.leaves.values())


def _level(constraint: GangTopologyConstraint | None) -> Level:
    pack = constraint.pack_constraint if constraint is not None else None
    return FREE if pack is None else (pack.required or "", pack.preferred or "")


def _kai_level(constraint: kai.GroupTopologyConstraint | None, tree: Tree) -> Level:
    if constraint is None:
        return FREE
    assert constraint.topology == tree.topology
    return constraint.required_topology_level or "", constraint.preferred_topology_level or ""
