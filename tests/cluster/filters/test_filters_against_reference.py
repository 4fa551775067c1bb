"""Filters over columns say of every node what the per-node rules say."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.core import Node, Pod
from spinney.api.struct import convert
from spinney.cluster.filters import KUBE_FILTERS, Candidate, ClusterView, FilterFramework
from tests.examples import examples

from .reference import RULES, Scene
from .worlds import NAMESPACES, a_node, a_pod, a_view, a_world, nodes_of, place, pods_of

SEEDS = st.integers(0, 2**32 - 1)
FILTERS = {rule.name: rule for rule in KUBE_FILTERS}


def refused(view: ClusterView, name: str, pod: Pod) -> dict[str, set[str]]:
    """Return the reasons a filter gives, by node."""
    found: dict[str, set[str]] = {node: set() for node in view.table}
    for refusal in FILTERS[name].refuse(view, Candidate.of(pod, view.table.axis)):
        for node in view.table:
            if refusal.nodes[view.table.row(node)]:
                found[node].add(refusal.reason)
    return found


def expected(scene: Scene, name: str, pod: Pod) -> dict[str, set[str]]:
    """Return the reasons the per-node rule gives, by node."""
    return {node: set(RULES[name](scene, pod, scene.nodes[node])) for node in scene.nodes}


def a_scene(nodes: list[Node], placed: list[Pod]) -> Scene:
    """Return the cluster for the per-node rules."""
    return Scene({node.metadata.name: node for node in nodes}, tuple(placed), NAMESPACES)


@pytest.mark.parametrize("name", sorted(RULES))
@given(SEEDS)
@settings(max_examples=examples(100), deadline=None)
def test_columns_agree_with_nodes(name: str, seed: int) -> None:
    """Each filter refuses the same nodes for the same reasons as its per-node rule, on any cluster."""
    random = Random(seed)
    world = a_world(random)
    nodes, placed = nodes_of(world), pods_of(world.placed)
    view, scene = a_view(nodes, placed), a_scene(nodes, placed)
    for pod in pods_of(world.pending):
        assert refused(view, name, pod) == expected(scene, name, pod)


@given(SEEDS)
@settings(max_examples=examples(100), deadline=None)
def test_counts_follow_pods_and_nodes_that_come_and_go(seed: int) -> None:
    """After any changes of pods and nodes the filters answer as if the cluster had been built that way."""
    random = Random(seed)
    world = a_world(random)
    nodes = {node.metadata.name: node for node in nodes_of(world)}
    placed = {(pod.metadata.namespace or "", pod.metadata.name): pod for pod in pods_of(world.placed)}
    view = a_view(list(nodes.values()), list(placed.values()))
    pending = pods_of(world.pending)
    for step in range(4):
        for pod in pending:
            for name in sorted(RULES):
                refused(view, name, pod)  # fills the caches that the change must then reach
        if random.random() < 0.5:
            key = random.choice(sorted(nodes))
            changed = convert(Node, {**a_node(random, 0), "metadata": {"name": key, "labels": {"rack": "r9"}}})
            nodes[key] = changed
            view.table.put(changed)
        if placed and random.random() < 0.5:
            key_of_pod = random.choice(sorted(placed))
            view.pods.remove(key_of_pod)
            del placed[key_of_pod]
        manifest = a_pod(random, f"late-{step}")
        manifest["spec"]["nodeName"] = random.choice(sorted(nodes))
        late = convert(Pod, manifest)
        placed[late.metadata.namespace or "", late.metadata.name] = late
        view.pods.place(late, view.table.row(late.spec.node_name))
        scene = a_scene(list(nodes.values()), list(placed.values()))
        for pod in pending:
            for name in sorted(set(RULES) - {"NodeResourcesFit"}):  # the ledger is the table's, tested there
                assert refused(view, name, pod) == expected(scene, name, pod), name


@given(SEEDS)
@settings(max_examples=examples(100), deadline=None)
def test_trying_a_placement_leaves_no_trace(seed: int) -> None:
    """A pod placed and removed again, on the view or on a fork of it, leaves every answer as it was."""
    random = Random(seed)
    world = a_world(random)
    view = a_view(nodes_of(world), pods_of(world.placed))
    pending = pods_of(world.pending)
    before = {(name, i): refused(view, name, pod) for name in RULES for i, pod in enumerate(pending)}
    node = world.nodes[0]["metadata"]["name"]
    tried = msgspec.structs.replace(pending[0], spec=msgspec.structs.replace(pending[0].spec, node_name=node))
    place(view.fork(), tried)
    view.pods.place(tried, view.table.row(node))
    for name in RULES:
        refused(view, name, pending[-1])
    view.pods.remove((tried.metadata.namespace or "", tried.metadata.name))
    after = {(name, i): refused(view, name, pod) for name in RULES for i, pod in enumerate(pending)}
    assert after == before


@given(SEEDS)
@settings(max_examples=examples(100), deadline=None)
def test_a_node_counts_for_its_first_refusal(seed: int) -> None:
    """The framework passes exactly the nodes that no rule refuses, in one pass or thoroughly."""
    random = Random(seed)
    world = a_world(random)
    nodes, placed = nodes_of(world), pods_of(world.placed)
    view, scene = a_view(nodes, placed), a_scene(nodes, placed)
    framework = FilterFramework()
    for pod in pods_of(world.pending):
        passing = {n for n in scene.nodes if not any(RULES[name](scene, pod, scene.nodes[n]) for name in RULES)}
        for result in (framework.feasible(view, pod), framework.feasible(view, pod, thorough=True)):
            assert {node for node in view.table if result.mask[view.table.row(node)]} == passing
