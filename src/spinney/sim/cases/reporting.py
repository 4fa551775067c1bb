"""How reports of cases read: as JSON, and as tables by file and by feature with every difference."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from spinney.api.struct import JSON
from spinney.sim.cases.outcome import Outcome
from spinney.sim.cases.running import CaseReport


def as_json(report: CaseReport) -> JSON:
    """Return one case's entry of the JSON list."""
    return {
        "id": report.case.id,
        "passed": report.passed,
        "skipped": report.skipped,
        "differences": list(report.differences),
        "rounds": [_round(outcome) for outcome in report.rounds],
    }


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
        waits = ", ".join(f"{action} ({count} cases)" for action, count in sorted(missing.items()))
        console.print(f"actions not built yet: {waits}", highlight=False)


def summary(counts: "Counter[str]") -> str:
    """Return the one line that says how it went."""
    total = sum(counts.values())
    return f"{total} cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped" + (
        f", {counts['partial']} run without some actions" if counts["partial"] else ""
    )


def _verdict(report: CaseReport) -> str:
    if report.skipped:
        return "skipped"
    if report.partial:
        return "partial"
    return "passed" if report.passed else "failed"


def _table(heading: str, entries: Iterable[tuple[str, CaseReport]]) -> Table:
    table = Table(heading, title=f"cases by {heading}", title_justify="left")
    verdicts = ("passed", "failed", "skipped", "partial")
    counts: dict[str, Counter[str]] = {}
    for key, report in entries:
        counts.setdefault(key, Counter())[_verdict(report)] += 1
    shown = [verdict for verdict in verdicts if verdict != "partial" or any(each[verdict] for each in counts.values())]
    for verdict in (*shown, "total"):
        table.add_column(verdict, justify="right")
    for key, each in sorted(counts.items()):
        table.add_row(key, *(str(each[verdict]) for verdict in shown), str(sum(each.values())))
    return table


def _round(outcome: Outcome) -> JSON:
    return {
        "tasks": {name: {"status": task.status, "node": task.node} for name, task in outcome.tasks.items()},
        "binds": outcome.binds,
        "evictions": outcome.evictions,
        "pipelines": outcome.pipelines,
    }
