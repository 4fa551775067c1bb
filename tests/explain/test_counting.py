"""Counting what filters refused."""

import numpy as np

from spinney.explain.counting import Room, pod_report

from .builders import nodes_named, refused

NODES = nodes_named("n3", "n1", "n2", "n0")


def test_node_counts_for_first_filter_only() -> None:
    """A node that two filters refuse is counted for the one that comes first."""
    report = pod_report(
        "default/p",
        NODES,
        [refused("TaintToleration", "tainted", "xx.."), refused("NodeAffinity", "unmatched", ".xx.")],
    )
    assert [(found.filter, found.nodes) for found in report.filters] == [("TaintToleration", 2), ("NodeAffinity", 1)]
    assert report.feasible_nodes == 1


def test_node_counts_for_every_reason_of_that_filter() -> None:
    """A node that lacks two resources counts under both, once for the filter, and is hopeless if either is."""
    report = pod_report(
        "default/p",
        NODES,
        [
            refused("NodeResourcesFit", "Insufficient cpu", "xx.."),
            refused("NodeResourcesFit", "Insufficient memory", "x..x", unresolvable="x..."),
        ],
    )
    (found,) = report.filters
    assert found.nodes == 3
    assert [(reason.reason, reason.nodes, reason.unresolvable) for reason in found.reasons] == [
        ("Insufficient cpu", 2, 1),
        ("Insufficient memory", 2, 1),
    ]


def test_examples_are_first_nodes_by_name() -> None:
    """Examples name the first nodes in the order of names, whatever their rows are."""
    report = pod_report("default/p", NODES, [refused("NodeName", "other", "xxxx")])
    assert report.filters[0].reasons[0].examples == ("n0", "n1", "n2")


def test_smallest_change_is_on_the_node_that_lacks_least() -> None:
    """Among nodes that only lack resources the remedy names the one that lacks least, and how much."""
    room = Room(
        free=np.array([[1], [5], [7], [8]], dtype=np.int64),
        request=np.array([8], dtype=np.int64),
        resources=["nvidia.com/gpu"],
    )
    report = pod_report(
        "default/p",
        NODES,
        [
            refused("NodeUnschedulable", "cordoned", "..xx"),
            refused("NodeResourcesFit", "Insufficient nvidia.com/gpu", "xxx."),
        ],
        room=room,
    )
    assert [(found.text, found.nodes) for found in report.obstacles] == [
        ("n1 lacks 3 GPUs", 2),
        ("n0 is cordoned", 1),
    ]


def test_node_too_small_even_when_empty_is_not_near() -> None:
    """Room is not called the only obstacle on a node whose capacity is below the request."""
    room = Room(free=np.zeros((4, 1), dtype=np.int64), request=np.array([9], dtype=np.int64), resources=["cpu"])
    report = pod_report(
        "default/p",
        NODES,
        [refused("NodeResourcesFit", "Insufficient cpu", "xxxx", unresolvable="xxxx")],
        room=room,
    )
    assert report.obstacles == ()


def test_a_claim_that_nobody_made_is_named() -> None:
    """A pod refused because it names something that does not exist is told so."""
    report = pod_report("default/p", NODES, [], pre_filter='persistentvolumeclaim "data" not found')
    assert [found.text for found in report.obstacles] == ['persistentvolumeclaim "data" does not exist']
