"""Traces that can be read but not be meant: jobs that stand for one another, times and sizes beyond any cluster."""

from pathlib import Path

import pytest

from spinney.sim.replay.formats.bounds import MOST_NODES, MOST_PODS, check_trace
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.reading import Wanted, read_trace
from tests.sim.replay.building import a_job, a_trace, machines
from tests.sim.replay.test_damaged_traces import a_swf_line, swf
from tests.sim.replay.test_readers import openb, philly


def refused(path: Path, wanted: Wanted | None = None, form: str | None = None) -> str:
    """Return why a trace is refused."""
    with pytest.raises(InvalidTrace) as caught:
        read_trace(path, wanted or Wanted(), form)
    return str(caught.value)


def test_a_job_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """Two jobs of one number are refused with both lines: one of them would stand for the other."""
    text = refused(swf(tmp_path, a_swf_line(7), a_swf_line(8), a_swf_line(7, submitted=5)))
    assert "jobs.swf:5: job 7 is in line 3 too" in text


def test_a_row_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """The same holds for tables, and for the nodes."""
    pods = openb(tmp_path)
    pods.with_name("openb_order_small.csv").unlink()
    pods.write_text(pods.read_text() + "p0,4000,1024,1,470,\n")
    assert "p0 is there twice" in refused(pods)
    nodes = pods.with_name("openb_nodes.csv")
    nodes.write_text(nodes.read_text() + "node-a,64000,262144,2,T4\n")
    assert "two nodes have the same name" in refused(pods)


def test_partial_executions_are_part_of_their_job(tmp_path: Path) -> None:
    """A log that tells of the parts of a run after the whole has one job, and says what was left out."""
    whole = a_swf_line(7, run=60)
    parts = [a_swf_line(7, submitted=-1, run=30).replace(" -1 1 1 1", f" -1 {status} 1 1") for status in (2, 3)]
    trace = read_trace(swf(tmp_path, whole, *parts), Wanted())

    assert [(job.name, job.duration) for job in trace.jobs] == [("job-7", 60)]
    assert trace.notes == ("2 lines about parts of a job's run were left out",)


def test_a_job_may_not_have_the_name_of_a_pod(tmp_path: Path) -> None:
    """The pods of a gang are numbered, so a job of one pod must not be called like one of them."""
    gang = a_job("a", 0.0, pods=2)
    with pytest.raises(InvalidTrace, match="a-1 has the name of a pod of a;"):
        check_trace(a_trace(gang, a_job("a-1", 0.0)), tmp_path)
    check_trace(a_trace(gang, a_job("a-2", 0.0), a_job("a-01", 0.0), a_job("a-b", 0.0)), tmp_path)


@pytest.mark.parametrize("field", ["submitted", "run", "procs", "stated"])
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x"])
def test_what_is_no_number_is_named_with_line_and_field(tmp_path: Path, field: str, text: str) -> None:
    """Numbers that are none are refused, also those that Python takes for one."""
    told = refused(swf(tmp_path, a_swf_line(**{field: text})))
    assert "jobs.swf:3: field " in told
    assert f"found {text!r}, expected a number" in told


@pytest.mark.parametrize(("column", "text"), [(2, "nan"), (2, "inf"), (3, "nan"), (3, "0"), (3, "-4"), (2, "1e18")])
def test_a_table_is_held_to_the_same(tmp_path: Path, column: int, text: str) -> None:
    """Philly's run times and GPUs have to be numbers that make sense."""
    philly(tmp_path)
    row = ["1", "2017-10-01 00:00:30", "10", "1", "vc1"]
    row[column] = text
    path = tmp_path / "few.csv"
    path.write_text(f"job,timestamp,duration,num_gpus,cluster\n{','.join(row)}\n")
    assert "expected" in refused(path)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("p,1000,1024,1.5,1000,", "openb_pods_small.csv:2: column 'num_gpu': found '1.5', expected a whole number"),
        ("p,1000,0.5,1,1000,", "column 'memory_mib': found '0.5', expected a whole number"),
        ("p,1000,1024,1,0,", "p: asks for 0 thousandths of a GPU, expected 1 to 1,000"),
        ("p,1000,1024,2,1500,", "p: asks for 1,500 thousandths of a GPU, expected 1 to 1,000"),
    ],
)
def test_parts_of_what_is_whole_are_refused(tmp_path: Path, row: str, complaint: str) -> None:
    """A GPU and a half was taken for one, and a share that no GPU has was replayed without any."""
    pods = openb(tmp_path)
    pods.with_name("openb_order_small.csv").unlink()
    pods.write_text(f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n{row}\n")
    assert complaint in refused(pods)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (a_swf_line(procs="1.5"), "jobs.swf:3: field 8: found '1.5', expected a whole number"),
        (a_swf_line(run="1e18"), "job-1: runs for 1e+18 seconds, expected 0 to 3155760000 (100 years)"),
        (a_swf_line(submitted="1e300"), "job-1: is submitted after 1e+300 seconds"),
        (a_swf_line(stated="1e30"), "job-1: states a run time of 1e+30 seconds"),
        (a_swf_line(procs=99_999_999), f"job-1: comes to 12,500,000 pods, expected 1 to {MOST_PODS:,}"),
    ],
)
def test_a_job_beyond_any_cluster_is_refused(tmp_path: Path, line: str, complaint: str) -> None:
    """Times that no clock shows and sizes that no cluster has are refused at once, with what is allowed."""
    assert complaint in refused(swf(tmp_path, line))


@pytest.mark.parametrize(
    ("header", "line", "complaint"),
    [
        ("; MaxProcs: 99999999999\n", a_swf_line(), "jobs.swf: its header comes to 12,499,999,999 nodes"),
        ("; MaxProcs: 99999999999\n; MaxNodes: 1\n", a_swf_line(), "its header comes to 99,999,999,999 GPUs"),
        ("; no size\n", a_swf_line(procs=99_999_999), "its largest job comes to 12,500,000 nodes"),
    ],
)
def test_a_cluster_beyond_any_is_refused(tmp_path: Path, header: str, line: str, complaint: str) -> None:
    """A header, or the largest job where there is none, that asks for a cluster nobody has is refused at once."""
    assert complaint in refused(swf(tmp_path, line, header=header))


def test_nodes_of_other_formats_are_bounded_too(tmp_path: Path) -> None:
    """So are Philly's list of nodes, and the number of DLRM's that is given by hand."""
    path = philly(tmp_path)
    (tmp_path / "philly_vcs.csv").write_text("vc,node num\nvc1,99999999999\n")
    assert f"philly_vcs.csv comes to 99,999,999,999 nodes, expected at most {MOST_NODES:,}" in refused(path)
    assert "--node-count comes to" in refused(path, Wanted(node_count=99_999_999_999), "dlrm")


def test_a_cluster_without_nodes_is_refused(tmp_path: Path) -> None:
    """A quarter of three nodes is none: a replay of which nothing could come looked like a busy cluster."""
    path = philly(tmp_path)
    (tmp_path / "philly_vcs.csv").write_text("vc,node num\nvc1,3\n")
    assert "philly-shared comes to no nodes" in refused(path, Wanted(experiment="shared"))


def test_the_largest_clusters_there_are_pass(tmp_path: Path) -> None:
    """A machine of a hundred thousand nodes, and a job on all of them, are in the bounds."""
    check_trace(a_trace(a_job("all", 0.0, gpus=8, pods=100_000), nodes=machines(100_000)), tmp_path)


def test_a_size_that_is_not_known_is_that_of_the_largest_job(tmp_path: Path) -> None:
    """Where a header says -1, as the format writes what is not known, the largest job decides."""
    trace = read_trace(swf(tmp_path, a_swf_line(procs=20), header="; MaxProcs: -1\n; MaxNodes: -1\n"), Wanted())
    assert trace.gpus == 24
