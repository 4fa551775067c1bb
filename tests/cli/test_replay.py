"""``spinney replay``: a trace in, figures, placements and a page out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
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


_NO_OUTAGES = ("nan", "inf", "-1", "1+nan", "1e99", "1+0", "1+-1")


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        *(("--run-times", text, "a factor from 1 to 1000") for text in ("nan", "inf", "1e308", "0.5", "guessed")),
        *(("--every", text, "0 to 31536000" if text == "nan" else "0<=x<=31536000") for text in ("nan", "inf", "-1")),
        *(("--speed", text, "expected max or a number from 1 upwards") for text in ("nan", "inf", "0", "1e-300")),
        ("--seed", "-1", "x>=0"),
        *(("--fail", f"node-a@{text}", "expected a node and hours") for text in _NO_OUTAGES),
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, option: str, text: str, complaint: str) -> None:
    """What Python takes for a number and nobody can mean is refused, with what is expected."""
    assert complaint in run(openb(tmp_path), option, text, code=2)


def test_a_seed_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    """The same replay twice would make a figure look certain."""
    told = run(philly(tmp_path), "--seed", 7, "--seed", 8, "--seed", 7, code=2)

    assert "7 is given twice, and the same seed gives the same replay" in " ".join(told.split())


def test_a_file_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    """Who names a directory that is not there is told at once, and not after a replay of an hour."""
    nowhere = tmp_path / "nosuch" / "placements.json"
    told = run(tmp_path, "--placements", nowhere, code=2)
    assert f"cannot be written: there is no directory {nowhere.parent}" in " ".join(told.split())
    assert "is a directory" in run(tmp_path, "--placements", tmp_path, code=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_disk_that_is_full_is_said(tmp_path: Path) -> None:
    """A file that could be opened and not be written is one sentence, too; the report is not lost with it."""
    told = run(openb(tmp_path), "--placements", "/dev/full", code=1)
    assert "/dev/full: cannot be written: No space left" in told
    assert "jobs started" in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_report_that_finds_no_room_is_no_fault_of_ours(tmp_path: Path) -> None:
    """Where standard output is a file on a full disk, that is said: it was a fault to be reported."""
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "replay", str(openb(tmp_path))]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (
        1,
        "Error: standard output cannot be written: No space left on device\n",
    )


def test_a_damaged_trace_is_no_fault_of_ours(tmp_path: Path) -> None:
    """A download that was cut off is said to be damaged; options for another format are said to be that."""
    path = philly(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "philly.csv.gz: is damaged: " in run(path, code=1)
    assert "--begin is for traces of the format philly" in run(openb(tmp_path), "--begin", "yesterday", code=1)


def test_placements_are_not_written_over_what_is_read(tmp_path: Path) -> None:
    """The trace, the nodes, a configuration or a plugin as the file for placements are refused: they were lost."""
    trace = openb(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text("plugins: [predicates]\n")
    nodes, order = tmp_path / "openb_nodes.csv", tmp_path / "openb_order_small.csv"
    for lost in (trace, config, tmp_path / "." / trace.name, nodes, order):
        before = lost.read_bytes()
        told = run(trace, "--config", config, "--placements", lost, code=2)
        assert "is read by this replay, or by the next one of this trace; name another file" in " ".join(told.split())
        assert lost.read_bytes() == before
    sizes = tmp_path / "philly_vcs.csv"
    assert "is read by this replay" in run(philly(tmp_path), "--placements", sizes, code=2)
    assert sizes.read_text().startswith("vc,")


def test_a_configuration_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    """One configuration counted as two seeds, which gave every figure a margin of 0."""
    config = tmp_path / "config.yaml"
    config.write_text("plugins: [predicates]\n")
    told = run(openb(tmp_path), "--config", config, "--config", config, code=2)

    assert "one file is given twice, and the same configuration gives the same replay" in " ".join(told.split())


def test_the_answer_is_alone_on_standard_output(tmp_path: Path) -> None:
    """What the scheduler logs of victims, and what a plugin prints, was before the JSON, which nobody could read."""
    trace, policy = tmp_path / "log.swf", tmp_path / "policy.py"
    rest = "-1 -1 8 {stated} -1 1 1 1 1 1 -1 -1 -1\n"
    trace.write_text(
        f"; MaxNodes: 1\n; MaxProcs: 8\n1 0 -1 90000 8 {rest.format(stated=90000)}2 10 -1 60 8 {rest.format(stated=60)}"
    )
    policy.write_text(
        "from spinney.scheduler import Plugin\nprint('loaded')\n\n\nclass Loud(Plugin):\n    name = 'loud'\n\n"
        "    def on_session_open(self, session):\n        print('opened')\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text('extraPlugins: [{name: backfill, arguments: {giveWay: "1"}}]\n')
    answer = CliRunner().invoke(
        main, ["replay", str(trace), "--config", str(config), "--plugin", str(policy), "-o", "json"]
    )

    assert answer.exit_code == 0, answer.output
    assert [run["figures"]["evictions"] for run in json.loads(answer.stdout)["runs"]] == [1, 1]
    assert "opened" in answer.stderr
