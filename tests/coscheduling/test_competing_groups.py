"""Groups that compete: nobody deadlocks, nobody waits for a time-out, and preemption is for a whole quorum or not."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.meta import ObjectMeta
from spinney.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from spinney.api.selectors import LabelSelector
from spinney.kube.keys import Key
from tests.virtual_time import on_virtual_time

from .bench import NAMESPACE, Bench, a_group, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def each_holds_half(bench: Bench, size: int, cpus: int, held: tuple[int, int]) -> None:
    """Have two groups of ``size`` appear on ``cpus`` single-cpu slots, of which each gets some before the other."""
    bench.put(a_node("n1", cpu=cpus))
    for number, (name, mine) in enumerate(zip(("early", "late"), held, strict=True)):
        bench.put(a_group(name, size, created=number))
        bench.put(*(a_pod(f"{name}-{index:02d}", group=name) for index in range(size)))
        for index in range(mine, size):
            bench.queue.delete(_key(f"{name}-{index:02d}"))


def _key(name: str) -> Key:
    return Key(NAMESPACE, name)


async def bring_the_rest(bench: Bench) -> None:
    """Let the members come back that were kept out of the queue."""
    for group in list(bench.groups):
        for record in group.pending():
            bench.queue.update(record.pod)
    await bench.run(seconds=5)


async def test_two_halves_beyond_the_threshold(cluster_name: str) -> None:
    """Two groups that each hold half of the cluster: one is served within seconds, long before any time-out."""
    bench = Bench(preferClosestToCompletion=False)
    each_holds_half(bench, size=8, cpus=8, held=(4, 4))
    await bench.run()
    assert len(bench.waiting()) == 8
    await bring_the_rest(bench)
    assert len(bench.binds) == 8
    assert len({name.split("-")[0] for name in bench.binds}) == 1


async def test_two_gaps_within_the_threshold(cluster_name: str) -> None:
    """Two groups that are both within 10 % of their quorum: the later one in order gives way, at once."""
    bench = Bench(preferClosestToCompletion=False)
    each_holds_half(bench, size=20, cpus=38, held=(19, 19))
    await bench.run()
    assert len(bench.waiting()) == 38
    await bring_the_rest(bench)
    assert sorted(bench.binds) == [f"early-{index:02d}" for index in range(20)]
    assert [group for group, _ in bench.rejected] == ["late"]


async def test_near_its_quorum_a_group_that_is_alone_holds_on(bench: Bench) -> None:
    """A group within 10 % of its quorum keeps what it has while nobody else needs it."""
    bench.put(a_node("n1", cpu=19))
    bench.gang("near", 20)
    await bench.run()
    assert len(bench.waiting()) == 19
    bench.put(a_node("n2", cpu=1))
    await bench.run(seconds=3)
    assert len(bench.binds) == 20


@pytest.mark.parametrize("closest", [True, False])
@given(
    cpus=st.integers(2, 24),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    settings_of=st.tuples(st.sampled_from([0, 10, 50, 100]), st.sampled_from([1, 10])),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@on_virtual_time
async def test_whatever_fits_alone_is_served_in_the_end(
    cluster_name: str, closest: bool, cpus: int, sizes: list[int], settings_of: tuple[int, int]
) -> None:
    """However groups compete, none is ever bound in part, and each that fits is bound when the others have gone."""
    percentage, backoff = settings_of
    bench = Bench(
        podGroupRejectPercentage=percentage, podGroupBackoffSeconds=backoff, preferClosestToCompletion=closest
    )
    bench.put(a_node("n1", cpu=cpus // 2), a_node("n2", cpu=cpus - cpus // 2))
    for number, size in enumerate(sizes):
        bench.gang(f"g{number}", size, created=number)
    done: set[str] = set()
    for _ in sizes:
        await bench.run(seconds=150)
        bound = {name.split("-")[0] for name in bench.binds} - done
        for group in sorted(bound):
            size = sizes[int(group[1:])]
            members = [name for name in bench.binds if name.startswith(f"{group}-")]
            assert len(members) == size, f"{group} is bound in part"
            bench.delete(*members)
        done |= bound
    assert done == {f"g{number}" for number, size in enumerate(sizes) if size <= cpus}


# -- preemption -------------------------------------------------------------------------------------------------------


async def test_a_group_takes_victims_for_its_whole_quorum(bench: Bench) -> None:
    """Limitation 1: a group takes as few victims as its quorum needs, and is bound when they are gone."""
    bench.put(a_node("n1", cpu=4), a_node("n2", cpu=4))
    bench.put(*(a_pod(f"low-{number}", node=f"n{1 + number % 2}") for number in range(8)))
    bench.gang("high", 3, priority=10)
    await bench.run()
    assert len(bench.preempted) == 3
    assert bench.binds == {}
    assert sorted(name for name, node in bench.nominated.items() if node) == ["high-0", "high-1", "high-2"]

    for victim, _ in bench.preempted:
        bench.delete(victim)
    await bench.run(seconds=15)
    assert sorted(bench.binds) == ["high-0", "high-1", "high-2"]
    assert {name: bench.nominated[name] for name in bench.binds} == bench.binds


async def test_a_group_that_would_still_not_fit_takes_nobody(bench: Bench) -> None:
    """Limitation 1: no victim is taken for a group whose quorum would not fit even without them."""
    bench.put(a_node("n1", cpu=4))
    bench.put(a_pod("low", node="n1"), a_pod("higher", node="n1", cpu="2", priority=20))
    bench.gang("high", 3, priority=10)
    await bench.run()
    assert bench.preempted == []
    assert [group for group, _ in bench.rejected] == ["high"]


async def test_a_group_that_may_not_preempt_does_not(bench: Bench) -> None:
    """A group whose pods say preemptionPolicy Never takes nobody."""
    bench.put(a_node("n1", cpu=2), a_pod("low", node="n1"))
    bench.gang("polite", 2, priority=10, preemption_policy="Never")
    await bench.run()
    assert bench.preempted == []


async def test_waiting_members_of_lower_priority_give_way(bench: Bench) -> None:
    """Members of a group that only wait at Permit lose their nodes to a group of higher priority."""
    bench = Bench(podGroupRejectPercentage=100)
    bench.put(a_node("n1", cpu=3))
    bench.gang("low", 4)
    await bench.run()
    assert len(bench.waiting()) == 3
    bench.gang("high", 3, priority=10, created=1)
    await bench.run(seconds=5)
    assert sorted(bench.binds) == ["high-0", "high-1", "high-2"]


async def test_a_pod_takes_the_cheapest_victims(bench: Bench) -> None:
    """A single pod preempts on the node where the victims matter least, and no more than it needs."""
    bench.put(a_node("n1", cpu=2), a_node("n2", cpu=2), a_node("n3", cpu=2))
    bench.put(a_pod("n1-a", node="n1", priority=5), a_pod("n1-b", node="n1", priority=1))
    bench.put(a_pod("n2-a", node="n2", priority=1), a_pod("n2-b", node="n2", priority=1))
    bench.put(a_pod("n3-a", node="n3", cpu="2", priority=9))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    assert bench.preempted == [("n1-b", "high")]
    assert bench.nominated == {"high": "n1"}


async def test_a_group_among_the_victims_goes_whole_or_down_to_its_minimum(bench: Bench) -> None:
    """Nothing is left of a group that could do nothing but hold its nodes; others are spared for it."""
    bench.put(a_node("n1", cpu=4), a_node("n2", cpu=1), a_pod("single", node="n1"))
    bench.put(
        a_group("low", 4), *(a_pod(f"low-{n}", group="low", node="n1" if n else "n2", started=0) for n in range(4))
    )
    bench.put(a_pod("high", cpu="3", priority=8))
    await bench.run()
    assert sorted(victim for victim, _ in bench.preempted) == ["low-0", "low-1", "low-2", "low-3"]


async def test_members_beyond_the_minimum_go_alone(bench: Bench) -> None:
    """A group that can do without a member loses that one only."""
    bench.put(a_node("n1", cpu=4))
    bench.put(a_group("low", 3), *(a_pod(f"low-{n}", group="low", node="n1") for n in range(4)))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    assert len(bench.preempted) == 1


async def test_a_group_with_a_more_important_member_gives_nothing(bench: Bench) -> None:
    """A group that may not be taken whole is left alone, and the pod takes another victim of the node."""
    bench.put(a_node("n1", cpu=2), a_node("n2", cpu=1))
    bench.put(a_group("mixed", 2), a_pod("mixed-0", group="mixed", node="n1", priority=1, started=50))
    bench.put(a_pod("mixed-1", group="mixed", node="n2", priority=9), a_pod("single", node="n1", priority=2))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    assert bench.preempted == [("single", "high")]


async def test_start_times_decide_between_equal_victims(bench: Bench) -> None:
    """Between nodes whose victims are alike, the victim that started last goes."""
    bench.put(a_node("n1", cpu=1), a_node("n2", cpu=1))
    bench.put(a_pod("old", node="n1", started=0), a_pod("young", node="n2", started=60))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    assert bench.preempted == [("young", "high")]


async def test_budgets_are_spared_where_possible(bench: Bench) -> None:
    """A pod whose disruption budget is used up is taken only if nothing else helps."""
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="guard", namespace=NAMESPACE),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "guarded"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )
    bench.services.budgets.put(budget)
    bench.put(a_node("n1", cpu=1), a_node("n2", cpu=1))
    bench.put(a_pod("guarded", node="n1", labels={"app": "guarded"}), a_pod("free", node="n2", priority=3))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    assert bench.preempted == [("free", "high")]
    bench.put(a_pod("high-2", priority=9, node_selector={"kubernetes.io/hostname": "n1"}))
    await bench.run()
    assert bench.preempted[-1] == ("guarded", "high-2")


async def test_never_preempting_and_no_victims_are_told(bench: Bench) -> None:
    """A pod that may not preempt, and one for which nobody is below, say so in kube-scheduler's words."""
    bench.put(a_node("n1", cpu=1), a_node("n2", cpu=1, labels={"zone": "b"}), a_pod("a", node="n1"))
    bench.put(a_pod("b", node="n2"))
    bench.put(a_pod("polite", priority=5, preemption_policy="Never"), a_pod("equal"))
    bench.put(a_pod("picky", node_selector={"zone": "b"}))
    await bench.run()
    assert bench.preempted == []
    assert bench.refused["polite"].tail == "preemption: not eligible due to preemptionPolicy=Never."
    none = "preemption: 0/2 nodes are available: {}."
    assert bench.refused["equal"].tail == none.format("2 No preemption victims found for incoming pod")
    assert bench.refused["picky"].tail == none.format(
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling"
    )


async def test_room_is_kept_for_a_nominated_pod(bench: Bench) -> None:
    """While victims terminate, a pod of lower or equal priority cannot take the room that was made."""
    bench.put(a_node("n1", cpu=1), a_pod("low", node="n1"))
    bench.put(a_pod("high", priority=8))
    await bench.run()
    bench.put(a_pod("low", node="n1", deleting=True))
    bench.put(a_pod("thief", priority=8, created=5))
    await bench.run(seconds=2)
    bench.delete("low")
    bench.queue.activate([_key("thief")])
    await bench.run(seconds=5)
    assert bench.binds == {"high": "n1"}


async def test_preemption_under_rules_among_pods(bench: Bench) -> None:
    """A pod that spreads over nodes preempts where its own rules allow it."""
    apart = PodAffinityTerm(
        topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "x"})
    )
    anti = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(apart,)))
    bench.put(a_node("n1", cpu=2), a_node("n2", cpu=2))
    bench.put(a_pod("x0", node="n1", labels={"app": "x"}, priority=9), a_pod("a", node="n1"))
    bench.put(a_pod("b", node="n2", cpu="2"))
    bench.put(a_pod("x1", labels={"app": "x"}, affinity=anti, priority=5))
    await bench.run()
    assert bench.preempted == [("b", "x1")]
