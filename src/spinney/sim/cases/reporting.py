"""How reports of cases read: as JSON, and as tables by file and by feature with every difference."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from spinney.api.struct import JSON
from spinney.explain.amounts import counted
from spinney.sim.cases.outcome import SessionOutcome
from spinney.sim.cases.reading import UnreadableCase
from spinney.sim.cases.running import CaseReport

_ALWAYS = ("passed", "failed", "skipped")
_VERDICTS = (*_ALWAYS, "partly run, agrees", "partly run, differs")


def as_json(report: CaseReport) -> JSON:
    """Return one case's entry of the JSON list."""
    return {
        "id": report.case.id,
        "passed": report.passed,
        "skipped": report.skipped,
        "differences": list(report.differences),
        "rounds": [_round(outcome) for outcome in report.rounds],
    }


def unreadable_as_json(case: UnreadableCase) -> JSON:
    """Return the entry of a case that could not be read: it has failed, and no session ran."""
    return {"id": case.id, "passed": False, "skipped": False, "differences": [case.reason], "rounds": []}


def print_reports(console: Console, reports: Sequence[tuple[Path, CaseReport]]) -> None:
    """Print every difference, then how many cases passed, failed and were skipped, by file and by feature."""
    for path, report in reports:
        if report.differences:
            actions = ", ".join(report.missing_actions)
            note = f" (run without {actions})" if report.partial else ""
            console.print(f"{path.name}: {report.case.id}{note}", style="bold", highlight=False, markup=False)
            for line in report.differences:
                console.print(f"  {line}", highlight=False, markup=False)
    console.print(_table("file", ((path.name, report) for path, report in reports)))
    console.print(
        _table("feature", ((feature, report) for _, report in reports for feature in sorted(report.case.features)))
    )
    counts = Counter(_verdict(report) for _, report in reports)
    console.print(summary(counts), style="bold", highlight=False)
    missing = Counter(action for _, report in reports for action in report.missing_actions)
    if missing:
        waits = ", ".join(f"{action} ({counted(count, 'case')})" for action, count in sorted(missing.items()))
        console.print(f"actions not built yet: {waits}", highlight=False)


def summary(counts: Mapping[str, int]) -> str:
    """Return the one line that says how it went."""
    shown = [f"{counts[verdict]} {verdict}" for verdict in _VERDICTS if verdict in _ALWAYS or counts[verdict]]
    return f"{counted(sum(counts.values()), 'case')}: {', '.join(shown)}"


def _verdict(report: CaseReport) -> str:
    if report.skipped:
        return "skipped"
    if report.partial:
        return "partly run, differs" if report.differences else "partly run, agrees"
    return "passed" if report.passed else "failed"


def _table(heading: str, entries: Iterable[tuple[str, CaseReport]]) -> Table:
    table = Table(title=f"cases by {heading}", title_justify="left")
    counts: dict[str, Counter[str]] = {}
    for key, report in entries:
        counts.setdefault(key, Counter())[_verdict(report)] += 1
    shown = [each for each in _VERDICTS if each in _ALWAYS or any(count[each] for count in counts.values())]
    table.add_column(heading, no_wrap=True)
    for column in (*shown, "total"):
        table.add_column(column, justify="right")
    for key, count in sorted(counts.items()):
        table.add_row(key, *(str(count[each]) for each in shown), str(count.total()))
    return table


def _round(outcome: SessionOutcome) -> JSON:
    return {
        "tasks": {name: {"status": task.status, "node": task.node} for name, task in outcome.tasks.items()},
        "binds": outcome.binds,
        "evictions": outcome.evictions,
        "pipelines": outcome.pipelines,
    }
