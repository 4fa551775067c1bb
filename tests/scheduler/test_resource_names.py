"""Pods may name any resource they like: what no node offers keeps them waiting, and nobody else."""

from collections.abc import Mapping

from msgspec.structs import replace

from spinney.api.core import Node, Pod, ResourceRequirements
from spinney.scheduler.framework.results import CycleResult
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang, put_job

EXTRAS = {f"example.com/r{number}": "1" for number in range(20)}


def asking(pod: Pod, amounts: Mapping[str, str]) -> Pod:
    """Return the pod with further requests."""
    (container,) = pod.spec.containers
    wanted = ResourceRequirements(requests={**container.resources.requests, **amounts})
    return replace(pod, spec=replace(pod.spec, containers=(replace(container, resources=wanted),)))


def offering(node: Node, amounts: Mapping[str, str]) -> Node:
    """Return the node with further resources."""
    return replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **amounts}))


def names(result: CycleResult) -> set[str]:
    """Return the pods that were given a node."""
    return {bind.pod.name for bind in result.binds}


def test_resources_that_no_node_offers_keep_only_their_pod_waiting() -> None:
    """A gang that names twenty unknown resources waits and says which; the gang beside it is placed."""
    inventory = an_inventory(a_node("n1"))
    put_gang(inventory, a_gang("odd"), [asking(a_pod("odd-0", gang="odd"), EXTRAS)])
    put_job(inventory, "plain", 2)

    result = a_scheduler(inventory).run_cycle()

    assert names(result) == {"plain-0", "plain-1"}
    (refused,) = result.unschedulable
    assert refused.explanation is not None
    assert "example.com/r0" in str(refused.errors) + str(refused.explanation)


def test_a_name_that_comes_while_a_session_is_open_does_not_reach_it() -> None:
    """A pod or a node that brings new names during a cycle is decided about in the next one."""
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "plain", 4)
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()

    inventory.apply(offering(a_node("n2"), EXTRAS))
    inventory.apply(asking(a_pod("late"), EXTRAS))
    scheduler.run_actions(session)

    assert len(session.binds) == 4
    assert session.nodes.table.idle.shape[1] == session.nodes.table.axis.width
    assert names(scheduler.run_cycle()) >= {"late"}


def test_a_pod_is_placed_once_a_node_offers_what_it_named_first() -> None:
    """A pod that waits for an unknown resource is counted anew when a node brings it."""
    inventory = an_inventory(a_node("n1"))
    put_gang(inventory, a_gang("early"), [asking(a_pod("early-0", gang="early"), {"amd.com/gpu": "2"})])
    running = asking(a_pod("running", node="n1"), {"amd.com/gpu": "3"})
    inventory.apply(running)
    scheduler = a_scheduler(inventory)

    assert names(scheduler.run_cycle()) == set()
    inventory.apply(offering(a_node("n1"), {"amd.com/gpu": "4"}))
    assert names(scheduler.run_cycle()) == set(), "three of the four are taken"
    inventory.delete(running)
    assert names(scheduler.run_cycle()) == {"early-0"}


def test_a_node_that_comes_back_with_more_has_each_pod_booked_once() -> None:
    """A pod whose node was gone is counted once when the node is back and offers for the first time what it asked."""
    inventory = an_inventory(a_node("n1"))
    running = asking(a_pod("running", node="n1"), {"amd.com/gpu": "3"})
    inventory.apply(running)
    inventory.delete(a_node("n1"))
    inventory.apply(offering(a_node("n1"), {"amd.com/gpu": "4"}))

    table = inventory.cluster.table
    assert table.axis.amounts(table.used[table.row("n1")]) == {"cpu": 1000, "pods": 1, "amd.com/gpu": 3}
    inventory.delete(running)
    assert not table.used.any()
