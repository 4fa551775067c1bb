"""A topology constraint means the same to whoever reads it, and objects of two kinds do not take each other's place."""

from spinney.api import kai
from spinney.api.meta import ObjectMeta
from spinney.api.topology_binding import (
    CLUSTER_TOPOLOGY_BINDING,
    ClusterTopologyBinding,
    ClusterTopologyBindingSpec,
    TopologyLevel,
)
from spinney.gangs.tree import DEFAULT_POD_SET, PodSet, TopologyConstraintInfo, single
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.scheduler.topology.resolving import Topologies
from spinney.scheduler.topology.scoring import placement_score
from tests.scheduler.building import RACK, ZONE

NAME = "fabric"
OF_GROVE = TopologyConstraintInfo(NAME, required=RACK, kind=CLUSTER_TOPOLOGY_BINDING.kind)
OF_KAI = TopologyConstraintInfo(NAME, required=RACK, kind=kai.TOPOLOGY.kind)


def a_binding() -> ClusterTopologyBinding:
    levels = (TopologyLevel(domain="zone", key=ZONE), TopologyLevel(domain="rack", key=RACK))
    return ClusterTopologyBinding(metadata=ObjectMeta(name=NAME), spec=ClusterTopologyBindingSpec(levels=levels))


def a_kai_topology() -> kai.Topology:
    return kai.Topology(
        metadata=ObjectMeta(name=NAME), spec=kai.TopologySpec(levels=(kai.TopologyLevel(node_label=RACK),))
    )


def levels(inventory: Inventory, constraint: TopologyConstraintInfo) -> tuple[str, ...] | None:
    found = inventory.snapshot().topologies.resolve(constraint)
    return found.levels if found is not None else None


def test_topologies_of_two_kinds_may_share_a_name() -> None:
    """Each constraint finds the topology of its own kind, and deleting one leaves the other."""
    inventory = Inventory()
    inventory.apply(a_binding())
    inventory.apply(a_kai_topology())
    assert (levels(inventory, OF_GROVE), levels(inventory, OF_KAI)) == ((ZONE, RACK), (RACK,))

    inventory.delete(a_kai_topology())
    assert (levels(inventory, OF_GROVE), levels(inventory, OF_KAI)) == ((ZONE, RACK), (ZONE, RACK))
    inventory.delete(a_binding())
    assert (levels(inventory, OF_GROVE), levels(inventory, OF_KAI)) == (None, None)


def test_a_constraint_without_a_name_means_the_first_topology_with_its_levels() -> None:
    """A native PodGroup names only a label: a topology that has it tells racks of two zones apart."""
    topologies = Topologies([TopologyLevels("b", (ZONE, RACK)), TopologyLevels("a", (ZONE,))])
    assert topologies.required(TopologyConstraintInfo("", required=RACK)) == (TopologyLevels("b", (ZONE, RACK)), 1)
    assert topologies.required(TopologyConstraintInfo("", required="block")) == (TopologyLevels("", ("block",)), 0)
    assert topologies.required(TopologyConstraintInfo("", preferred=RACK)) is None


def test_a_constraint_without_a_name_is_scored() -> None:
    """Pods in two racks of one zone come half as near as their group would like."""
    constraint = TopologyConstraintInfo("", preferred=RACK)
    root = single(PodSet(DEFAULT_POD_SET, 2), topology=constraint)
    nodes = [{ZONE: "z", RACK: "r0"}, {ZONE: "z", RACK: "r1"}]
    assert placement_score(root, lambda _: nodes, Topologies([TopologyLevels("dc", (ZONE, RACK))])) == 0.5
