"""Running a case: its sessions in order, each on the cluster the one before left behind.

``single_session`` runs the actions once and compares what the session says. ``multi_round`` runs a number of rounds,
compares the cluster as a fresh session finds it, and then goes on for more rounds, comparing right after the actions
of each: an outcome that is right must also stay.

Between rounds pods live on: what was bound runs, what was only promised is pending again (promises are not kept
between sessions), what was evicted is gone and recreated under its name, unless the job's pods are to stay terminating.
Ages, ranks and stale marks do not advance.

Some inputs cannot be: more shared devices on a node than it has. Where a case does not say which device a running task
shares, each such task was given one of its own (``auto-<task>``). On a node with fewer devices than that makes, those
tasks are put together again, first come first served, which is what the author of such a case had in mind.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from spinney.cluster.devices import DEVICE
from spinney.sim.cases import format as cases
from spinney.sim.cases.comparing import SessionOutcome, TaskOutcome, differences, over_limits
from spinney.sim.cases.format import Case, Task


class CaseScheduler(Protocol):
    """A scheduler that can be put in front of a case's cluster."""

    def run(self, case: Case, actions: Sequence[str]) -> SessionOutcome:
        """Open a session on the cluster of ``case``, run ``actions`` in order, and say what came of it."""


class CaseReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a case went. ``rounds`` are the raw outcomes after the actions of every session that ran some, in order."""

    case: Case
    differences: tuple[str, ...] = ()
    rounds: tuple[SessionOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.differences


def run_case(case: Case, scheduler: CaseScheduler) -> CaseReport:
    rounds: list[SessionOutcome] = []
    found: list[str] = []
    try:
        found.extend(_run(settled(case), scheduler, rounds))
    except Exception as error:  # noqa: BLE001 - a case that breaks the scheduler has failed; the others still run
        found.append(f"after {len(rounds)} rounds the scheduler raised {type(error).__name__}: {error}")
    return CaseReport(case=case, differences=tuple(found), rounds=tuple(rounds))


def _run(case: Case, scheduler: CaseScheduler, rounds: list[SessionOutcome]) -> Iterator[str]:
    """Run every session, appending to ``rounds``; yield differences as they are found."""

    def session(state: Case) -> SessionOutcome:
        outcome = scheduler.run(state, case.actions)
        rounds.append(outcome)
        return outcome

    def labelled(lines: list[str]) -> Iterator[str]:
        return (f"round {len(rounds)}: {line}" for line in lines)

    limits = case.expected.limits_per_round
    if case.rounds.mode == "single_session":
        outcome = session(case)
        if not case.expected.must_terminate:
            yield from (*differences(case, outcome), *over_limits(limits, outcome))
        return
    state = case
    for _ in range(case.rounds.until_match):
        outcome = session(state)
        yield from labelled(over_limits(limits, outcome))
        state = fold(state, outcome)
    yield from labelled(differences(case, scheduler.run(state, ()), tried=False))
    for _ in range(case.rounds.after_match):
        outcome = session(state)
        yield from labelled([*differences(case, outcome), *over_limits(limits, outcome)])
        state = fold(state, outcome)


_STARTED = frozenset({"Running", "Binding", "Bound"})


def fold(case: Case, outcome: SessionOutcome) -> Case:
    """Return the case whose cluster is what ``outcome`` makes of this one's."""
    jobs = tuple(_fold_job(job, outcome) for job in case.jobs)
    dra = case.dra
    if dra is not None:
        dra = msgspec.structs.replace(dra, claims=outcome.claims)
    return msgspec.structs.replace(case, jobs=jobs, dra=dra)


def _fold_job(job: cases.Job, outcome: SessionOutcome) -> cases.Job:
    tasks = tuple(
        _fold_task(task, outcome.tasks[task.name], stays_releasing=job.after_release == "stay_releasing")
        for task in job.tasks
    )
    started = 1.0 if any(task.state in _STARTED for task in tasks) else None
    return msgspec.structs.replace(job, tasks=tasks, started_minutes_ago=started)


def _fold_task(task: Task, after: TaskOutcome, *, stays_releasing: bool) -> Task:
    match after.status:
        case "Binding":
            return msgspec.structs.replace(task, state="Running", node=after.node, gpu_groups=after.gpu_groups)
        case "Pipelined" | "Releasing" if not (stays_releasing and after.status == "Releasing"):
            return msgspec.structs.replace(task, state="Pending", node=None, gpu_groups=())
        case _:
            return msgspec.structs.replace(task, state=after.status, node=after.node, gpu_groups=after.gpu_groups)


_CAVEAT = "input-overcommitted"
_MADE_UP = "auto-"
_HOLDING = frozenset({"Running", "Binding", "Bound", "Releasing"})


def settled(case: Case) -> Case:
    """Return the case with made-up devices shared where it says that its input is over-committed."""
    if _CAVEAT not in case.caveats:
        return case
    groups = _shared(case)

    def with_group(task: Task) -> Task:
        group = groups.get(task.name)
        return task if group is None else msgspec.structs.replace(task, gpu_groups=(group,))

    def with_groups(job: cases.Job) -> cases.Job:
        return msgspec.structs.replace(job, tasks=tuple(map(with_group, job.tasks)))

    return msgspec.structs.replace(case, jobs=tuple(map(with_groups, case.jobs)))


def _shared(case: Case) -> dict[str, str]:
    """Return the device of each task that was given a made-up one."""
    chosen: dict[str, str] = {}
    room: dict[str, dict[str, int]] = {}
    memory = {node.name: node.gpu_memory for node in case.nodes}
    for job in case.jobs:
        for task in job.tasks:
            made_up = len(task.gpu_groups) == 1 and task.gpu_groups[0].startswith(_MADE_UP)
            if not made_up or task.state not in _HOLDING or task.node is None:
                continue
            devices = room.setdefault(task.node, {})
            parts = _parts(task, memory[task.node])
            group = next((group for group, free in devices.items() if free >= parts), task.gpu_groups[0])
            devices[group] = devices.get(group, DEVICE) - parts
            chosen[task.name] = group
    return chosen


def _parts(task: Task, device_memory: int) -> int:
    requests = task.requests
    if requests.gpu_kind == "gpu_memory":
        return -(-(requests.gpu_memory or 0) * DEVICE // device_memory)
    return round((requests.gpu_fraction or 0) * DEVICE)
