"""How reports of grouping cases read: every difference with its reason, then counts by file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

from rich.console import Console

from spinney.explain.amounts import counted
from spinney.sim.cases.reporting import summary, verdict_table
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
    console.print(
        verdict_table(
            "grouping cases by file", "file", _VERDICTS, ((path.name, report.verdict) for path, report in reports)
        )
    )
    unasked = Counter(
        f"section {each.section}: {each.why}"
        for _, report in reports
        if report.verdict == "does not apply"
        for each in report.reasons
    )
    for why, number in unasked.most_common():
        console.print(f"does not apply ({counted(number, 'case')}): {why}", highlight=False, markup=False)
    counts = Counter[str](report.verdict for _, report in reports)
    console.print(summary("grouping case", _VERDICTS, counts), style="bold", highlight=False)
