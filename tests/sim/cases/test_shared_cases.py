"""The collection of behaviour cases beside the repository, where there is one."""

from pathlib import Path

import pytest

from spinney.sim.cases import read_cases
from spinney.sim.cases.running import run_case
from spinney.sim.cases.scheduling import SessionScheduler

CASES = Path(__file__).parents[4] / "shared" / "cases" / "kai"
FILES = sorted(CASES.glob("*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="the collection of cases is not there")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_that_can_be_run_passes(path: Path) -> None:
    """Every case whose actions are built passes in the profile that decides as KAI does."""
    (file,) = read_cases([path])
    assert file.warnings == ()
    scheduler = SessionScheduler("kai-compat")
    reports = [run_case(case, scheduler) for case in file.cases]
    assert {report.case.id: report.differences for report in reports if not report.skipped and not report.passed} == {}
