"""Cases in front of the real scheduler: what the loader understands, and what comes out."""

from typing import Any

import msgspec
import pytest

from spinney.api.struct import JSON
from spinney.sim.cases.comparing import SessionOutcome
from spinney.sim.cases.format import Case
from spinney.sim.cases.running import CaseReport, run_case
from spinney.sim.cases.scheduling import SessionScheduler, UnknownProfile
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task, an_expectation


def outcome(case: JSON) -> SessionOutcome:
    return SessionScheduler().run(msgspec.convert(case, Case), case["actions"])


def statuses(case: JSON) -> dict[str, tuple[str, str | None]]:
    return {name: (task.status, task.node) for name, task in outcome(case).tasks.items()}


def run(case: JSON) -> CaseReport:
    return run_case(msgspec.convert(case, Case), SessionScheduler())


def requesting(task: JSON, kind: str, **fields: Any) -> JSON:
    """Return ``task`` with another kind of GPU request."""
    return {**task, "requests": {**task["requests"], "gpu_kind": kind, "gpus": 0, **fields}}


def test_a_pending_job_is_bound() -> None:
    """A job that fits is bound within the session, and its start is known."""
    report = run(a_case(expect_jobs={"job": an_expectation("Binding", "node0")}))
    assert report.passed


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    """A gang that does not fit as a whole stays pending as a whole."""
    tasks = [a_task(f"job-{number}") for number in range(3)]
    case = a_case(queues=[a_queue(quota=3)], jobs=[a_job("job", tasks=tasks)])
    assert {status for status, _ in statuses(case).values()} == {"Pending"}


def test_running_tasks_hold_their_resources() -> None:
    """What runs, or is terminating, is not free; what is terminating is promised."""
    jobs = [
        a_job("old", tasks=[a_task("old-0", state="Running", node="node0")]),
        a_job("going", tasks=[a_task("going-0", state="Releasing", node="node0")]),
        a_job("new"),
    ]
    assert statuses(a_case(queues=[a_queue(quota=3)], jobs=jobs)) == {
        "old-0": ("Running", "node0"),
        "going-0": ("Releasing", "node0"),
        "new-0": ("Pipelined", "node0"),
    }


def test_a_failed_task_holds_nothing() -> None:
    """A failed task keeps its name on a node but nothing of it."""
    jobs = [
        a_job("failed", tasks=[a_task("failed-0", state="Failed", node="node0", gpus=2)]),
        a_job("job", tasks=[a_task("job-0", gpus=2)]),
    ]
    found = statuses(a_case(jobs=jobs))
    assert (found["failed-0"], found["job-0"]) == (("Failed", "node0"), ("Binding", "node0"))


def test_a_limit_keeps_a_job_out() -> None:
    """A queue never exceeds its limit, though the cluster has room."""
    case = a_case(queues=[a_queue(limit=1)], jobs=[a_job("one"), a_job("two")])
    assert sorted(status for status, _ in statuses(case).values()) == ["Binding", "Pending"]


def test_the_limit_of_a_department_counts_all_its_queues() -> None:
    """What any queue of a department holds counts against the department's limit."""
    department = {**a_queue("default", quota=1, limit=1), "parent": None}
    case = a_case(
        queues=[a_queue("queue0"), a_queue("queue1", rank=1)],
        jobs=[a_job("one"), a_job("two", queue="queue1")],
        departments=[department],
    )
    assert statuses(case) == {"one-0": ("Binding", "node0"), "two-0": ("Pending", None)}


def test_a_non_preemptible_job_stays_within_quota() -> None:
    """A job that cannot be preempted may not exceed the quota, where a preemptible one may."""
    stubborn = a_job("job", tasks=[a_task("job-0", gpus=2)], priority=100, preemptible=False)
    assert statuses(a_case(jobs=[stubborn]))["job-0"] == ("Pending", None)
    assert statuses(a_case(jobs=[{**stubborn, "priority": 50, "preemptible": True}]))["job-0"] == ("Binding", "node0")


def test_queues_take_turns_by_what_they_hold() -> None:
    """With one device left, the queue that stays within its quota gets it, though its job is younger."""
    jobs = [
        a_job("held", tasks=[a_task("held-0", state="Running", node="node0")]),
        a_job("old", created_minutes_ago=9),
        a_job("young", queue="queue1", creation_rank=1),
    ]
    case = a_case(queues=[a_queue("queue0"), a_queue("queue1", rank=1)], jobs=jobs)
    found = statuses(case)
    assert (found["old-0"][0], found["young-0"][0]) == ("Pending", "Binding")


def test_fractions_share_a_device_and_the_next_round_remembers_which() -> None:
    """Two halves go to one device, and after the fold a whole device is still free."""
    half = [requesting(a_task(f"half-{number}"), "fraction", gpu_fraction=0.5) for number in range(2)]
    whole = a_job("whole", creation_rank=1, created_minutes_ago=0.5)
    case = a_case(
        queues=[a_queue(quota=4)],
        jobs=[a_job("half", tasks=half), whole],
        expect_jobs={"half": an_expectation("Running", "node0"), "whole": an_expectation("Running", "node0")},
        rounds={"mode": "multi_round", "until_match": 1, "after_match": 2},
        limits=(3, 0, 0),
    )
    assert run(case).differences == ()


def test_gpu_memory_is_a_share_of_the_node_device() -> None:
    """A request for GPU memory is granted as its part of the device, and counts as no requested GPU."""
    task = requesting(a_task("job-0"), "gpu_memory", gpu_memory=40)
    placed = outcome(a_case(jobs=[a_job("job", tasks=[task])])).tasks["job-0"]
    assert (placed.status, placed.gpus_accepted, placed.gpus_requested) == ("Binding", 0.4, 0)


def test_mig_instances_count_by_their_slices() -> None:
    """A MIG instance is a resource of its own on the node, and counts by its slices against the limit."""
    node = a_node(gpus=0, mig_strategy="mixed", mig_enabled=True)
    node["allocatable"]["mig"] = {"nvidia.com/mig-3g.20gb": 2}
    task = requesting(a_task("job-0"), "mig", mig={"nvidia.com/mig-3g.20gb": 1})
    jobs = [a_job("job", tasks=[task])]
    assert statuses(a_case(nodes=[node], queues=[a_queue(limit=3)], jobs=jobs))["job-0"][0] == "Binding"
    assert statuses(a_case(nodes=[node], queues=[a_queue(limit=2)], jobs=jobs))["job-0"][0] == "Pending"


def test_a_claim_is_allocated_and_kept_between_rounds() -> None:
    """A device claim is allocated where its task goes, and the next round finds it so."""
    task = requesting(a_task("job-0"), "dra", dra_claims=["claim"])
    dra = {
        "device_classes": ["gpu.example.com"],
        "slices": [{"name": "s", "node": "node0", "pool": "node0", "driver": "gpu.example.com", "devices": ["0"]}],
        "claims": [
            {
                "name": "claim",
                "labels": {"kai.scheduler/queue": "queue0"},
                "device_class": "gpu.example.com",
                "count": 1,
            }
        ],
    }
    node = a_node(gpus=1, gpus_device_plugin=0, gpus_dra=1, physical_gpus=0)
    case = a_case(
        nodes=[node],
        jobs=[a_job("job", tasks=[task])],
        dra=dra,
        expect_jobs={"job": an_expectation("Running", "node0", gpus=0)},
        rounds={"mode": "multi_round", "until_match": 1, "after_match": 1},
    )
    first = outcome(case)
    assert first.claims[0].reserved_for_tasks == ("job-0",)
    assert [device.device for device in first.claims[0].allocated_devices] == ["0"]
    assert run(case).differences == ()


def test_taints_keep_tasks_away() -> None:
    """A tainted node takes no task of a case, whose tasks tolerate nothing."""
    case = a_case(nodes=[a_node(taints=[{"key": "maintenance", "effect": "NoSchedule"}])])
    assert statuses(case)["job-0"] == ("Pending", None)


def test_a_task_without_requests_is_placed() -> None:
    """A best-effort task asks for nothing but a pod slot."""
    task = a_task("job-0", gpus=0)
    task["requests"].update(cpu_milli=0, memory_bytes=0)
    case = a_case(nodes=[a_node(gpus=0)], jobs=[a_job("job", tasks=[task], best_effort=True)])
    assert statuses(case)["job-0"] == ("Binding", "node0")


def test_an_old_promise_is_kept_within_the_session() -> None:
    """A task that was promised a node before the session holds its claim on it, and is not counted again."""
    jobs = [
        a_job("going", tasks=[a_task("going-0", state="Releasing", node="node0", gpus=2)]),
        a_job("promised", tasks=[a_task("promised-0", state="Pipelined", node="node0", gpus=2)]),
        a_job("late", creation_rank=1),
    ]
    after = outcome(a_case(queues=[a_queue(quota=8)], jobs=jobs))
    assert (after.tasks["promised-0"].status, after.tasks["late-0"].status) == ("Pipelined", "Pending")
    assert after.pipelines == 0


def test_failing_binds_end_the_session_with_nothing_bound() -> None:
    """When every bind fails the session still ends, and the tasks are pending again."""
    after = outcome(a_case(faults={"every_bind_fails": True}))
    assert (after.tasks["job-0"].status, after.binds) == ("Pending", 0)


def test_nodes_report_idle_and_releasing_devices() -> None:
    """A shared device counts as one idle GPU less, and as releasing when all its users are terminating."""
    sharer = requesting(a_task("job-0", state="Releasing", node="node0"), "fraction", gpu_fraction=0.5)
    case = a_case(
        jobs=[a_job("job", tasks=[{**sharer, "gpu_groups": ["0"]}])],
        expect_nodes={"node0": {"idle_gpus": 1, "releasing_gpus": 1}},
    )
    assert run(case).differences == ()


def test_a_case_runs_the_same_twice() -> None:
    """Running a case again gives the same outcome, to the last node."""
    tasks = [a_task(f"job-{number}") for number in range(6)]
    case = a_case(
        nodes=[a_node(f"node{number}") for number in range(4)],
        queues=[a_queue(quota=8)],
        jobs=[a_job("job", tasks=tasks, minimum=2), a_job("other", creation_rank=1)],
    )
    assert outcome(case) == outcome(case)


def test_an_unknown_profile_is_refused() -> None:
    """A profile that does not exist is named, with those that do."""
    with pytest.raises(UnknownProfile, match="kai-compat and default"):
        SessionScheduler("fast")
