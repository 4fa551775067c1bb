"""How reports of grouping cases read: every difference with its reason, then counts by file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

from rich.console import Console
from rich.table import Table

from spinney.explain.amounts import counted
from spinney.sim.grouping_cases.running import GroupingReport, Verdict

_VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


def print_reports(console: Console, reports: Sequence[tuple[Path, GroupingReport]]) -> None:
    """Print every difference and its reason, then how many cases had which verdict, by file."""
    for path, report in reports:
        if report.verdict in ("failed", "differs on purpose"):
            console.print(f"{path.name}: {report.case.id}: {report.verdict}", style="bold", highlight=False)
            for each in report.differences:
                console.print(f"  {each}", highlight=False, markup=False)
            for reason in report.reasons:
                console.print(f"  section {reason.section}: {reason.why}", highlight=False, markup=False)
    counts: dict[str, Counter[str]] = {}
    unasked: Counter[str] = Counter()
    for path, report in reports:
        counts.setdefault(path.name, Counter())[report.verdict] += 1
        if report.verdict == "does not apply":
            unasked.update(f"section {each.section}: {each.why}" for each in report.reasons)
    table = Table(title="grouping cases by file", title_justify="left")
    table.add_column("file", no_wrap=True)
    for column in (*_VERDICTS, "total"):
        table.add_column(column, justify="right")
    for name, count in sorted(counts.items()):
        table.add_row(name, *(str(count[each]) for each in _VERDICTS), str(count.total()))
    console.print(table)
    for why, number in unasked.most_common():
        console.print(f"does not apply ({counted(number, 'case')}): {why}", highlight=False, markup=False)
    total = sum(counts.values(), Counter[str]())
    verdicts = ", ".join(f"{total[each]} {each}" for each in _VERDICTS)
    console.print(f"{counted(total.total(), 'grouping case')}: {verdicts}", style="bold", highlight=False)
