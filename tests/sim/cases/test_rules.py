"""Rules of queues, gangs, devices, topology and victims that small clusters show, one each, in both profiles."""

from typing import Any

import msgspec
import pytest

from spinney.api.struct import JSON
from spinney.sim.cases.format import Case
from spinney.sim.cases.scheduling import SessionScheduler
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task

SLICE = "nvidia.com/mig-1g.10gb"


@pytest.fixture(params=["kai-compat", "default"])
def profile(request: pytest.FixtureRequest) -> str:
    """The profile a case runs in."""
    name: str = request.param
    return name


def outcome(profile: str, case: JSON) -> dict[str, str]:
    """Return what became of each task: its status, and for one that is placed its node."""
    found = SessionScheduler(profile).run(msgspec.convert(case, Case), case["actions"])
    return {name: f"{task.status} {task.node or ''}".rstrip() for name, task in found.tasks.items()}


def count(found: dict[str, str], job: str, status: str) -> int:
    """Return how many tasks of jobs whose name begins so have a status."""
    return sum(name.startswith(job) and said.startswith(status) for name, said in found.items())


def queue(name: str, quota: float, *, weight: float = 1, rank: int = 0, **fields: Any) -> JSON:
    """Return a queue with a GPU quota and weight."""
    gpu = {"quota": quota, "limit": -1, "over_quota_weight": weight}
    return {**a_queue(name, rank=rank), "gpu": gpu, **fields}


def running(name: str, node: str = "node0", **fields: Any) -> JSON:
    return a_task(name, state="Running", node=node, **fields)


def singles(job: str, number: int, queue: str, *, first: int = 0, node: str | None = None) -> list[JSON]:
    """Return jobs of one GPU each, running if a node is given, the first the oldest."""
    return [
        a_job(
            f"{job}{each}",
            queue=queue,
            creation_rank=first + each,
            tasks=[running(f"{job}{each}-0", node) if node else a_task(f"{job}{each}-0")],
        )
        for each in range(number)
    ]


def part(name: str, fraction: float, **fields: Any) -> JSON:
    """Return a task that asks for a part of a device."""
    task = a_task(name, **fields)
    return {**task, "requests": {**task["requests"], "gpu_kind": "fraction", "gpus": 0, "gpu_fraction": fraction}}


def sliced(name: str, **fields: Any) -> JSON:
    """Return a task that asks for a MIG slice."""
    task = a_task(name, **fields)
    return {**task, "requests": {**task["requests"], "gpu_kind": "mig", "gpus": 0, "mig": {SLICE: 1}}}


def racks(**gpus: int) -> list[JSON]:
    """Return nodes named ``block_rack_node``."""
    nodes = []
    for name, count in gpus.items():
        block, rack, _ = name.split("_")
        nodes.append(a_node(name, gpus=count, labels={"kai.scheduler/type": name, "block": block, "rack": rack}))
    return nodes


def in_topology(job: JSON, required: str | None, preferred: str | None = None) -> JSON:
    """Return a job whose pods lie together."""
    constraint = {"topology": "t", "required_level": required, "preferred_level": preferred}
    return {**job, "root_group": {**job["root_group"], "topology_constraint": constraint}}


TOPOLOGY = [{"name": "t", "levels": ["block", "rack"]}]


def test_elastic_jobs_grow_in_turns(profile: str) -> None:
    """Two elastic jobs of two queues get their minimum first and then grow one by one, to half of the node each."""
    jobs = [
        a_job(name, queue=name, creation_rank=rank, tasks=[a_task(f"{name}-{i}") for i in range(4)], minimum=1)
        for rank, name in enumerate(("a", "b"))
    ]
    case = a_case(nodes=[a_node(gpus=4)], queues=[queue("a", 2), queue("b", 2, rank=1)], jobs=jobs)
    found = outcome(profile, case)
    assert (count(found, "a", "Binding"), count(found, "b", "Binding")) == (2, 2)


@pytest.mark.parametrize(("asked", "lost"), [(1, 1), (2, 2), (3, 3)])
def test_surplus_goes_before_the_gang(profile: str, asked: int, lost: int) -> None:
    """An elastic victim gives up what it has beyond its minimum pod by pod, and its core only as a whole."""
    victim = a_job("e", creation_rank=1, tasks=[running(f"e-{number}") for number in range(3)], minimum=1)
    taker = a_job("p", priority=75, tasks=[a_task("p-0", gpus=asked)])
    case = a_case(nodes=[a_node(gpus=3)], queues=[a_queue(quota=3)], actions=["preempt"], jobs=[taker, victim])
    found = outcome(profile, case)
    assert found["p-0"] == "Pipelined node0"
    assert count(found, "e", "Releasing") == lost


def test_weights_divide_what_quotas_leave(profile: str) -> None:
    """Weights of 1 and 3 divide four GPUs into 1 and 3, when jobs are placed and when they are reclaimed."""
    queues = [queue("a", 0), queue("b", 0, weight=3, rank=1)]
    placed = a_case(nodes=[a_node(gpus=4)], queues=queues, jobs=[*singles("a", 4, "a"), *singles("b", 4, "b", first=4)])
    found = outcome(profile, placed)
    assert (count(found, "a", "Binding"), count(found, "b", "Binding")) == (1, 3)

    jobs = [*singles("a", 4, "a", node="node0"), *singles("b", 4, "b", first=4)]
    found = outcome(profile, a_case(nodes=[a_node(gpus=4)], queues=queues, jobs=jobs, actions=["reclaim"]))
    assert (count(found, "a", "Releasing"), count(found, "b", "Pipelined")) == (3, 3)


def test_a_queue_of_higher_priority_has_the_surplus(profile: str) -> None:
    """Both queues get their quota; what is left goes to the higher priority."""
    queues = [queue("a", 1), queue("b", 1, rank=1, priority=200)]
    jobs = [*singles("a", 4, "a"), *singles("b", 4, "b", first=4)]
    found = outcome(profile, a_case(nodes=[a_node(gpus=4)], queues=queues, jobs=jobs))
    assert (count(found, "a", "Binding"), count(found, "b", "Binding")) == (1, 3)


def test_shares_hold_at_every_depth(profile: str) -> None:
    """Three levels deep, what one organisation holds beyond its quota is taken from the leaf that has no claim."""
    queues = [
        queue("org0", 2, parent=None),
        queue("org1", 2, parent=None, rank=1),
        queue("team0", 2, parent="org0"),
        queue("team1", 0, parent="org0", rank=1),
        queue("team2", 2, parent="org1"),
        queue("leaf0", 2, parent="team0"),
        queue("leaf1", 0, parent="team1"),
        queue("leaf2", 2, parent="team2"),
    ]
    jobs = [
        *singles("entitled", 2, "leaf0", node="node0"),
        *singles("beyond", 2, "leaf1", first=2, node="node0"),
        *singles("taker", 1, "leaf2", first=4),
    ]
    case = a_case(nodes=[a_node(gpus=4)], departments=[], queues=queues, jobs=jobs, actions=["reclaim"])
    found = outcome(profile, case)
    assert found["taker0-0"] == "Pipelined node0"
    assert (count(found, "entitled", "Running"), count(found, "beyond", "Releasing")) == (2, 1)


@pytest.mark.parametrize(("seconds", "lost"), [(3600, 0), (30, 4)])
def test_a_job_that_has_just_started_is_left_alone(profile: str, seconds: int, lost: int) -> None:
    """Jobs that run for a minute are protected by a min-runtime of an hour, and not by one of half a minute."""
    jobs = [*singles("a", 4, "a", node="node0"), *singles("b", 4, "b", first=4)]
    queues = [queue("a", 0), queue("b", 4, rank=1)]
    case = a_case(nodes=[a_node(gpus=4)], queues=queues, jobs=jobs, actions=["reclaim"])
    case["config"]["min_runtime_seconds"] = {"preempt": 0, "reclaim": seconds}
    assert count(outcome(profile, case), "a", "Releasing") == lost


def test_a_part_of_a_device_waits_for_another_to_go(profile: str) -> None:
    """What does not fit beside a terminating share is promised the device; what does is placed."""
    leaving = a_job("r", tasks=[part("r-0", 0.7, state="Releasing", node="node0", gpu_groups=["g"])])
    jobs = [
        leaving,
        a_job("x", creation_rank=1, tasks=[part("x-0", 0.5)]),
        a_job("y", creation_rank=2, tasks=[part("y-0", 0.3)]),
    ]
    found = outcome(profile, a_case(nodes=[a_node(gpus=1)], queues=[a_queue(quota=2)], jobs=jobs))
    assert (found["x-0"], found["y-0"]) == ("Pipelined node0", "Binding node0")


def test_slices_are_preempted_youngest_first(profile: str) -> None:
    """A job of higher priority takes one MIG slice from the younger of two."""
    offered = {"cpu_milli": 20000000, "memory_bytes": 20000000000, "gpus": 0, "pods": 110, "mig": {SLICE: 2}}
    facts: JSON = {"allocatable": offered, "gpus_device_plugin": 0, "physical_gpus": 1}
    node = a_node("node0", gpus=0, mig_enabled=True, mig_strategy="mixed", **facts)
    jobs = [
        a_job("p", priority=75, tasks=[sliced("p-0")]),
        *(
            a_job(name, creation_rank=rank, tasks=[sliced(f"{name}-0", state="Running", node="node0")])
            for rank, name in ((1, "old"), (2, "young"))
        ),
    ]
    found = outcome(profile, a_case(nodes=[node], queues=[a_queue(quota=4)], jobs=jobs, actions=["preempt"]))
    assert found == {"p-0": "Pipelined node0", "old-0": "Running node0", "young-0": "Releasing node0"}


@pytest.mark.parametrize(("gpus", "expected"), [(1, "Binding b0_r0_n0"), (2, "Pending")])
def test_a_required_level_holds_for_what_runs_already(profile: str, gpus: int, expected: str) -> None:
    """A job that grows stays in the rack of its running pods, however much room others have."""
    job = a_job("j", tasks=[running("j-0", "b0_r0_n0"), a_task("j-1", gpus=gpus)], minimum=1)
    case = a_case(
        nodes=racks(b0_r0_n0=2, b0_r1_n1=2, b1_r2_n2=4),
        topologies=TOPOLOGY,
        queues=[a_queue(quota=8)],
        jobs=[in_topology(job, "rack")],
    )
    assert outcome(profile, case)["j-1"] == expected


@pytest.mark.parametrize(("pods", "racks_used"), [(2, 1), (3, 1), (5, 2)])
def test_a_preferred_level_is_left_only_when_it_must_be(profile: str, pods: int, racks_used: int) -> None:
    """A gang lies in one rack where one holds it, and otherwise in one block."""
    job = in_topology(a_job("j", tasks=[a_task(f"j-{number}") for number in range(pods)]), "block", "rack")
    nodes = racks(b0_r0_n0=2, b0_r1_n1=2, b1_r2_n2=4, b1_r3_n3=2)
    case = a_case(nodes=nodes, topologies=TOPOLOGY, queues=[a_queue(quota=8)], jobs=[job])
    places = [said.split()[1] for said in outcome(profile, case).values()]
    assert len({place.rsplit("_", 1)[0] for place in places}) == racks_used
    assert len({place.split("_")[0] for place in places}) == 1


def test_what_cannot_be_preempted_is_not_moved(profile: str) -> None:
    """Consolidation moves the preemptible job beside the other, and never the other way round."""
    nodes = [a_node("node0", gpus=4), a_node("node1", gpus=4)]
    jobs = [
        a_job("fixed", priority=100, preemptible=False, tasks=[running("fixed-0", "node0", gpus=2)]),
        a_job("free", creation_rank=1, tasks=[running("free-0", "node1", gpus=2)]),
        a_job("p", creation_rank=2, tasks=[a_task("p-0", gpus=3)]),
    ]
    found = outcome(profile, a_case(nodes=nodes, queues=[a_queue(quota=8)], jobs=jobs, actions=["consolidation"]))
    assert found == {"fixed-0": "Running node0", "free-0": "Pipelined node0", "p-0": "Pipelined node1"}


def test_only_victims_in_the_way_go(profile: str) -> None:
    """A pod that is bound to a node takes its victim there, though another job is less important."""
    pinned = {"key": "kai.scheduler/type", "in": ["node0"]}
    jobs = [
        a_job("p", priority=75, tasks=[a_task("p-0", node_affinity=pinned)]),
        a_job("here", creation_rank=1, tasks=[running("here-0", "node0")]),
        a_job("there", creation_rank=2, tasks=[running("there-0", "node1")]),
    ]
    nodes = [a_node("node0", gpus=1), a_node("node1", gpus=1)]
    found = outcome(profile, a_case(nodes=nodes, queues=[a_queue(quota=2)], jobs=jobs, actions=["preempt"]))
    assert found == {"p-0": "Pipelined node0", "here-0": "Releasing node0", "there-0": "Running node1"}


@pytest.mark.parametrize(
    ("grace", "stale_for", "status"), [(0, None, "Releasing"), (60, None, "Running"), (60, 61, "Releasing")]
)
def test_a_broken_gang_has_its_grace(profile: str, grace: float, stale_for: float | None, status: str) -> None:
    """A gang below its minimum goes at once without a grace period, and with one when it is over."""
    job = a_job("j", minimum=2, tasks=[running("j-0"), a_task("j-1")], stale_for_seconds=stale_for)
    case = a_case(nodes=[a_node(gpus=4)], queues=[a_queue(quota=4)], jobs=[job], actions=["stalegangeviction"])
    case["config"]["stale_gang_grace_seconds"] = grace
    assert outcome(profile, case)["j-0"].startswith(status)


def test_depth_limits_what_an_action_looks_at(profile: str) -> None:
    """With a depth of one, only the first job of each queue is tried."""
    case = a_case(nodes=[a_node(gpus=4)], queues=[queue("a", 4)], jobs=singles("a", 3, "a"))
    case["config"]["jobs_per_queue_per_action_limit"] = 1
    found = outcome(profile, case)
    assert (found["a0-0"], count(found, "a", "Binding")) == ("Binding node0", 1)
