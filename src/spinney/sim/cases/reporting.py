"""How reports of cases read: as JSON, and as tables by file and by feature with every difference."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from spinney.api.struct import JSON
from spinney.explain.amounts import counted
from spinney.sim.cases.comparing import SessionOutcome
from spinney.sim.cases.reading import UnreadableCase
from spinney.sim.cases.running import CaseReport

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
