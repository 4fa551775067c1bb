"""Files of behaviour cases: the small ones of ``tests/data/cases``, and a collection that ``SPINNEY_CASES`` names."""

import os
from pathlib import Path

import pytest

from spinney.sim.cases.reading import read_cases
from spinney.sim.cases.running import run_case
from spinney.sim.cases.scheduling import SessionScheduler

OWN = Path(__file__).parents[2] / "data" / "cases"
COLLECTION = os.environ.get("SPINNEY_CASES")
FILES = [path for folder in (OWN, COLLECTION) if folder for path in sorted(Path(folder).glob("*.json"))]


def test_a_named_collection_is_there() -> None:
    """A folder that was asked for and holds no case fails the suite instead of being passed over."""
    assert list(OWN.glob("*.json"))
    assert COLLECTION is None or list(Path(COLLECTION).glob("*.json")), f"SPINNEY_CASES={COLLECTION}: no *.json there"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_passes(path: Path) -> None:
    """Every case passes in the profile that decides as KAI does."""
    (file,) = read_cases([path])
    assert file.warnings == ()
    scheduler = SessionScheduler("kai-compat")
    reports = [run_case(case, scheduler) for case in file.cases]
    assert {report.case.id: report.differences for report in reports if not report.passed} == {}
