"""`spinney cases`: tables, differences, JSON and errors as a user sees them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result

from spinney.api.struct import JSON
from spinney.cli import main
from tests.sim.cases.builders import a_case, a_node, an_expectation

PASSES = a_case("small-0001", expect_jobs={"job": an_expectation("Binding", "node0")}, features=["gang"])
FAILS = a_case("small-0002", expect_jobs={"job": an_expectation("Pending")})


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Forget the logging the command set up, which writes to the captured standard error."""
    yield
    structlog.reset_defaults()


def invoke(directory: Path, *cases: JSON, options: tuple[str, ...] = ()) -> Result:
    path = directory / "small.json"
    path.write_text(json.dumps(list(cases)))
    return CliRunner().invoke(main, ["cases", str(path), *options])


def test_tables_and_differences_are_printed(tmp_path: Path) -> None:
    """The report names each difference and counts cases by file and feature; a failed case fails the command."""
    result = invoke(tmp_path, PASSES, FAILS)
    assert result.exit_code == 1
    assert "small.json: small-0002\n  task job-0: status: expected Pending, found Binding" in result.output
    assert "cases by file" in result.output
    assert "cases by feature" in result.output
    assert "2 cases: 1 passed, 1 failed" in result.output


def test_json_lists_every_case(tmp_path: Path) -> None:
    """With --json the output is one list with the raw outcome of every session, whatever the verdicts."""
    result = invoke(tmp_path, PASSES, FAILS, options=("--json",))
    assert result.exit_code == 0
    first, second = json.loads(result.output)
    assert first == {
        "id": "small-0001",
        "passed": True,
        "skipped": False,
        "differences": [],
        "rounds": [
            {"tasks": {"job-0": {"status": "Binding", "node": "node0"}}, "binds": 1, "evictions": 0, "pipelines": 0}
        ],
    }
    assert (second["passed"], len(second["differences"])) == (False, 1)


def test_one_case_can_be_chosen(tmp_path: Path) -> None:
    """--case runs only the named case."""
    result = invoke(tmp_path, PASSES, FAILS, options=("--case", "small-0001"))
    assert result.exit_code == 0
    assert "1 case: 1 passed" in result.output


def test_an_unknown_case_is_named(tmp_path: Path) -> None:
    """Asking for a case that is not in the files is an error."""
    result = invoke(tmp_path, PASSES, options=("--case", "small-0009"))
    assert result.exit_code == 1
    assert "no such case in the given files: small-0009" in result.output


def test_an_unknown_profile_is_named(tmp_path: Path) -> None:
    """A profile that does not exist is a usage error that names those that do."""
    result = invoke(tmp_path, PASSES, options=("--profile", "fast"))
    assert result.exit_code == 2
    assert "there are kai-compat and default" in result.output


def test_a_bad_file_is_an_error(tmp_path: Path) -> None:
    """A file that is not of the format ends the command with its name, the case and the field."""
    result = invoke(tmp_path, a_case(nodes=[a_node(gpu_memory="much")]))
    assert result.exit_code == 1
    assert "small.json: case small-0001: nodes[0].gpu_memory: Expected `int`, got `str`" in result.output
    assert "Traceback" not in result.output


def test_a_case_that_cannot_be_read_has_failed(tmp_path: Path) -> None:
    """The cases beside it run; it is in the JSON with its reason, and fails the command that prints tables."""
    broken = a_case("small-0003", nodes=[a_node(gpu_memory="much")])
    result = invoke(tmp_path, PASSES, broken, options=("--json",))
    first, second = json.loads(result.stdout)
    assert (first["id"], first["passed"]) == ("small-0001", True)
    assert (second["id"], second["passed"], second["rounds"]) == ("small-0003", False, [])
    result = invoke(tmp_path, PASSES, broken)
    assert result.exit_code == 1
    assert "cannot be read: small.json: case small-0003: nodes[0].gpu_memory" in result.output


def test_unknown_fields_are_warned_about(tmp_path: Path) -> None:
    """A field the format does not have is reported, and does not get in the way."""
    result = invoke(tmp_path, {**PASSES, "colour": "green"}, options=("--json",))
    assert "small-0001: colour is not a field of the format; ignored" in result.stderr
    assert json.loads(result.stdout)[0]["passed"] is True
