"""What the format and the rules say beyond the collection of cases: each case states what must come of it."""

from typing import Any

import msgspec
import pytest

from spinney.api.struct import JSON
from spinney.sim.cases.format import Case
from spinney.sim.cases.running import run_case
from spinney.sim.cases.scheduling import SessionScheduler
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task, an_expectation
from tests.sim.cases.test_rules import part, queue, running

ALL_ACTIONS = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
ROUNDS = {"mode": "multi_round", "until_match": 2, "after_match": 3}
GPU_CLASS = "nvidia.com/gpu"


@pytest.fixture(params=["kai-compat", "default"])
def profile(request: pytest.FixtureRequest) -> str:
    """The profile a case runs in."""
    name: str = request.param
    return name


def check(profile: str, case: JSON) -> None:
    """Run a case and find nothing that differs from what it states."""
    assert run_case(msgspec.convert(case, Case), SessionScheduler(profile)).differences == ()


def said(**tasks: str) -> JSON:
    """Return expectations of tasks, named with underscores for dashes: a status and maybe a node."""
    found = {}
    for name, text in tasks.items():
        status, _, node = text.partition(" ")
        found[name.replace("_", "-")] = {**an_expectation(status, node or None), "gpus_requested": None}
    return found


def pinned(*nodes: str) -> JSON:
    """Return a required affinity to nodes by their type."""
    return {"key": "kai.scheduler/type", "in": list(nodes)}


# -- terminating pods --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "idle", "releasing"),
    [
        ([part("r-0", 0.5, state="Releasing", node="node0", gpu_groups=["1"])], 1, 1),
        (
            [
                part("r-0", 0.5, state="Releasing", node="node0", gpu_groups=["1"]),
                part("r-1", 0.5, state="Releasing", node="node0", gpu_groups=["1"]),
            ],
            1,
            1,
        ),
        ([a_task("r-0", state="Releasing", node="node0")], 1, 1),
        ([a_task("r-0", state="Releasing", node="node0", gpus=2)], 0, 2),
    ],
)
def test_what_stays_terminating_stays_on_the_books(profile: str, tasks: list[JSON], idle: int, releasing: int) -> None:
    """A device counts as releasing while all that use it terminate, round after round."""
    job = a_job("r", tasks=tasks, after_release="stay_releasing")
    case = a_case(
        jobs=[job],
        queues=[a_queue(quota=2)],
        actions=ALL_ACTIONS,
        rounds=ROUNDS,
        limits=(0, 0, 0),
        expect_jobs={"r": {**an_expectation("Releasing", "node0"), "gpus_requested": None}},
        expect_nodes={"node0": {"idle_gpus": idle, "releasing_gpus": releasing}},
    )
    check(profile, case)


def test_a_shared_device_is_not_releasing_while_somebody_runs_on_it(profile: str) -> None:
    """One of two users terminates: the device is neither idle nor releasing."""
    jobs = [
        a_job(
            "r",
            tasks=[part("r-0", 0.5, state="Releasing", node="node0", gpu_groups=["1"])],
            after_release="stay_releasing",
        ),
        a_job("u", creation_rank=1, tasks=[part("u-0", 0.5, state="Running", node="node0", gpu_groups=["1"])]),
    ]
    case = a_case(
        jobs=jobs,
        queues=[a_queue(quota=2)],
        actions=ALL_ACTIONS,
        rounds=ROUNDS,
        limits=(0, 0, 0),
        expect_tasks=said(r_0="Releasing node0", u_0="Running node0"),
        expect_nodes={"node0": {"idle_gpus": 1, "releasing_gpus": 0}},
    )
    check(profile, case)


def test_a_promise_on_what_never_goes_is_made_again_each_round(profile: str) -> None:
    """A pending job is promised the device of a pod that stays terminating, and never gets it."""
    jobs = [
        a_job("r", tasks=[a_task("r-0", state="Releasing", node="node0", gpus=2)], after_release="stay_releasing"),
        a_job("p", creation_rank=1),
    ]
    case = a_case(jobs=jobs, queues=[a_queue(quota=2)], limits=(0, 0, 1), expect_tasks=said(p_0="Pipelined node0"))
    check(profile, case)


# -- explicit preemptibility -------------------------------------------------------------------------------------------


def test_a_preemptible_job_of_high_priority_may_exceed_the_quota(profile: str) -> None:
    """Priority 125 with explicit preemptibility: 2 GPUs over a quota of 1 are placed; without it only 1."""
    free = a_job("f", priority=125, preemptible=True, preemptibility_explicit=True, tasks=[a_task("f-0", gpus=2)])
    check(profile, a_case(jobs=[free], limits=(1, 0, 0), expect_tasks=said(f_0="Binding node0")))
    bound = {**free, "preemptible": False}
    check(profile, a_case(jobs=[bound], limits=(0, 0, 0), expect_tasks=said(f_0="Pending")))


def test_a_non_preemptible_job_of_low_priority_is_no_victim(profile: str) -> None:
    """Priority 50 but explicitly not preemptible: a job of 75 cannot take its place, nor may another queue reclaim."""
    fixed = a_job("f", preemptible=False, preemptibility_explicit=True, creation_rank=1, tasks=[running("f-0", gpus=2)])
    wants = a_job("p", priority=75, tasks=[a_task("p-0")])
    for action, owner in (("preempt", "queue0"), ("reclaim", "queue1"), ("consolidation", "queue0")):
        case = a_case(
            jobs=[{**wants, "queue": owner}, fixed],
            queues=[a_queue(quota=2), a_queue("queue1", quota=2, rank=1)],
            actions=[action],
            limits=(0, 0, 0),
            expect_tasks=said(f_0="Running node0", p_0="Pending"),
        )
        check(profile, case)


def test_an_explicitly_preemptible_job_above_100_is_a_victim(profile: str) -> None:
    """A preemptible job of 100 gives way to one of 125 that stays within quota, which is not preemptible."""
    jobs = [
        a_job("p", priority=125, preemptible=False, tasks=[a_task("p-0", gpus=2)]),
        a_job(
            "v",
            priority=100,
            preemptible=True,
            preemptibility_explicit=True,
            creation_rank=1,
            tasks=[running("v-0", gpus=2)],
        ),
    ]
    case = a_case(
        jobs=jobs,
        queues=[a_queue(quota=2)],
        actions=["preempt"],
        limits=(0, 1, 1),
        expect_tasks=said(p_0="Pipelined node0", v_0="Releasing node0"),
    )
    check(profile, case)


# -- node affinity -----------------------------------------------------------------------------------------------------


def test_affinity_decides_before_any_score(profile: str) -> None:
    """Packing would choose the fuller node; a required affinity to the other is obeyed, and one to nothing refused."""
    nodes = [a_node("node0"), a_node("node1")]
    held = a_job("h", tasks=[running("h-0", "node0")])
    for wanted, where in ((pinned("node1"), "Binding node1"), (pinned("node0", "node1"), "Binding node0")):
        job = a_job("p", creation_rank=1, tasks=[a_task("p-0", node_affinity=wanted)])
        case = a_case(nodes=nodes, queues=[a_queue(quota=4)], jobs=[held, job], expect_tasks=said(p_0=where))
        check(profile, case)
    job = a_job("p", creation_rank=1, tasks=[a_task("p-0", node_affinity=pinned("node7"))])
    case = a_case(
        nodes=nodes, queues=[a_queue(quota=4)], jobs=[held, job], limits=(0, 0, 0), expect_tasks=said(p_0="Pending")
    )
    check(profile, case)


def test_a_victim_is_not_moved_where_it_may_not_run(profile: str) -> None:
    """Consolidation for 2 GPUs: the job that is bound to its node stays, the other is moved to it."""
    nodes = [a_node("node0"), a_node("node1")]
    jobs = [
        a_job("x", tasks=[running("x-0", "node0", node_affinity=pinned("node0"))]),
        a_job("y", creation_rank=1, tasks=[running("y-0", "node1")]),
        a_job("p", creation_rank=2, tasks=[a_task("p-0", gpus=2)]),
    ]
    case = a_case(
        nodes=nodes,
        queues=[a_queue(quota=4)],
        jobs=jobs,
        actions=["consolidation"],
        limits=(0, 1, 2),
        expect_tasks=said(x_0="Running node0", y_0="Pipelined node0", p_0="Pipelined node1"),
    )
    check(profile, case)
    bound = a_job("y", creation_rank=1, tasks=[running("y-0", "node1", node_affinity=pinned("node1"))])
    case = a_case(
        nodes=nodes,
        queues=[a_queue(quota=4)],
        jobs=[jobs[0], bound, jobs[2]],
        actions=["consolidation"],
        limits=(0, 0, 0),
        expect_tasks=said(x_0="Running node0", y_0="Running node1", p_0="Pending"),
    )
    check(profile, case)


def test_affinity_is_not_looked_at_without_node_filters(profile: str) -> None:
    """Where the filter plugin is not loaded a pod goes to a node its affinity excludes."""
    case = a_case(
        jobs=[a_job("p", tasks=[a_task("p-0", node_affinity=pinned("node7"))])], expect_tasks=said(p_0="Binding node0")
    )
    case["config"] = {
        **case["config"],
        "plugins": [name for name in case["config"]["plugins"] if name != "predicates"],
        "node_filters": False,
    }
    check(profile, case)


# -- best effort -------------------------------------------------------------------------------------------------------


def best_effort(name: str, **fields: Any) -> JSON:
    """Return a job of one task that asks for nothing at all."""
    task = a_task(f"{name}-0", gpus=0)
    task["requests"] = {**task["requests"], "cpu_milli": 0, "memory_bytes": 0}
    return a_job(name, best_effort=True, tasks=[task], **fields)


def test_a_job_that_asks_for_nothing_fits_a_full_node(profile: str) -> None:
    """Only a pod slot is needed: with one left it is placed, with none it waits."""
    held = a_job("h", tasks=[running("h-0", gpus=2)])
    for pods, status, binds in ((2, "Binding node0", 1), (1, "Pending", 0)):
        node = a_node()
        node["allocatable"] = {**node["allocatable"], "memory_bytes": 1000000000, "pods": pods}
        case = a_case(
            nodes=[node],
            jobs=[held, best_effort("b", creation_rank=1)],
            limits=(binds, 0, 0),
            expect_tasks=said(b_0=status),
        )
        check(profile, case)


def test_a_job_that_asks_for_nothing_is_not_bound_by_quota(profile: str) -> None:
    """It charges nothing, so neither a limit of 0 GPUs nor a quota of 0 for what is not preemptible refuses it."""
    job = best_effort("b", priority=100, preemptible=False)
    case = a_case(jobs=[job], queues=[a_queue(quota=0, limit=0)], expect_tasks=said(b_0="Binding node0"))
    check(profile, case)


# -- device claims -----------------------------------------------------------------------------------------------------


def a_slice(node: str, devices: int, *, driver: str = GPU_CLASS) -> JSON:
    return {
        "name": f"{node}-gpu",
        "node": node,
        "pool": node,
        "driver": driver,
        "devices": [str(number) for number in range(devices)],
    }


def a_claim(name: str, *, count: int = 1, queue: str | None = "queue0", on: str = "", **fields: Any) -> JSON:
    """Return a claim for devices, allocated ``on`` a node if one is named."""
    held = [{"pool": on, "device": str(number)} for number in range(count)] if on else []
    return {
        "name": name,
        "namespace": "default",
        "labels": {} if queue is None else {"kai.scheduler/queue": queue},
        "device_class": GPU_CLASS,
        "count": count,
        "allocated_devices": held,
        "reserved_for_tasks": [],
        "reserved_for_foreign_count": 0,
        **fields,
    }


def claiming(name: str, *claims: str, **fields: Any) -> JSON:
    """Return a task that uses claims."""
    task = a_task(name, gpus=0, **fields)
    return {**task, "requests": {**task["requests"], "gpu_kind": "dra", "dra_claims": list(claims)}}


def dra_node(name: str = "node0", devices: int = 2) -> JSON:
    """Return a node whose GPUs are only reached through claims."""
    return a_node(name, gpus=devices, gpus_device_plugin=0, gpus_dra=devices, physical_gpus=0)


def with_claims(case: JSON, slices: list[JSON], claims: list[JSON], classes: tuple[str, ...] = (GPU_CLASS,)) -> JSON:
    dra = {"device_classes": list(classes), "slices": slices, "claims": claims, "max_consumers_per_claim": 256}
    return {**case, "dra": dra}


@pytest.mark.parametrize(("devices", "second"), [(2, "Binding node0"), (1, "Pending")])
def test_a_shared_claim_counts_for_each_task(profile: str, devices: int, second: str) -> None:
    """Two tasks of one claim for one device take two of the node's GPUs: with one GPU the second waits."""
    job = a_job("j", tasks=[claiming("j-0", "c"), claiming("j-1", "c")], minimum=1)
    case = a_case(
        nodes=[dra_node(devices=devices)],
        queues=[a_queue(quota=4)],
        jobs=[job],
        limits=(2, 0, 0),
        expect_tasks=said(j_0="Binding node0", j_1=second),
    )
    check(profile, with_claims(case, [a_slice("node0", devices)], [a_claim("c")]))


def test_users_of_a_claim_go_where_its_devices_are(profile: str) -> None:
    """The claim is allocated on the emptier node; its second user follows it there."""
    jobs = [
        a_job("h", tasks=[claiming("h-0", "held", state="Running", node="node0")]),
        a_job("u", creation_rank=1, tasks=[claiming("u-0", "shared", state="Running", node="node1")]),
        a_job("p", creation_rank=2, tasks=[claiming("p-0", "shared")]),
    ]
    claims = [
        a_claim("held", on="node0", reserved_for_tasks=["h-0"]),
        a_claim("shared", on="node1", reserved_for_tasks=["u-0"]),
    ]
    case = a_case(
        nodes=[dra_node("node0"), dra_node("node1", 3)],
        queues=[a_queue(quota=8)],
        jobs=jobs,
        expect_tasks=said(p_0="Binding node1"),
    )
    check(profile, with_claims(case, [a_slice("node0", 2), a_slice("node1", 3)], claims))


def test_claims_count_for_the_quota(profile: str) -> None:
    """A claim for two devices is over a limit of one, and a job that is not preemptible is over a quota of one."""
    for limit, preemptible in ((1, True), (-1, False)):
        job = a_job("j", priority=50 if preemptible else 100, preemptible=preemptible, tasks=[claiming("j-0", "c")])
        case = a_case(
            nodes=[dra_node()],
            queues=[a_queue(quota=1, limit=limit)],
            jobs=[job],
            limits=(0, 0, 0),
            expect_tasks=said(j_0="Pending"),
        )
        check(profile, with_claims(case, [a_slice("node0", 2)], [a_claim("c", count=2)]))


def test_a_claim_of_another_class_counts_nothing_and_needs_no_queue(profile: str) -> None:
    """Devices of a class that is not for GPUs are free of quota, and usable without the queue's label."""
    case = a_case(
        nodes=[dra_node(devices=1)],
        queues=[a_queue(quota=0, limit=0)],
        jobs=[a_job("j", tasks=[claiming("j-0", "nic")])],
        expect_tasks=said(j_0="Binding node0"),
    )
    claim = a_claim("nic", queue=None, device_class="example.com/nic")
    check(profile, with_claims(case, [a_slice("node0", 1, driver="example.com/nic")], [claim], ("example.com/nic",)))


@pytest.mark.parametrize(("foreign", "status", "binds"), [(255, "Binding node0", 1), (256, "Pending", 0)])
def test_a_claim_has_so_many_consumers(profile: str, foreign: int, status: str, binds: int) -> None:
    """A claim that others reserved 255 times takes one more, and none after that."""
    claim = a_claim("c", on="node0", reserved_for_foreign_count=foreign)
    case = a_case(
        nodes=[dra_node()],
        queues=[a_queue(quota=2)],
        jobs=[a_job("j", tasks=[claiming("j-0", "c")])],
        limits=(binds, 0, 0),
        expect_tasks=said(j_0=status),
    )
    check(profile, with_claims(case, [a_slice("node0", 2)], [claim]))


def test_max_consumers_is_what_the_case_says(profile: str) -> None:
    """With at most one consumer per claim the second user of a claim cannot be placed."""
    job = a_job("j", tasks=[claiming("j-0", "c"), claiming("j-1", "c")], minimum=1)
    case = with_claims(
        a_case(
            nodes=[dra_node()],
            queues=[a_queue(quota=4)],
            jobs=[job],
            limits=(1, 0, 0),
            expect_tasks=said(j_0="Binding node0", j_1="Pending"),
        ),
        [a_slice("node0", 2)],
        [a_claim("c")],
    )
    case["dra"]["max_consumers_per_claim"] = 1
    check(profile, case)


def test_an_evicted_consumer_frees_its_devices(profile: str) -> None:
    """A job of higher priority takes the only device of another's claim, and keeps it."""
    jobs = [
        a_job("p", priority=75, tasks=[claiming("p-0", "new")]),
        a_job("v", creation_rank=1, tasks=[claiming("v-0", "old", state="Running", node="node0")]),
    ]
    claims = [a_claim("new"), a_claim("old", on="node0", reserved_for_tasks=["v-0"])]
    case = a_case(
        nodes=[dra_node(devices=1)],
        queues=[a_queue(quota=1)],
        jobs=jobs,
        actions=ALL_ACTIONS,
        rounds=ROUNDS,
        limits=(1, 1, 1),
        expect_tasks=said(p_0="Running node0", v_0="Pending"),
    )
    check(profile, with_claims(case, [a_slice("node0", 1)], claims))


def test_claims_are_reclaimed_between_queues(profile: str) -> None:
    """A queue that holds both devices with a quota of one gives one back."""
    jobs = [
        a_job("a", queue="a", tasks=[claiming("a-0", "c0", state="Running", node="node0")]),
        a_job("b", queue="a", creation_rank=1, tasks=[claiming("b-0", "c1", state="Running", node="node0")]),
        a_job("w", queue="b", creation_rank=2, tasks=[claiming("w-0", "c2")]),
    ]
    claims = [
        a_claim("c0", queue="a", on="node0", reserved_for_tasks=["a-0"]),
        a_claim("c1", queue="a", allocated_devices=[{"pool": "node0", "device": "1"}], reserved_for_tasks=["b-0"]),
        a_claim("c2", queue="b"),
    ]
    case = a_case(
        nodes=[dra_node()],
        queues=[queue("a", 1), queue("b", 1, rank=1)],
        jobs=jobs,
        actions=["reclaim"],
        limits=(0, 1, 1),
        expect_tasks=said(a_0="Running node0", b_0="Releasing node0", w_0="Pipelined node0"),
    )
    check(profile, with_claims(case, [a_slice("node0", 2)], claims))


# -- configuration -----------------------------------------------------------------------------------------------------


def test_plugins_that_do_not_exist_are_left_out(profile: str) -> None:
    """A list of plugins with one nobody has runs with the others, as it does in KAI."""
    case = a_case(expect_tasks=said(job_0="Binding node0"))
    case["config"] = {**case["config"], "plugins": ["numa", *case["config"]["plugins"]]}
    check(profile, case)


def test_without_proportion_there_is_no_quota_and_queues_go_by_age(profile: str) -> None:
    """Both jobs are over the limit of their queues; the one of the older queue gets the only GPU."""
    jobs = [a_job("young", queue="b"), a_job("old", queue="a", creation_rank=1)]
    queues = [a_queue("a", quota=0, limit=0), a_queue("b", quota=0, limit=0, rank=1)]
    case = a_case(
        nodes=[a_node(gpus=1)],
        queues=queues,
        jobs=jobs,
        expect_tasks=said(old_0="Binding node0", young_0="Pending"),
    )
    case["config"] = {**case["config"], "plugins": ["predicates", "nodeplacement"]}
    check(profile, case)


def test_without_priority_jobs_go_by_age(profile: str) -> None:
    """The older job of lower priority gets the only GPU."""
    jobs = [a_job("high", priority=75, creation_rank=1), a_job("old", creation_rank=0)]
    case = a_case(nodes=[a_node(gpus=1)], jobs=jobs, expect_tasks=said(old_0="Binding node0", high_0="Pending"))
    case["config"] = {**case["config"], "plugins": ["predicates", "proportion", "nodeplacement"]}
    check(profile, case)


# -- min-runtime -------------------------------------------------------------------------------------------------------


def protected(case: JSON, *, preempt: float = 0, reclaim: float = 0) -> JSON:
    """Return a case in which jobs run undisturbed for so many seconds; those that run have done so for a minute."""
    return {**case, "config": {**case["config"], "min_runtime_seconds": {"preempt": preempt, "reclaim": reclaim}}}


@pytest.mark.parametrize(
    ("seconds", "asked", "lost"),
    [(3600, 2, 2), (3600, 3, 0), (30, 3, 3)],
)
def test_a_protected_elastic_job_gives_its_surplus_only(profile: str, seconds: float, asked: int, lost: int) -> None:
    """Of three pods with a minimum of one, two may go while the job is protected; all of them afterwards."""
    victim = a_job("e", creation_rank=1, tasks=[running(f"e-{number}") for number in range(3)], minimum=1)
    taker = a_job("p", priority=75, tasks=[a_task("p-0", gpus=asked)])
    expected = {f"e-{number}": "Running" if number < 3 - lost else "Releasing" for number in range(3)}
    case = a_case(
        nodes=[a_node(gpus=3)],
        queues=[a_queue(quota=3)],
        actions=["preempt"],
        jobs=[taker, victim],
        limits=(0, lost, 1 if lost else 0),
        expect_tasks={
            **said(p_0="Pipelined node0" if lost else "Pending"),
            **{name: {**an_expectation(status), "gpus_requested": None} for name, status in expected.items()},
        },
    )
    check(profile, protected(case, preempt=seconds))


def test_consolidation_does_not_mind_the_min_runtime(profile: str) -> None:
    """A job that started a minute ago is moved, though it is protected from preemption and reclaim for an hour."""
    jobs = [
        a_job("x", tasks=[running("x-0", "node0")]),
        a_job("y", creation_rank=1, tasks=[running("y-0", "node1")]),
        a_job("p", creation_rank=2, tasks=[a_task("p-0", gpus=2)]),
    ]
    case = a_case(
        nodes=[a_node("node0"), a_node("node1")],
        queues=[a_queue(quota=4)],
        jobs=jobs,
        actions=["consolidation"],
        limits=(0, 1, 2),
        expect_tasks=said(x_0="Running node0", y_0="Pipelined node0", p_0="Pipelined node1"),
    )
    check(profile, protected(case, preempt=3600, reclaim=3600))


# -- queues bound by CPU and memory ------------------------------------------------------------------------------------


def cpu_job(name: str, *, queue: str, rank: int, cores: int = 1, **fields: Any) -> JSON:
    """Return a job of one task that asks for cores and no GPU."""
    task = a_task(f"{name}-0", gpus=0, **fields)
    task["requests"] = {**task["requests"], "cpu_milli": cores * 1000}
    return a_job(name, queue=queue, creation_rank=rank, tasks=[task])


def cpu_node(cores: int) -> JSON:
    """Return a node without GPUs."""
    node = a_node(gpus=0)
    return {**node, "allocatable": {**node["allocatable"], "cpu_milli": cores * 1000}}


def cpu_queue(name: str, *, quota: int, rank: int = 0, limit: int = -1, weight: float = 1) -> JSON:
    """Return a queue with a quota of cores."""
    share = {"quota": quota if quota < 0 else quota * 1000, "limit": limit, "over_quota_weight": weight}
    return a_queue(name, quota=0, rank=rank, cpu_milli=share)


def test_cores_are_reclaimed_like_gpus(profile: str) -> None:
    """Two of four cores are each queue's quota: the third and fourth of the first go one by one to the second."""
    jobs = [
        *(cpu_job(f"a{each}", queue="a", rank=each, state="Running", node="node0") for each in range(4)),
        cpu_job("b0", queue="b", rank=4),
        cpu_job("b1", queue="b", rank=5),
        cpu_job("b2", queue="b", rank=6),
    ]
    case = a_case(
        nodes=[cpu_node(4)],
        queues=[cpu_queue("a", quota=2), cpu_queue("b", quota=2, rank=1)],
        jobs=jobs,
        actions=["reclaim"],
        limits=(0, 2, 2),
        expect_tasks=said(
            a0_0="Running", a1_0="Running", a2_0="Releasing", a3_0="Releasing", b0_0="Pipelined", b1_0="Pipelined"
        )
        | said(b2_0="Pending"),
    )
    check(profile, case)


def test_a_limit_of_cores_binds_at_every_level(profile: str) -> None:
    """The department may hold two cores: the third job waits, though its own queue has no limit."""
    department = {**cpu_queue("default", quota=-1, limit=2000), "parent": None}
    jobs = [cpu_job(f"j{each}", queue="a", rank=each) for each in range(3)]
    case = a_case(
        nodes=[cpu_node(8)],
        departments=[department],
        queues=[cpu_queue("a", quota=-1)],
        jobs=jobs,
        limits=(2, 0, 0),
        expect_tasks=said(j0_0="Binding node0", j1_0="Binding node0", j2_0="Pending"),
    )
    check(profile, case)


def test_a_limit_below_the_quota_is_what_a_queue_may_claim(profile: str) -> None:
    """With a quota of 4 and a limit of 1 a queue reclaims one GPU and no more."""
    jobs = [a_job(f"a{each}", queue="a", creation_rank=each, tasks=[running(f"a{each}-0")]) for each in range(2)] + [
        a_job(f"b{each}", queue="b", creation_rank=2 + each) for each in range(2)
    ]
    case = a_case(
        queues=[queue("a", 0), {**queue("b", 4, rank=1), "gpu": {"quota": 4, "limit": 1, "over_quota_weight": 1}}],
        jobs=jobs,
        actions=["reclaim"],
        limits=(0, 1, 1),
        expect_tasks=said(a0_0="Running", a1_0="Releasing", b0_0="Pipelined", b1_0="Pending"),
    )
    check(profile, case)
