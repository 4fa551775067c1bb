"""Plugins get the decisions they would get if they were asked about each pod on its own, with what they left for it."""

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from spinney.api.core import Node, Pod
from spinney.cluster.resources import CPU
from spinney.cluster.scores import ScoreFramework
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework import (
    SUCCESS,
    CycleState,
    Filter,
    FrameworkRegistry,
    Handle,
    PreFilter,
    Score,
    Status,
)
from spinney.coscheduling.framework.points import FrameworkPlugin, StateKey
from spinney.coscheduling.plugins import BUILT_IN

from .bench import Bench, a_group, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

WANTED: StateKey[str] = StateKey("the node a pod's label names")


class Own:
    """What the plugins have in common."""

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self.services = handle.services


class NotForLeaders(Own, Filter):
    """Refuses the leader everywhere."""

    name = "NotForLeaders"

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        return nodes.alive & (pod.metadata.labels.get("role") != "leader")


class WhereTheLabelSays(Own, PreFilter, Filter):
    """Reads a label before nodes are looked at, and leaves it for the filter."""

    name = "WhereTheLabelSays"

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        state.write(WANTED, pod.metadata.labels.get("wanted", ""))
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        wanted = state.read(WANTED)
        return nodes.alive & np.array([not wanted or name == wanted for name in nodes.names], dtype=np.bool_)


class OnBusyNodes(Own, Filter):
    """Refuses nodes with less than 3 CPUs in use."""

    name = "OnBusyNodes"

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        return nodes.alive & (nodes.used[:, CPU] >= 3000)


class AsLabelled(Own, Filter, Score):
    """Refuses and prefers nodes by a number on the pod; each node counts only while it is nearly empty."""

    name = "AsLabelled"

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        return nodes.alive & _allowed(pod, nodes)

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable, feasible: Mask) -> Any:
        return _liked(pod, nodes)


def _allowed(pod: Pod, nodes: NodeTable) -> Mask:
    allowed = pod.metadata.labels.get("allowed", "").split(".")
    return np.array([name in allowed for name in nodes.names])


def _liked(pod: Pod, nodes: NodeTable) -> Any:
    number = int(pod.metadata.labels.get("number", "0"))
    return (np.arange(nodes.capacity) * 7 + number * 13 + nodes.used[:, CPU] // 1000) % 100


def a_bench(plugin: type[FrameworkPlugin]) -> Bench:
    """Return a scheduler with one more plugin."""
    registry = FrameworkRegistry(BUILT_IN)
    registry.register(plugin.name, plugin)
    return Bench(registry=registry, plugins={"multiPoint": {"enabled": [{"name": plugin.name}]}})


async def test_a_member_that_a_filter_refuses_speaks_for_itself_only(cluster_name: str) -> None:
    """The others ask for the same, and make the quorum without it."""
    bench = a_bench(NotForLeaders)
    bench.put(a_node("n"), a_group("gang", 2))
    bench.put(*(a_pod(f"gang-{n}", group="gang", labels={"role": "worker" if n else "leader"}) for n in range(3)))

    await bench.run(seconds=5)

    assert bench.binds == {"gang-1": "n", "gang-2": "n"}


async def test_room_is_made_for_each_member_where_its_own_filters_let_it_go(cluster_name: str) -> None:
    """What a pre-filter left for one member is not what it would have left for another."""
    bench = a_bench(WhereTheLabelSays)
    bench.put(*(a_node(name, cpu=1) for name in ("a", "b", "c")))
    bench.put(*(a_pod(f"low-{name}", node=name, priority=-1) for name in ("a", "b", "c")))
    bench.put(a_group("gang", 2))
    bench.put(*(a_pod(f"gang-{n}", group="gang", labels={"wanted": wanted}) for n, wanted in enumerate("cb")))

    await bench.run(seconds=5)

    assert sorted(victim for victim, _ in bench.preempted) == ["low-b", "low-c"]
    assert bench.nominated == {"gang-0": "c", "gang-1": "b"}


async def test_nobody_is_taken_away_for_a_pod_that_a_filter_would_then_refuse(cluster_name: str) -> None:
    """A filter is asked about the node as it would be without the victims."""
    bench = a_bench(OnBusyNodes)
    bench.put(a_node("n", cpu=4))
    bench.put(*(a_pod(f"low-{number}", node="n", cpu="2", priority=-1) for number in range(2)))
    bench.put(a_pod("high", cpu="1"))

    await bench.run(seconds=5)

    assert bench.preempted == []


@pytest.mark.parametrize("seed", range(30))
async def test_members_go_where_asking_about_each_of_them_sends_them(cluster_name: str, seed: int) -> None:
    """A group of pods that a plugin tells apart, beside a walk over members and nodes that remembers nothing."""
    chance = Random(seed)
    nodes = [a_node(f"n{number}", cpu=chance.randint(1, 2)) for number in range(chance.randint(2, 6))]
    names = [node.metadata.name for node in nodes]
    pods = [
        a_pod(
            f"gang-{number}",
            group="gang",
            created=number,
            labels={
                "allowed": ".".join(chance.sample(names, chance.randint(0, len(names)))),
                "number": str(chance.randrange(50)),
            },
        )
        for number in range(chance.randint(1, 6))
    ]
    minimum = chance.randint(1, len(pods))
    bench = a_bench(AsLabelled)
    bench.put(*nodes, a_group("gang", minimum), *pods)

    await bench.run(seconds=5)

    assert bench.binds == _naively(nodes, pods, minimum)


def _naively(nodes: list[Node], pods: list[Pod], minimum: int) -> dict[str, str]:
    """Ask about every member and every node, one after the other."""
    bench, scores = Bench(), ScoreFramework()
    bench.put(*nodes, *pods)
    placed: dict[str, str] = {}
    for pod in pods:
        table = bench.cluster.table
        fits = table.alive & (table.idle[:, CPU] >= 1000) & _allowed(pod, table)
        total = scores.score(bench.cluster.view, pod, fits) + _liked(pod, table)
        ranked = sorted((-int(total[row]), table.names[row]) for row in np.flatnonzero(fits).tolist())
        if ranked:
            placed[pod.metadata.name] = ranked[0][1]
            bench.put(a_pod(pod.metadata.name, group="gang", node=ranked[0][1]))
    return placed if len(placed) >= minimum else {}
