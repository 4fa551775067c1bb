"""Topology: one domain where it must, the smallest where it can."""

from dataclasses import replace

import pytest

from spinney.gangs.tree import GangKey, GroupSet, PodSet, TopologyConstraintInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, ZONE, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang


def a_fabric(racks: dict[str, tuple[str, list[int]]]) -> Inventory:
    """Return an inventory of racks: zone and GPUs of each node."""
    nodes = [
        a_node(f"{rack}-{number}", gpus=gpus, labels={ZONE: zone, RACK: rack})
        for rack, (zone, sizes) in racks.items()
        for number, gpus in enumerate(sizes)
    ]
    inventory = an_inventory(*nodes)
    inventory.put_topology(TopologyLevels("fabric", (ZONE, RACK), {"rack": RACK}))
    return inventory


def racks_used(inventory: Inventory, count: int, **levels: str) -> set[str]:
    """Return the racks that a gang of one-GPU pods ends up in."""
    constraint = TopologyConstraintInfo("fabric", **levels)
    pods = [a_pod(f"p{number}", gang="job", gpus=1) for number in range(count)]
    put_gang(inventory, a_gang("job", minimum=count, topology=constraint), pods)
    return {node.rpartition("-")[0] for node in placements(a_scheduler(inventory)).values()}


def test_a_required_level_holds_the_whole_gang() -> None:
    """The gang goes to the one rack that has room for all of it."""
    inventory = a_fabric({"r1": ("z", [2, 1]), "r2": ("z", [2, 2])})

    assert racks_used(inventory, 4, required=RACK) == {"r2"}


def test_a_required_level_that_no_domain_meets_keeps_the_gang_waiting() -> None:
    """Four pods fit the cluster but no rack; the reason names each rack and how many it holds."""
    inventory = a_fabric({"r1": ("z", [2]), "r2": ("z", [3])})
    pods = [a_pod(f"p{number}", gang="job", gpus=1) for number in range(4)]
    put_gang(inventory, a_gang("job", minimum=4, topology=TopologyConstraintInfo("fabric", required=RACK)), pods)
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    messages = "\n".join(error.message for error in result.unschedulable[0].errors)
    assert "node-group z.r1: can allocate only 2 of 4 required pods" in messages
    assert "node-group z.r2: can allocate only 3 of 4 required pods" in messages


def test_the_tightest_domain_that_fits_is_used() -> None:
    """Large domains stay free for large gangs."""
    inventory = a_fabric({"r1": ("z", [8, 8]), "r2": ("z", [2, 2]), "r3": ("z", [4, 4])})

    assert racks_used(inventory, 4, required=RACK) == {"r2"}


def test_a_preferred_level_is_given_up_where_nothing_fits() -> None:
    """A gang too large for any rack spreads over its zone, starting where there is most room."""
    inventory = a_fabric({"r1": ("z1", [2, 2]), "r2": ("z1", [3, 3]), "r3": ("z2", [1])})

    assert racks_used(inventory, 8, required=ZONE, preferred=RACK) == {"r1", "r2"}


def test_a_level_may_be_named_by_its_alias() -> None:
    """An alias works wherever a level's label does."""
    inventory = a_fabric({"r1": ("z", [2]), "r2": ("z", [4])})

    assert racks_used(inventory, 3, required="rack") == {"r2"}


def test_equal_rack_names_in_different_zones_are_different_racks() -> None:
    """A domain is its path from the top, not its own label alone."""
    inventory = an_inventory(
        a_node("a", gpus=2, labels={ZONE: "z1", RACK: "r"}), a_node("b", gpus=2, labels={ZONE: "z2", RACK: "r"})
    )
    inventory.put_topology(TopologyLevels("fabric", (ZONE, RACK)))

    assert racks_used(inventory, 3, required=RACK) == set()


def test_nodes_without_all_labels_take_no_constrained_gang() -> None:
    """A node that lacks a level's label is in no domain."""
    inventory = an_inventory(a_node("a", gpus=8, labels={ZONE: "z"}))
    inventory.put_topology(TopologyLevels("fabric", (ZONE, RACK)))

    assert racks_used(inventory, 1, preferred=RACK) == set()


@pytest.mark.parametrize(
    ("topology", "levels", "complaint"),
    [
        ("nowhere", {"required": RACK}, "topology nowhere"),
        ("fabric", {"required": "example.com/row"}, "no level 'example.com/row'"),
        ("fabric", {"required": RACK, "preferred": ZONE}, "coarser"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_named(topology: str, levels: dict[str, str], complaint: str) -> None:
    """The gang waits, and the reason says what is wrong with its constraint."""
    inventory = a_fabric({"r1": ("z", [8])})
    constraint = TopologyConstraintInfo(topology, **levels)
    put_gang(inventory, a_gang("job", topology=constraint), [a_pod("p", gang="job", gpus=1)])
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    assert complaint in result.unschedulable[0].message


def test_a_growing_gang_stays_in_its_domain() -> None:
    """Pods added to a running gang go to the rack its pods are in, or wait."""
    inventory = a_fabric({"r1": ("z", [2, 2]), "r2": ("z", [8])})
    constraint = TopologyConstraintInfo("fabric", required=RACK)
    pods = [a_pod("old", gang="job", gpus=1, node="r1-0")]
    pods += [a_pod(f"new{number}", gang="job", gpus=1) for number in range(5)]
    put_gang(inventory, a_gang("job", minimum=1, topology=constraint), pods)
    nodes = placements(a_scheduler(inventory))

    assert len(nodes) == 3
    assert {node.rpartition("-")[0] for node in nodes.values()} == {"r1"}


def test_levels_nest() -> None:
    """The gang stays in one zone, and each replica of it in one rack."""
    inventory = a_fabric(
        {"r1": ("z1", [3]), "r2": ("z1", [2]), "r3": ("z2", [3]), "r4": ("z2", [3]), "r5": ("z3", [2, 2])}
    )
    replicas = tuple(
        GroupSet(
            f"replica{number}", (PodSet(f"pods{number}", 3),), topology=TopologyConstraintInfo("fabric", required=RACK)
        )
        for number in range(2)
    )
    root = GroupSet("", replicas, topology=TopologyConstraintInfo("fabric", required=ZONE))
    pods = [
        a_pod(f"p{number}-{member}", gang="job", pod_set=f"pods{number}", gpus=1)
        for number in range(2)
        for member in range(3)
    ]
    put_gang(inventory, a_gang("job", root=root), pods)
    nodes = placements(a_scheduler(inventory))

    assert {node[:2] for name, node in nodes.items() if name.startswith("p0")} == {"r3"}
    assert {node[:2] for name, node in nodes.items() if name.startswith("p1")} == {"r4"}


def test_a_scaled_gang_joins_the_domain_of_its_base() -> None:
    """A gang anchored to another goes where that one is, though elsewhere there is more room."""
    inventory = a_fabric({"r1": ("z1", [8]), "r2": ("z2", [2])})
    constraint = TopologyConstraintInfo("fabric", required=ZONE)
    base = a_gang("base", topology=constraint)
    put_gang(inventory, base, [a_pod("b", gang="base", gpus=1, node="r1-0")])
    scaled = a_gang("scaled", topology=constraint)
    anchored = type(scaled)(
        key=scaled.key, root=scaled.root, uid="scaled", queue=scaled.queue, anchor=GangKey("kai", "team", "base")
    )
    put_gang(inventory, anchored, [a_pod("s", gang="scaled", gpus=1)])

    assert placements(a_scheduler(inventory)) == {"s": "r1-0"}


def test_a_scaled_gang_without_room_holds_up_none_of_another_base() -> None:
    """Of two scaled gangs that ask for the same, the one whose base has room beside it is placed."""
    inventory = a_fabric({"r1": ("z", [1]), "r2": ("z", [2])})
    constraint = TopologyConstraintInfo("fabric", required=RACK)
    for rack in ("r1", "r2"):
        base = a_gang(f"base-{rack}", topology=constraint)
        put_gang(inventory, base, [a_pod(f"b-{rack}", gang=base.name, gpus=1, node=f"{rack}-0")])
        scaled = replace(a_gang(f"scaled-{rack}", topology=constraint), anchor=base.key)
        put_gang(inventory, scaled, [a_pod(f"s-{rack}", gang=scaled.name, gpus=1)])

    assert placements(a_scheduler(inventory)) == {"s-r2": "r2-0"}


def test_levels_without_a_topology_object_are_label_keys() -> None:
    """A constraint that names no topology is taken by its keys."""
    inventory = an_inventory(*(a_node(name, gpus=2, labels={"row": row}) for name, row in (("a", "1"), ("b", "2"))))
    pods = [a_pod(f"p{number}", gang="job", gpus=1) for number in range(2)]
    put_gang(inventory, a_gang("job", minimum=2, topology=TopologyConstraintInfo("", required="row")), pods)

    assert set(placements(a_scheduler(inventory)).values()) == {"a"}
