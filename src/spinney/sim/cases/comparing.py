"""What a session left behind, in the words of the case format, and how it differs from what a case expects.

Tasks and jobs that are not listed are not asserted. What a case only hints at (which shared device, expectations whose
key matches no task, figures that were left over from a rolled-back attempt) is not compared.
"""

from collections.abc import Iterator, Mapping

import msgspec

from spinney.sim.cases import format as cases
from spinney.sim.cases.format import Case, Claim, Expectation


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One task after the session; the requests are as the scheduler understood them."""

    status: str
    node: str | None = None
    gpu_groups: tuple[str, ...] = ()
    gpus_accepted: float = 0  # the share of devices granted, 0 unless placed
    gpus_requested: float = 0
    cpu_milli_requested: int = 0
    memory_bytes_requested: int = 0


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One job after the session."""

    started_seconds_ago: float | None = None
    fit_error: cases.FitError | None = None


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Whole devices of one node after the session."""

    idle_gpus: float
    releasing_gpus: float


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A session after its actions: where everything stands, and how many operations were committed."""

    tasks: Mapping[str, TaskOutcome]
    jobs: Mapping[str, JobOutcome] = {}
    nodes: Mapping[str, NodeOutcome] = {}
    claims: tuple[Claim, ...] = ()
    binds: int = 0
    evictions: int = 0
    pipelines: int = 0


_STARTED = frozenset({"Binding", "Running"})


def differences(case: Case, outcome: SessionOutcome, *, tried: bool = True) -> list[str]:
    """Return every difference as a line; none if the outcome is as expected.

    A session in which nothing was ``tried`` has no reasons to give, so none are asked for.
    """
    return [*_jobs(case, outcome, tried=tried), *_tasks(case, outcome), *_nodes(case, outcome)]


def over_limits(limits: cases.Limits | None, outcome: SessionOutcome) -> list[str]:
    """Return which bounds on committed operations the session broke."""
    if limits is None:
        return []
    counts = (
        ("binds", outcome.binds, limits.binds_max),
        ("evictions", outcome.evictions, limits.evictions_max),
        ("pipelines", outcome.pipelines, limits.pipelines_max),
    )
    return [f"{what}: expected at most {most}, found {count}" for what, count, most in counts if count > most]


def _jobs(case: Case, outcome: SessionOutcome, *, tried: bool) -> Iterator[str]:
    jobs = {job.name: job for job in case.jobs}
    for name, expected in case.expected.jobs.items():
        if name not in jobs:
            yield f"job {name}: expected to exist, found no such job in the case"
            continue
        after = outcome.jobs.get(name)
        tasks = {task.name: outcome.tasks[task.name] for task in jobs[name].tasks}
        for task, found in tasks.items():
            yield from _placement(f"task {task}", expected, found)
        yield from _requests(f"job {name}", expected, list(tasks.values()))
        started = after.started_seconds_ago if after is not None else None
        yield from _start(f"job {name}", expected, started)
        if expected.fit_error is not None and tried:
            reported = after.fit_error if after is not None else None
            if reported != expected.fit_error:
                yield f"job {name}: fit_error: expected {expected.fit_error}, found {reported}"


def _tasks(case: Case, outcome: SessionOutcome) -> Iterator[str]:
    job_of = {task.name: job.name for job in case.jobs for task in job.tasks}
    for name, expected in case.expected.tasks.items():
        found = outcome.tasks.get(name)
        if found is None:
            yield f"task {name}: expected to exist, found no such task in the case"
            continue
        yield from _placement(f"task {name}", expected, found)
        yield from _requests(f"task {name}", expected, [found])
        after = outcome.jobs.get(job_of[name])
        yield from _start(f"task {name}", expected, after.started_seconds_ago if after is not None else None)


def _nodes(case: Case, outcome: SessionOutcome) -> Iterator[str]:
    for name, expected in case.expected.nodes.items():
        found = outcome.nodes.get(name)
        if found is None:
            yield f"node {name}: expected to exist, found no such node in the case"
            continue
        if found.idle_gpus != expected.idle_gpus:
            yield f"node {name}: idle_gpus: expected {expected.idle_gpus:g}, found {found.idle_gpus:g}"
        if found.releasing_gpus != expected.releasing_gpus:
            yield f"node {name}: releasing_gpus: expected {expected.releasing_gpus:g}, found {found.releasing_gpus:g}"


def _placement(subject: str, expected: Expectation, found: TaskOutcome) -> Iterator[str]:
    if found.status != expected.status:
        yield f"{subject}: status: expected {expected.status}, found {found.status}"
    if expected.node is not None and found.node != expected.node:
        yield f"{subject}: node: expected {expected.node}, found {found.node}"


def _requests(subject: str, expected: Expectation, found: list[TaskOutcome]) -> Iterator[str]:
    sums: tuple[tuple[str, float | None, float], ...] = (
        ("gpus_requested", expected.gpus_requested, round(sum(task.gpus_requested for task in found), 2)),
        ("gpus_accepted", expected.gpus_accepted, round(sum(task.gpus_accepted for task in found), 2)),
        ("cpu_milli_requested", expected.cpu_milli_requested, sum(task.cpu_milli_requested for task in found)),
        ("memory_bytes_requested", expected.memory_bytes_requested, sum(task.memory_bytes_requested for task in found)),
    )
    for field, wanted, total in sums:
        if wanted is not None and round(wanted, 2) != total:
            yield f"{subject}: {field}: expected {wanted:g}, found {total:g}"


def _start(subject: str, expected: Expectation, started_seconds_ago: float | None) -> Iterator[str]:
    if expected.status in _STARTED and started_seconds_ago is None:
        yield f"{subject}: start time: expected one, found none"
    older_than = expected.start_time_older_than_seconds
    if older_than is not None and (started_seconds_ago is None or started_seconds_ago < older_than):
        yield f"{subject}: start time: expected older than {older_than:g} s, found {started_seconds_ago} s"
