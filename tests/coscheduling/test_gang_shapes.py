"""Gangs of awkward shapes: members that exclude one another, quorums that change, singles in the way."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.selectors import LabelSelector
from spinney.coscheduling.process.configuration import parse_configuration
from tests.conftest import Cluster
from tests.virtual_time import on_virtual_time

from .bench import Bench, a_group, a_node, a_pod
from .world import World, a_world
from .world import a_node as a_real_node
from .world import a_pod as a_real_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(
                topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "apart"})
            ),
        )
    )
)


async def test_members_that_exclude_one_another(bench: Bench) -> None:
    """A gang whose members must not share a node waits for as many nodes as it has members, holding none."""
    bench.put(a_node("n1", cpu=64), a_node("n2", cpu=64))
    bench.gang("apart", 3, labels={"app": "apart"}, affinity=APART)
    await bench.run(seconds=30)
    assert bench.binds == {}
    assert bench.waiting() == []
    bench.put(a_node("n3", cpu=1))
    await bench.run(seconds=30)
    assert sorted(bench.binds.values()) == ["n1", "n2", "n3"]


async def test_members_that_were_not_tried_say_why_too(bench: Bench) -> None:
    """When one member fits nowhere, its siblings say the same, so that whoever adds nodes sees how many pods wait."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("wide", 4, cpu="3")
    await bench.run()
    assert sorted(bench.refused) == ["wide-0", "wide-1", "wide-2", "wide-3"]
    assert "failed recently" in bench.refused["wide-3"].status.message
    assert "1 Insufficient cpu" in bench.refused["wide-3"].status.message


async def test_any_members_make_the_quorum(bench: Bench) -> None:
    """Members that fit complete the quorum, whichever they are; a sibling that fits nowhere does not hold them up."""
    bench.put(a_node("n1", cpu=2), a_group("mixed", 2))
    bench.put(a_pod("mixed-0", group="mixed", cpu="9"))
    bench.put(*(a_pod(f"mixed-{number}", group="mixed") for number in (1, 2)))
    await bench.run(seconds=60)
    assert sorted(bench.binds) == ["mixed-1", "mixed-2"]


async def test_a_smaller_quorum_completes_a_group_short_of_members(bench: Bench) -> None:
    """When the minimum is lowered to the members there are, they are placed at once; raising it undoes nothing."""
    bench.put(a_node("n1"), a_group("short", 4))
    bench.put(*(a_pod(f"short-{number}", group="short") for number in range(3)))
    await bench.run(seconds=5)
    assert bench.binds == {}
    bench.put(a_group("short", 3))
    await bench.run()
    assert len(bench.binds) == 3
    bench.put(a_group("short", 9))
    await bench.run(seconds=60)
    assert len(bench.binds) == 3
    assert bench.rejected == []


async def test_a_smaller_total_is_a_new_chance(bench: Bench) -> None:
    """When a group that the cluster is too small for asks for less in total, it is tried at once."""
    bench.put(a_node("n1", cpu=4), a_group("greedy", 2, min_resources={"cpu": "9"}))
    bench.put(*(a_pod(f"greedy-{number}", group="greedy") for number in range(2)))
    await bench.run(seconds=60)
    assert bench.binds == {}
    bench.put(a_group("greedy", 2, min_resources={"cpu": "2"}))
    await bench.run()
    assert sorted(bench.binds) == ["greedy-0", "greedy-1"]


async def test_a_larger_quorum_is_no_reason_to_try_again(bench: Bench) -> None:
    """Raising the minimum of a group that waits for room does not have it tried again."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("large", 4, minimum=3)
    await bench.run(seconds=60)
    tried = bench.attempts
    bench.put(a_group("large", 4))
    await bench.run(seconds=60)
    assert bench.attempts == tried
    assert bench.binds == {}


async def test_a_gang_and_a_single_pod_do_not_chase_each_other(bench: Bench) -> None:
    """A gang and a pod that do not fit together: one of them runs, the other waits and costs nothing."""
    bench.put(a_node("n1", cpu=3))
    bench.gang("gang", 3)
    bench.put(a_pod("single", created=9))
    await bench.run(seconds=60)
    assert sorted(bench.binds) == ["single"]
    tried = bench.attempts
    await bench.run(seconds=600)
    assert bench.attempts == tried
    bench.delete("single")
    await bench.run(seconds=15)
    assert len(bench.binds) == 4


async def test_members_of_two_scheduler_names(world: World) -> None:
    """Members served by different profiles make one quorum."""
    await world.nodes(a_real_node("n1"))
    await world.group("pair", 2)
    await world.create(a_real_pod("pair-0", group="pair"))
    await world.create(a_real_pod("pair-1", group="pair", scheduler="default-scheduler"))
    await world.until(lambda: len(world.bound("pair")) == 2)


async def test_profiles_differ_by_scheduler_name(cluster: Cluster) -> None:
    """Each scheduler name has its own plugins: what one profile filters another one allows."""
    heedless = {"schedulerName": "heedless", "plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}
    configuration = parse_configuration({"profiles": [{"schedulerName": "coscheduling"}, heedless]})
    async with a_world(cluster, configuration) as world, world.scheduling():
        taint = {"key": "kept", "value": "free", "effect": "NoSchedule"}
        await world.nodes(a_real_node("n1", taints=[taint]))
        await world.create(a_real_pod("careful"), a_real_pod("bold", scheduler="heedless"))
        await world.until(lambda: world.node_of("bold") == "n1")
        await world.until(lambda: "had untolerated taint(s)" in world.message("careful"))


@given(
    nodes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    low=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=8),
    size=st.integers(1, 6),
    cpu=st.integers(1, 3),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@on_virtual_time
async def test_victims_are_taken_for_a_whole_quorum_or_not_at_all(
    cluster_name: str, nodes: list[int], low: list[tuple[int, int]], size: int, cpu: int
) -> None:
    """Limitation 1: once victims go, the whole gang is bound; a gang that would still not fit costs nobody anything."""
    bench = Bench()
    free = list(nodes)
    bench.put(*(a_node(f"n{number}", cpu=capacity) for number, capacity in enumerate(nodes)))
    for number, (wanted, priority) in enumerate(low):
        row = next((row for row, left in enumerate(free) if left >= wanted), None)
        if row is not None:
            free[row] -= wanted
            bench.put(a_pod(f"low-{number}", cpu=str(wanted), priority=priority, node=f"n{row}"))
    bench.gang("high", size, cpu=str(cpu), priority=5, created=1)
    await bench.run(seconds=5)
    victims = [victim for victim, _ in bench.preempted]
    assert all((bench.record(victim).pod.spec.priority or 0) < 5 for victim in victims)
    assert len(victims) == len(set(victims))
    bench.delete(*victims)
    await bench.run(seconds=60)
    bound = [name for name in bench.binds if name.startswith("high")]
    assert len(bound) in {0, size}
    assert not victims or len(bound) == size, "victims were taken for a gang that is not bound"
    assert [victim for victim, _ in bench.preempted] == victims, "nobody more is taken"
