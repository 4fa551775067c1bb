"""Running a case: its sessions in order, each on the cluster the one before left behind; and how reports read.

``single_session`` runs the actions once and compares what the session says. ``multi_round`` runs a number of rounds,
compares the cluster as a fresh session finds it, and then goes on for more rounds, comparing right after the actions
of each: an outcome that is right must also stay.

Between rounds pods live on: what was bound runs, what was only promised is pending again (promises are not kept
between sessions), what was evicted is gone and recreated under its name, unless the job's pods are to stay terminating.
Ages, ranks and stale marks do not advance.

Where a case does not say which device a running task shares, the task was given one of its own (``auto-<task>``). On a
node with fewer devices than that makes, such tasks are put together again, first come first served.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec
from rich.console import Console
from rich.table import Table

from spinney.api.struct import JSON
from spinney.cluster.devices import DEVICE
from spinney.explain.amounts import counted
from spinney.sim.cases import format as cases
from spinney.sim.cases.comparing import SessionOutcome, TaskOutcome, differences, over_limits
from spinney.sim.cases.format import Case, Task
from spinney.sim.cases.reading import UnreadableCase


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


_VERDICTS: Final = ("passed", "failed")


def as_json(report: CaseReport) -> JSON:
    """Return one case's entry of the JSON list."""
    return {
        "id": report.case.id,
        "passed": report.passed,
        "skipped": False,
        "differences": list(report.differences),
        "rounds": [_round(outcome) for outcome in report.rounds],
    }


def unreadable_as_json(case: UnreadableCase) -> JSON:
    """Return the entry of a case that could not be read: it has failed, and no session ran."""
    return {"id": case.id, "passed": False, "skipped": False, "differences": [case.reason], "rounds": []}


def print_reports(console: Console, reports: Sequence[tuple[Path, CaseReport]]) -> None:
    """Print every difference, then how many cases passed and failed, by file and by feature."""
    for path, report in reports:
        if report.differences:
            console.print(f"{path.name}: {report.case.id}", style="bold", highlight=False, markup=False)
            for line in report.differences:
                console.print(f"  {line}", highlight=False, markup=False)
    console.print(_table("file", ((path.name, report) for path, report in reports)))
    console.print(
        _table("feature", ((feature, report) for _, report in reports for feature in sorted(report.case.features)))
    )
    counts = Counter(_verdict(report) for _, report in reports)
    console.print(summary("case", _VERDICTS, counts), style="bold", highlight=False)


def _verdict(report: CaseReport) -> str:
    return "passed" if report.passed else "failed"


def _table(heading: str, entries: Iterable[tuple[str, CaseReport]]) -> Table:
    return verdict_table(
        f"cases by {heading}", heading, _VERDICTS, ((key, _verdict(report)) for key, report in entries)
    )


def summary(noun: str, verdicts: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return the one line that says how many cases had which verdict."""
    return f"{counted(sum(counts.values()), noun)}: {', '.join(f'{counts[each]} {each}' for each in verdicts)}"


def verdict_table(title: str, heading: str, verdicts: Sequence[str], entries: Iterable[tuple[str, str]]) -> Table:
    """Return how many cases had which verdict; each entry is what a case is counted under, and its verdict."""
    counts: dict[str, Counter[str]] = {}
    for key, verdict in entries:
        counts.setdefault(key, Counter())[verdict] += 1
    table = Table(title=title, title_justify="left")
    table.add_column(heading, no_wrap=True)
    for column in (*verdicts, "total"):
        table.add_column(column, justify="right")
    for key, count in sorted(counts.items()):
        table.add_row(key, *(str(count[each]) for each in verdicts), str(count.total()))
    return table


def _round(outcome: SessionOutcome) -> JSON:
    return {
        "tasks": {name: {"status": task.status, "node": task.node} for name, task in outcome.tasks.items()},
        "binds": outcome.binds,
        "evictions": outcome.evictions,
        "pipelines": outcome.pipelines,
    }
