"""Running grouping cases: passed, failed, answered differently on purpose, or a question that does not apply."""

from dataclasses import dataclass, field
from typing import Literal

from spinney.api.struct import JSON
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
