"""How victims are searched for, case by case; where the profiles differ, both outcomes are there."""

import pytest

from spinney.api.struct import JSON
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task
from tests.sim.cases.test_rules import TOPOLOGY, in_topology, outcome, queue, racks, running


@pytest.mark.parametrize(("profile", "said"), [("kai-compat", "Pipelined node0"), ("default", "Pending")])
def test_a_search_begins_with_a_victim_who_then_stays(profile: str, said: str) -> None:
    """Where a job fits beside a queue within its share, KAI evicts one of its jobs virtually and puts it back."""
    jobs = [
        a_job("held", queue="a", tasks=[running("held-0")]),
        a_job("wants", queue="b", creation_rank=1),
    ]
    case = a_case(queues=[queue("a", 1), queue("b", 0, rank=1)], jobs=jobs, actions=["reclaim"])
    assert outcome(profile, case) == {"held-0": "Running node0", "wants-0": said}


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("kai-compat", {"held-0": "Pipelined node1", "wants-0": "Pipelined node0"}),
        ("default", {"held-0": "Running node0", "wants-0": "Pending"}),
    ],
)
def test_reclaim_may_move_a_job_of_a_queue_within_its_share(profile: str, said: JSON) -> None:
    """A job that finds another place is not lost, so KAI moves it although its queue holds no more than its quota."""
    jobs = [
        a_job("held", queue="a", tasks=[running("held-0")]),
        a_job("wants", queue="b", creation_rank=1, tasks=[a_task("wants-0", gpus=2)]),
    ]
    nodes = [a_node("node0", gpus=2), a_node("node1", gpus=1)]
    case = a_case(nodes=nodes, queues=[queue("a", 1), queue("b", 0, rank=1)], jobs=jobs, actions=["reclaim"])
    assert outcome(profile, case) == said


@pytest.mark.parametrize("profile", ["kai-compat", "default"])
def test_a_domain_with_room_needs_no_victim_of_its_own(profile: str) -> None:
    """A gang that fits an empty block is placed there, though all possible victims are elsewhere."""
    gang = in_topology(a_job("g", creation_rank=1, tasks=[a_task("g-0", gpus=2), a_task("g-1", gpus=2)]), "block")
    jobs = [a_job("held", tasks=[running("held-0", "b0_r0_n0")]), gang]
    case = a_case(
        nodes=racks(b0_r0_n0=2, b1_r1_n1=2, b1_r2_n2=2),
        topologies=TOPOLOGY,
        queues=[a_queue(quota=8)],
        jobs=jobs,
        actions=["consolidation"],
    )
    found = outcome(profile, case)
    assert found["held-0"] == "Running b0_r0_n0"
    assert sorted([found["g-0"], found["g-1"]]) == ["Pipelined b1_r1_n1", "Pipelined b1_r2_n2"]


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("kai-compat", {"p-0": "Pending", "x-0": "Running node0", "y-0": "Running node1"}),
        ("default", {"p-0": "Pipelined node0", "x-0": "Pipelined node1", "y-0": "Pipelined node2"}),
    ],
)
def test_victims_of_several_nodes_together(profile: str, said: JSON) -> None:
    """To make room for three GPUs the job of two must go where that of one is: KAI only moves jobs of one node."""
    jobs = [
        a_job("y", tasks=[running("y-0", "node1")]),
        a_job("x", creation_rank=1, tasks=[running("x-0", "node0", gpus=2)]),
        a_job("p", creation_rank=2, tasks=[a_task("p-0", gpus=3)]),
    ]
    nodes = [a_node("node0", gpus=3), a_node("node1", gpus=2), a_node("node2", gpus=1)]
    case = a_case(nodes=nodes, queues=[a_queue(quota=8)], jobs=jobs, actions=["consolidation"])
    assert outcome(profile, case) == said


@pytest.mark.parametrize(("profile", "said"), [("kai-compat", "Pipelined node2"), ("default", "Pending")])
def test_a_job_that_was_just_promised_a_place_may_be_moved_again(profile: str, said: str) -> None:
    """The only possible victim moved for the first job: KAI begins the search for the second with it all the same."""
    jobs = [
        a_job("v", tasks=[running("v-0", "node1")]),
        a_job("p", creation_rank=1, tasks=[a_task("p-0", gpus=3)]),
        a_job("q", creation_rank=2, tasks=[a_task("q-0", gpus=2)]),
    ]
    nodes = [a_node("node0", gpus=1), a_node("node1", gpus=3), a_node("node2", gpus=2)]
    case = a_case(nodes=nodes, queues=[a_queue(quota=8)], jobs=jobs, actions=["consolidation"])
    found = outcome(profile, case)
    assert (found["v-0"], found["p-0"], found["q-0"]) == ("Pipelined node0", "Pipelined node1", said)


@pytest.mark.parametrize(
    ("profile", "old", "young"),
    [("kai-compat", "Pipelined b0_r1_n1", "Releasing b0_r1_n1"), ("default", "Releasing b0_r0_n0", "Running b0_r1_n1")],
)
def test_a_gang_of_one_rack_begins_with_the_least_important_victim(profile: str, old: str, young: str) -> None:
    """KAI finds room for the first pod where the younger job is, keeps that, and moves the older there in the end."""
    gang = in_topology(a_job("p", priority=75, tasks=[a_task("p-0"), a_task("p-1")]), "rack")
    jobs = [
        gang,
        a_job("old", creation_rank=1, tasks=[running("old-0", "b0_r0_n0")]),
        a_job("young", creation_rank=2, tasks=[running("young-0", "b0_r1_n1")]),
    ]
    case = a_case(
        nodes=racks(b0_r0_n0=2, b0_r1_n1=1),
        topologies=TOPOLOGY,
        queues=[a_queue(quota=4)],
        jobs=jobs,
        actions=["preempt"],
    )
    found = outcome(profile, case)
    assert (found["p-0"], found["p-1"]) == ("Pipelined b0_r0_n0", "Pipelined b0_r0_n0")
    assert (found["old-0"], found["young-0"]) == (old, young)
