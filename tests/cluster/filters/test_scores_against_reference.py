"""Scores over columns give every node what the per-node rules give it."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.core import Node, Pod
from spinney.cluster.filters import Candidate
from spinney.cluster.scores import KUBE_SCORES, ScoreFramework
from tests.examples import examples

from . import reference_scores
from .reference import Scene
from .worlds import NAMESPACES, a_view, a_world, nodes_of, pods_of

SEEDS = st.integers(0, 2**32 - 1)
Rule = Callable[[Scene, Pod, list[Node]], dict[str, int] | None]

SCORES = {score.name: score for score in KUBE_SCORES}
RULES: dict[str, Rule] = {
    "TaintToleration": reference_scores.taint_toleration,
    "NodeAffinity": reference_scores.node_affinity,
    "NodeResourcesFit": reference_scores.least_allocated,
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
@settings(max_examples=examples(100), deadline=None)
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
