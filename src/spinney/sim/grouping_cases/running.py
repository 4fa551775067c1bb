"""Running grouping cases, and how the reports read.

A case has passed, failed, was answered differently on purpose, or asks a question that does not apply.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

from rich.console import Console

from spinney.api.struct import JSON
from spinney.explain.amounts import counted
from spinney.sim.cases.running import summary, verdict_table
from spinney.sim.grouping_cases.answering import Unanswerable, answer
from spinney.sim.grouping_cases.comparing import CaseDifference, differences
from spinney.sim.grouping_cases.deviations import Reason, inapplicable, on_purpose
from spinney.sim.grouping_cases.reading import GroupingCase

Verdict = Literal["passed", "failed", "differs on purpose", "does not apply"]


@dataclass(frozen=True)
class GroupingReport:
    """How a case went."""

    case: GroupingCase
    verdict: Verdict
    answer: JSON | None = None
    differences: tuple[CaseDifference, ...] = ()
    reasons: tuple[Reason, ...] = field(default=())
    """Why it differs on purpose, or does not apply."""


def run(case: GroupingCase) -> GroupingReport:
    """Answer one case and judge the answer."""
    reason = inapplicable(case)
    if reason is not None:
        return GroupingReport(case, "does not apply", reasons=(reason,))
    try:
        found = answer(case)
    except Unanswerable as error:
        return GroupingReport(case, "does not apply", reasons=(Reason("12", f"nothing of ours is asked by {error}"),))
    except Exception as error:  # noqa: BLE001 - a case that breaks a rule has failed; the others still run
        broken = CaseDifference("error", f"the rule raised {type(error).__name__}: {error}")
        return GroupingReport(case, "failed", differences=(broken,))
    differing = tuple(differences(case.check, case.expect, found))
    if not differing:
        return GroupingReport(case, "passed", found)
    reasons = on_purpose(case, differing)
    return GroupingReport(case, "differs on purpose" if reasons else "failed", found, differing, reasons)


def as_json(report: GroupingReport) -> JSON:
    """Return one case's entry of the JSON list, with the raw answer."""
    return {
        "id": report.case.id,
        "check": report.case.check,
        "rule": report.case.rule or None,
        "passed": report.verdict == "passed",
        "skipped": report.verdict == "does not apply",
        "verdict": report.verdict,
        "reasons": [{"section": each.section, "why": each.why} for each in report.reasons],
        "differences": [str(each) for each in report.differences],
        "expected": report.case.expect,
        "answer": report.answer,
    }


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
