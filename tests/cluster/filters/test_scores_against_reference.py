"""Scores over columns give every node what the per-node rules give it."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.core import Node, Pod
from spinney.api.struct import convert
from spinney.cluster.filters import Candidate
from spinney.cluster.scores import (
    KUBE_SCORES,
    ScoreFramework,
    ScoreRule,
    ShapePoint,
    WeightedResource,
    balanced_allocation,
    most_allocated,
)
from spinney.cluster.scores import requested_to_capacity_ratio as ratio

from . import reference_scores
from .reference import Scene
from .worlds import NAMESPACES, a_view, a_world, nodes_of, pods_of

SEEDS = st.integers(0, 2**32 - 1)
Rule = Callable[[Scene, Pod, list[Node]], dict[str, int] | None]

SCORES = {score.name: score for score in KUBE_SCORES} | {"MostAllocated": ScoreRule("MostAllocated", most_allocated())}
RULES: dict[str, Rule] = {
    "TaintToleration": reference_scores.taint_toleration,
    "NodeAffinity": reference_scores.node_affinity,
    "NodeResourcesFit": reference_scores.least_allocated,
    "MostAllocated": reference_scores.most_allocated,
    "PodTopologySpread": reference_scores.topology_spread,
    "InterPodAffinity": reference_scores.inter_pod_affinity,
    "NodeResourcesBalancedAllocation": reference_scores.balanced_allocation,
    "ImageLocality": reference_scores.image_locality,
}


def test_every_score_has_a_reference() -> None:
    """No score goes unchecked."""
    assert set(SCORES) == set(RULES)


@pytest.mark.parametrize("name", sorted(RULES))
@given(SEEDS)
@settings(max_examples=100, deadline=None)
def test_vectors_agree_with_nodes(name: str, seed: int) -> None:
    """Each score gives the same to every feasible node as its per-node rule, on any cluster."""
    random = Random(seed)
    world = a_world(random)
    for node in world.nodes:
        if random.random() < 0.5:
            untagged = {"names": None, "sizeBytes": 1}  # as a kubelet writes an image that lost its last tag
            node["status"]["images"] = [untagged, {"names": ["registry.example/app:1"], "sizeBytes": 700 * 1024 * 1024}]
    nodes, placed = nodes_of(world), pods_of(world.placed)
    view, scene = a_view(nodes, placed), Scene({n.metadata.name: n for n in nodes}, tuple(placed), NAMESPACES)
    feasible = [node for node in nodes if random.random() < 0.8]
    mask = np.zeros(view.table.capacity, dtype=np.bool_)
    mask[[view.table.row(node.metadata.name) for node in feasible]] = True
    for pod in pods_of(world.pending):
        wanted = RULES[name](scene, pod, feasible)
        found = SCORES[name].score(view, Candidate.of(pod, view.table.axis), mask)
        if not feasible:
            continue
        if wanted is None:
            assert found is None
        else:
            assert found is not None
            assert {node: int(found[view.table.row(node)]) for node in wanted} == wanted


def test_ratio_follows_its_line() -> None:
    """RequestedToCapacityRatio reads the utilisation of a node off the broken line."""
    world = a_world(Random(0))
    node = world.nodes[0]
    node["status"]["allocatable"] = {"cpu": "10", "memory": "10Gi", "pods": "110"}
    view = a_view(nodes_of(world)[:1], [])
    (pod, *_) = pods_of(world.pending)
    candidate = Candidate.of(pod, view.table.axis)
    cpu, memory = candidate.nonzero_requests
    shape = [ShapePoint(0, 0), ShapePoint(50, 10), ShapePoint(100, 0)]
    parts = [used * 100 // whole for used, whole in ((cpu, 10_000), (memory, 10 * 2**30))]
    points = [100 * part // 50 if part <= 50 else 100 - 100 * (part - 50) // 50 for part in parts]
    counted = [point for point in points if point > 0]
    found = ratio(shape)(view, candidate, view.table.alive)
    assert found is not None
    row = view.table.row(node["metadata"]["name"])
    assert found[row] == int(sum(counted) / max(len(counted), 1) + 0.5)


def test_ties_go_to_the_first_name() -> None:
    """Nodes of equal score are ranked by name, whatever order they came in."""
    world = a_world(Random(1))
    template = world.nodes[0]
    for name in ("c", "a", "b"):
        world.nodes.append({**template, "metadata": {"name": name, "labels": {}}})
    nodes = [node for node in nodes_of(world) if node.metadata.name in "abc"]
    view = a_view(nodes, [])
    ranking = ScoreFramework().ranking(view, pods_of(world.pending)[0], view.table.alive)
    assert [view.table.names[row] for row in ranking] == ["a", "b", "c"]


def test_balance_over_three_resources() -> None:
    """With three resources the balance is their standard deviation, before and after."""
    manifest = {"requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "4"}}
    pod = convert(Pod, {"spec": {"containers": [{"name": "main", "resources": manifest}]}})
    offered = {"cpu": "10", "memory": "10Gi", "nvidia.com/gpu": "8", "pods": "10"}
    view = a_view([convert(Node, {"metadata": {"name": "n"}, "status": {"allocatable": offered}})], [])
    resources = [WeightedResource("cpu"), WeightedResource("memory"), WeightedResource("nvidia.com/gpu")]
    found = balanced_allocation(resources)(view, Candidate.of(pod, view.table.axis), view.table.alive)
    assert found is not None
    after = int((1 - np.std([0.2, 0.1, 0.5])) * 100)
    assert found[view.table.row("n")] == 50 + (50 + after - 100) // 2
