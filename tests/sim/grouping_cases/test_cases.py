"""Grouping cases: our own files in the format, and what a report says."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from spinney.sim.grouping_cases.reading import GroupingCase, read
from spinney.sim.grouping_cases.running import run

FILES = sorted((Path(__file__).parents[2] / "data" / "grouping").glob("*.json"))
CASES = read(FILES)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[case.id for _, case in CASES])
def test_a_case_of_ours_has_the_verdict_it_names(case: GroupingCase) -> None:
    """Every case file of ours says which verdict it must get; without a word it must pass."""
    assert run(case).verdict == case.raw.get("verdict", "passed"), run(case).differences


def asked(tmp_path: Path, *cases: Mapping[str, object]) -> list[dict[str, object]]:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(list(cases)))
    result = CliRunner().invoke(main, ["cases", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.output)
    return found


def test_the_raw_answer_of_every_case_is_in_the_json(tmp_path: Path) -> None:
    """Others can judge an answer by themselves."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "1"}, "spec": {}}
    case = {"id": "a", "check": "group", "rule": "job", "top_owner": job, "pod": {}, "expect": {"min_member": 9}}
    (entry,) = asked(tmp_path, case)
    assert (entry["passed"], entry["verdict"]) == (False, "failed")
    assert entry["differences"] == ["min_member: expected 9, found 1"]
    answer = entry["answer"]
    assert isinstance(answer, dict)
    assert (answer["name"], answer["min_member"]) == ("pg-j-1", 1)


def test_what_does_not_apply_has_a_reason_and_has_not_passed(tmp_path: Path) -> None:
    """A question about somebody else's objects is named as such."""
    (entry,) = asked(tmp_path, {"id": "a", "check": "group", "rule": "grove", "expect": {}})
    assert (entry["passed"], entry["skipped"], entry["answer"]) == (False, True, None)
    assert entry["reasons"] == [
        {"section": "4.8", "why": "Grove's pods are the operator's; the grouper leaves them alone"}
    ]


def test_a_failed_case_ends_the_command_with_1(tmp_path: Path) -> None:
    """A pipeline notices; a case that is answered differently on purpose does not stop it."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{"id": "a", "check": "labels_match", "labels": {}, "expect": {"result": False}}]))
    assert CliRunner().invoke(main, ["cases", str(path)]).exit_code == 1
