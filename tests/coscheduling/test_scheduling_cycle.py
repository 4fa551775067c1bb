"""One pod from the queue to its node: filters, scores, plugins that refuse or fail, and what waits for what."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, Taint
from spinney.api.core import Node, Pod
from spinney.api.selectors import LabelSelector
from spinney.cluster.scores import Scores
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework import (
    SUCCESS,
    Code,
    CycleState,
    Filter,
    FrameworkRegistry,
    Handle,
    NodeFilter,
    Permit,
    PreFilter,
    Reserve,
    Score,
    Status,
)
from spinney.coscheduling.plugins import BUILT_IN
from spinney.kube.cache import Change
from spinney.kube.keys import Key

from .bench import Bench, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


class Plugged:
    """What all plugins of these tests have in common."""

    name = "Mine"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self.handle = handle


def a_bench_with(plugin: Any) -> Bench:
    registry = FrameworkRegistry(BUILT_IN)
    registry.register("Mine", plugin)
    return Bench(registry=registry, plugins={"multiPoint": {"enabled": [{"name": "Mine", "weight": 100}]}})


class OnlyEven(Plugged, Filter):
    reason = "node(s) are odd"

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        return np.array([name.endswith(("0", "2", "4")) for name in nodes.names])


class OnlyEvenByNode(Plugged, NodeFilter):
    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        return SUCCESS if node.metadata.name.endswith(("0", "2", "4")) else Status.unschedulable("node(s) are odd")


class Raises(Plugged, Filter):
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        raise RuntimeError("broken")


class LastIsBest(Plugged, Score):
    def score(self, state: CycleState, pod: Pod, nodes: NodeTable, feasible: Mask) -> Scores:
        return np.where(nodes.rank == len(nodes) - 1, 100, 0)


class RefusesToReserve(Plugged, Reserve):
    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        return Status.unschedulable("no")

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        state.write  # noqa: B018 - nothing to undo


class RaisesAtPermit(Plugged, Permit):
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        raise RuntimeError("broken")


class RaisesAtPreFilter(Plugged, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        raise RuntimeError("broken")


async def test_ties_go_to_the_first_name(bench: Bench) -> None:
    """Of nodes that are equally good, the first by name is taken; then the next is the better one."""
    bench.put(*(a_node(f"n{number}") for number in (3, 1, 2)))
    bench.put(*(a_pod(f"p{number}") for number in range(3)))
    await bench.run()
    assert bench.binds == {"p0": "n1", "p1": "n2", "p2": "n3"}


async def test_a_pod_that_fits_nowhere_waits_for_room(bench: Bench) -> None:
    """A pod that found no room is tried again when some becomes free, and not before."""
    bench.put(a_node("n1", cpu=2), a_pod("holder", cpu="2", node="n1"), a_pod("waiter", cpu="2"))
    await bench.run(seconds=60)
    assert bench.attempts == 1
    assert bench.queue.counts["unschedulable"] == 1

    bench.delete("holder")
    await bench.run(seconds=2)
    assert bench.binds == {"waiter": "n1"}


async def test_gated_pods_stay_out(bench: Bench) -> None:
    """A pod with scheduling gates is not tried until the last is gone."""
    bench.put(a_node("n1"), a_pod("gated", gates=("later",)))
    await bench.run()
    assert bench.attempts == 0
    bench.put(a_pod("gated"))
    await bench.run()
    assert bench.binds == {"gated": "n1"}


async def test_constraints_decide_with_other_pods_about(bench: Bench) -> None:
    """Anti-affinity among pods of one kind spreads them, and the last finds no node."""
    apart = PodAffinityTerm(
        topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "x"})
    )
    anti = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(apart,)))
    bench.put(a_node("n1"), a_node("n2"))
    bench.put(*(a_pod(f"x{number}", labels={"app": "x"}, affinity=anti) for number in range(3)))
    await bench.run()
    assert bench.binds == {"x0": "n1", "x1": "n2"}
    assert len(bench.queue) == 1
    bench.delete("x0")
    await bench.run(seconds=2)
    assert bench.binds["x2"] == "n1"


async def test_soft_taints_are_weighed(bench: Bench) -> None:
    """A node with a taint the pod minds a little is taken only when nothing else is left."""
    soft = Taint(key="old", effect="PreferNoSchedule")
    bench.put(a_node("n1", taints=(soft,)), a_node("n2", cpu=1))
    bench.put(a_pod("p0"), a_pod("p1"))
    await bench.run()
    assert bench.binds == {"p0": "n2", "p1": "n1"}


@pytest.mark.parametrize("plugin", [OnlyEven, OnlyEvenByNode])
async def test_filters_of_plugins_are_asked(cluster_name: str, plugin: Any) -> None:
    """A filter of a plugin, written in columns or for one node, removes nodes and says why."""
    bench = a_bench_with(plugin)
    bench.put(a_node("n1"), a_node("n2", cpu=1), a_pod("p0"), a_pod("p1"))
    await bench.run()
    assert bench.binds == {"p0": "n2"}
    found = bench.refused["p1"].found
    assert found is not None
    assert not found.feasible


async def test_scores_of_plugins_count_with_their_weight(cluster_name: str) -> None:
    """A score of a plugin is weighed among the others."""
    bench = a_bench_with(LastIsBest)
    bench.put(*(a_node(f"n{number}") for number in range(3)), a_pod("p"))
    await bench.run()
    assert bench.binds == {"p": "n2"}


@pytest.mark.parametrize("plugin", [Raises, RefusesToReserve, RaisesAtPermit, RaisesAtPreFilter])
async def test_plugins_fail_closed(cluster_name: str, plugin: Any) -> None:
    """A plugin that raises or refuses at any point keeps the pod back, and the pod holds nothing."""
    bench = a_bench_with(plugin)
    bench.put(a_node("n1"), a_pod("p"))
    await bench.run()
    assert bench.binds == {}
    assert bench.cluster.table.used[bench.cluster.table.row("n1")].sum() == 0
    refused = bench.refused["p"]
    if plugin is Raises:
        assert refused.found is not None
        assert refused.found.refusals[0].reason == "plugin Mine failed at filter: raised RuntimeError: broken"
    assert refused.status.plugin == "Mine"
    assert refused.status.code in {Code.ERROR, Code.UNSCHEDULABLE}


async def test_a_failed_bind_gives_the_room_back(bench: Bench) -> None:
    """A pod whose bind is refused returns to the queue, and is tried again after a rest."""
    bench.put(a_node("n1"), a_pod("p"))
    bench.refuse_binds.add("p")
    await bench.run()
    assert bench.cluster.table.used[bench.cluster.table.row("n1")].sum() == 0
    bench.refuse_binds.clear()
    await bench.run(seconds=2)
    assert bench.binds == {"p": "n1"}


async def test_a_failed_bind_of_a_released_member_comes_back_alone(bench: Bench) -> None:
    """When one bind of a released group fails, the others stay bound and the one is tried again."""
    bench.put(a_node("n1"))
    bench.gang("trio", 3)
    bench.refuse_binds.add("trio-1")
    await bench.run()
    assert sorted(bench.binds) == ["trio-0", "trio-2"]
    assert bench.rejected == []
    bench.refuse_binds.clear()
    await bench.run(seconds=2)
    assert sorted(bench.binds) == ["trio-0", "trio-1", "trio-2"]


@pytest.mark.parametrize("what", ["cordoned", "tainted", "deleted"])
async def test_a_waiting_pod_loses_a_node_that_no_longer_suits_it(cluster_name: str, what: str) -> None:
    """Members that wait lose their node when it is cordoned, tainted or deleted, and their group starts anew."""
    bench = Bench(podGroupRejectPercentage=100)
    node = a_node("n1", cpu=2)
    bench.put(node)
    bench.gang("trio", 3)
    await bench.run()
    assert len(bench.waiting()) == 2
    if what == "cordoned":
        bench.put(a_node("n1", cpu=2, unschedulable=True))
    elif what == "tainted":
        bench.put(a_node("n1", cpu=2, taints=(Taint(key="broken", effect="NoSchedule"),)))
    else:
        bench.intake.node(Change(Key("", "n1"), node, None, "2"))
    assert bench.waiting() == []


async def test_a_deleted_member_takes_the_waiting_ones_with_it(cluster_name: str) -> None:
    """A waiting member that is deleted frees its room, and its siblings' until the group is complete again."""
    bench = Bench(podGroupRejectPercentage=100)
    bench.put(a_node("n1", cpu=2))
    bench.gang("trio", 3)
    await bench.run()
    assert len(bench.waiting()) == 2
    bench.delete("trio-0")
    assert bench.waiting() == []
    assert bench.group("trio").assigned == 0
