"""Rounds: what is compared when, and what one session leaves to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from spinney.api.struct import JSON
from spinney.sim.cases.comparing import JobOutcome, SessionOutcome, TaskOutcome
from spinney.sim.cases.format import Case
from spinney.sim.cases.running import CaseReport, as_json, run_case, settled
from tests.sim.cases.builders import a_case, a_job, a_task, an_expectation

STARTED = JobOutcome(started_seconds_ago=60)


@dataclass
class Script:
    """A scheduler that says what it is told, session by session; without actions it says what it finds."""

    outcomes: list[dict[str, tuple[str, str | None]]]
    seen: list[dict[str, tuple[str, str | None]]] = field(default_factory=list)

    def run(self, case: Case, actions: Sequence[str]) -> SessionOutcome:
        found = {task.name: (str(task.state), task.node) for job in case.jobs for task in job.tasks}
        self.seen.append(found)
        after = self.outcomes.pop(0) if actions else found
        tasks = {
            name: TaskOutcome(status=status, node=node, gpus_requested=1) for name, (status, node) in after.items()
        }
        binds = sum(status == "Binding" for status, _ in after.values())
        return SessionOutcome(tasks=tasks, jobs={job.name: STARTED for job in case.jobs}, binds=binds)


def run(case: JSON, script: Script) -> CaseReport:
    return run_case(msgspec.convert(case, Case), script)


def multi_round(until: int, after: int) -> JSON:
    return {"mode": "multi_round", "until_match": until, "after_match": after}


def test_a_single_session_is_compared_as_it_ends() -> None:
    """Statuses inside the session are compared without being folded."""
    case = a_case(expect_jobs={"job": an_expectation("Binding", "node0")})
    assert run(case, Script([{"job-0": ("Binding", "node0")}])).passed


def test_differences_say_what_was_expected_and_found() -> None:
    """Each difference names its subject, the field, what was expected and what was found."""
    case = a_case(expect_jobs={"job": an_expectation("Running", "node0", gpus=2)}, limits=(0, 0, 0))
    report = run(case, Script([{"job-0": ("Binding", "node1")}]))
    assert report.differences == (
        "task job-0: status: expected Running, found Binding",
        "task job-0: node: expected node0, found node1",
        "job job: gpus_requested: expected 2, found 1",
        "binds: expected at most 0, found 1",
    )


def test_rounds_fold_and_must_stay_stable() -> None:
    """What was bound runs in the next round, and an expected outcome must hold in every round after the match."""
    case = a_case(expect_jobs={"job": an_expectation("Running", "node0")}, rounds=multi_round(1, 2))
    script = Script(
        [{"job-0": ("Binding", "node0")}, {"job-0": ("Running", "node0")}, {"job-0": ("Releasing", "node0")}]
    )
    report = run(case, script)
    assert [seen["job-0"][0] for seen in script.seen] == ["Pending", "Running", "Running", "Running"]
    assert report.differences == ("round 3: task job-0: status: expected Running, found Releasing",)


def test_promises_and_evicted_pods_are_pending_in_the_next_round() -> None:
    """A promise is forgotten and an evicted pod recreated; neither keeps its node."""
    tasks = [a_task("job-0"), a_task("job-1", state="Running", node="node0")]
    case = a_case(jobs=[a_job("job", tasks=tasks)], rounds=multi_round(1, 0), limits=(9, 9, 9))
    script = Script([{"job-0": ("Pipelined", "node0"), "job-1": ("Releasing", "node0")}])
    run(case, script)
    assert script.seen[-1] == {"job-0": ("Pending", None), "job-1": ("Pending", None)}


def test_a_deleted_job_stays_releasing() -> None:
    """The pods of a job that is being deleted stay where they are, terminating."""
    job = a_job("job", tasks=[a_task("job-0", state="Releasing", node="node0")], after_release="stay_releasing")
    script = Script([{"job-0": ("Releasing", "node0")}])
    run(a_case(jobs=[job], rounds=multi_round(1, 0)), script)
    assert script.seen[-1] == {"job-0": ("Releasing", "node0")}


def test_made_up_devices_are_shared_where_there_are_too_few() -> None:
    """In a case whose input is over-committed, tasks on devices nobody named are put together on one."""

    def half(name: str) -> JSON:
        task = a_task(name, state="Running", node="node0", gpu_groups=[f"auto-{name}"])
        task["requests"].update(gpu_kind="fraction", gpus=0, gpu_fraction=0.5)
        return task

    case = msgspec.convert(a_case(jobs=[a_job("job", tasks=[half("job-0"), half("job-1")])]), Case)
    assert settled(case) is case
    (job,) = settled(msgspec.structs.replace(case, caveats=("input-overcommitted",))).jobs
    assert [task.gpu_groups for task in job.tasks] == [("auto-job-0",), ("auto-job-0",)]


def test_a_raising_scheduler_fails_the_case_only() -> None:
    """A case during which the scheduler raises has failed, and says after which round."""
    report = run(a_case(), Script([]))
    assert report.differences == ("after 0 rounds the scheduler raised IndexError: pop from empty list",)


def test_the_json_entry_has_the_raw_outcome_of_every_session() -> None:
    """The JSON entry of a case lists each session's statuses, nodes and counts in order."""
    case = a_case(expect_jobs={"job": an_expectation("Running", "node0")}, rounds=multi_round(1, 1))
    report = run(case, Script([{"job-0": ("Binding", "node0")}, {"job-0": ("Running", "node0")}]))
    assert as_json(report) == {
        "id": "small-0001",
        "passed": True,
        "skipped": False,
        "differences": [],
        "rounds": [
            {"tasks": {"job-0": {"status": "Binding", "node": "node0"}}, "binds": 1, "evictions": 0, "pipelines": 0},
            {"tasks": {"job-0": {"status": "Running", "node": "node0"}}, "binds": 0, "evictions": 0, "pipelines": 0},
        ],
    }
