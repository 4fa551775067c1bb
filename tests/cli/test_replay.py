"""``spinney replay``: a trace in, figures, placements and a page out."""

import json
from pathlib import Path

from click.testing import CliRunner

from spinney.cli import main
from tests.sim.replay.test_readers import openb, philly


def run(*arguments: object, code: int = 0) -> str:
    """Run the command and return what it prints."""
    result = CliRunner().invoke(main, ["replay", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_figures_are_printed(tmp_path: Path) -> None:
    """The table has allocation, fragmentation and waits by size."""
    output = run(openb(tmp_path), "--seed", 42)

    assert "3 jobs on 2 nodes with 10 GPUs" in output
    assert "GPUs lost to fragmentation" in output
    assert "WAIT MEAN S" in output


def test_placements_can_be_checked_by_others(tmp_path: Path) -> None:
    """The file has node and GPUs of every pod that was placed, clones included."""
    file = tmp_path / "placements.json"
    run(openb(tmp_path), "--seed", 42, "--placements", file)

    placed = json.loads(file.read_text())
    assert set(placed) == {"p0", "p0-tuned-0", "p2"}
    assert placed["p0"]["node"] in {"node-a", "node-b"}
    assert len(placed["p0"]["gpus"]) == 1
    assert placed["p2"]["gpus"] == []


def test_configurations_stand_side_by_side_over_seeds(tmp_path: Path) -> None:
    """Two configurations and two seeds give four runs, and figures with a margin."""
    spread = tmp_path / "spread.yaml"
    spread.write_text("plugins: [predicates, proportion, priority]\n")
    pack = tmp_path / "pack.yaml"
    pack.write_text("plugins: [predicates, proportion, priority, packing]\n")
    arguments = [openb(tmp_path), "--seed", 42, "--seed", 43, "--config", spread, "--config", pack]

    data = json.loads(run(*arguments, "-o", "json"))
    assert [(each["config"], each["seed"]) for each in data["runs"]] == [
        (str(spread), 42),
        (str(pack), 42),
        (str(spread), 43),
        (str(pack), 43),
    ]
    assert "±" in run(*arguments)


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    """The HTML report has plots in it and refers to no other file."""
    page = run(philly(tmp_path), "--experiment", "half", "-o", "html")

    assert page.count("<svg") == 3
    assert "src=" not in page
    assert "href=" not in page


def test_a_node_that_fails_is_part_of_the_story(tmp_path: Path) -> None:
    """--fail takes a node away; a name that is not there is refused."""
    trace = philly(tmp_path)
    data = json.loads(run(trace, "--experiment", "shared", "--fail", "vc1-000@24.005+1", "-o", "json"))

    assert data["runs"][0]["figures"]["failures"] == 1
    assert "no node 'x'" in run(trace, "--fail", "x@1", code=2)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A file of no known format, and options that make no sense, are one sentence each."""
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")

    assert "no known format" in run(table, code=1)
    assert "expected max or a number" in run(openb(tmp_path), "--speed", "fast", code=2)
    assert "one configuration and one seed" in run(
        openb(tmp_path), "--seed", 42, "--seed", 43, "--placements", tmp_path / "x", code=2
    )


def test_a_timeline_tells_who_was_where_when(tmp_path: Path) -> None:
    """With --timeline the report has every event; jobs and machines are meant by their place in the lists."""
    found = json.loads(run(philly(tmp_path), "--experiment", "half", "-o", "json", "--timeline"))

    timeline = found["runs"][0]["timeline"]
    started = [event for event in timeline["events"] if event[1] == "started"]
    assert len(started) == found["runs"][0]["figures"]["started"]
    for at, _, job, machines in started:
        assert at >= 0
        name, _, gpus = timeline["jobs"][job]
        assert name
        assert all(timeline["machines"][machine][1] >= gpus for machine in machines)
    assert "only -o json" in run(philly(tmp_path), "--timeline", code=2)
