"""Readers of traces, on small tables of our own in the forms that others publish."""

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spinney.api import kai
from spinney.api.core import (
    NODE,
    POD,
    Container,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from spinney.api.labels import KAI_QUEUE
from spinney.api.meta import Metadata, ObjectMeta
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.reading import Wanted, read_trace, recognised
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Unseen
from tests.sim.replay.building import replayed

_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-a,64000,262144,2,T4\nnode-b,32000,131072,8,V100\n"
_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
p0,4000,1024,1,470,
p1,8000,2048,2,1000,T4|V100
p2,12000,512,0,0,
"""


def openb(directory: Path) -> Path:
    """Write a list of pods with nodes and order beside it."""
    (directory / "openb_nodes.csv").write_text(_NODES)
    (directory / "openb_order_small.csv").write_text("42,43\n2,0\n0,1\n0,\n")
    pods = directory / "openb_pods_small.csv"
    pods.write_text(_PODS)
    return pods


def test_openb_arrives_in_the_order_of_its_seed(tmp_path: Path) -> None:
    """Rows come as the seed's column says; the second arrival of a row is a clone."""
    trace = read_trace(openb(tmp_path), Wanted(seed=42))

    assert [job.name for job in trace.jobs] == ["p2", "p0", "p0-tuned-0"]
    assert [job.name for job in read_trace(openb(tmp_path), Wanted(seed=43)).jobs] == ["p0", "p1"]
    assert trace.offered_once
    assert [machine.gpus for machine in trace.machines] == [2, 8]


def test_openb_asks_for_shares_models_and_nothing(tmp_path: Path) -> None:
    """Thousandths of one GPU, whole GPUs of some models, and no GPU at all are told apart."""
    by_name = {job.name: job for job in read_trace(openb(tmp_path), Wanted(seed=43)).jobs}

    assert (by_name["p0"].ask.gpus, by_name["p0"].ask.milli) == (1, 470)
    assert by_name["p1"].ask.models == {"T4", "V100"}
    assert by_name["p1"].gpu_milli == 2000


def test_a_seed_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error says which seeds there are."""
    with pytest.raises(InvalidTrace, match="there are 42, 43"):
        read_trace(openb(tmp_path), Wanted(seed=7))


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Wanted(experiment="none"), "--experiment is for traces of the format philly or dlrm, and this is openb"),
        (Wanted(begin="2017-10-01"), "--begin is for traces of the format philly, and this is openb; leave it out"),
        (Wanted(until="yesterday"), "--until is for traces of the format philly, "),
        (Wanted(node_count=3), "--node-count is for traces of the format dlrm, "),
    ],
)
def test_what_a_format_does_not_take_is_refused(tmp_path: Path, wanted: Wanted, complaint: str) -> None:
    """What would be ignored is named, with the formats that it is for."""
    with pytest.raises(InvalidTrace, match=complaint):
        read_trace(openb(tmp_path), wanted)


def philly(directory: Path) -> Path:
    """Write jobs of two virtual clusters."""
    (directory / "philly_vcs.csv").write_text("vc,node num\nvc1,8\nvc2,4\n")
    path = directory / "philly.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("job,timestamp,duration,num_gpus,cluster\n")
        file.write("3,2017-10-02 00:00:00,60,16,vc1\n1,2017-10-01 00:00:30,10,1,vc1\n")
        file.write("2,2017-10-01 00:01:00,20,12,vc2\n4,2017-11-01 00:00:00,20,1,vc2\n5,2017-10-01 00:02:00,1,1,gone\n")
    return path


@pytest.mark.parametrize(("layout", "nodes", "quota"), [("full", 12, 64), ("half", 6, 32), ("shared", 3, 16)])
def test_philly_has_three_layouts(tmp_path: Path, layout: str, nodes: int, quota: int) -> None:
    """Pools of all or half the nodes, or one of a quarter; queues are guaranteed what is theirs."""
    trace = read_trace(philly(tmp_path), Wanted(experiment=layout, begin="2017-10-01", until="2017-11-01"))

    assert len(trace.machines) == nodes
    assert trace.quotas["vc1"] == quota
    assert {job.ask.pool for job in trace.jobs} == ({""} if layout == "shared" else {"vc1", "vc2"})


def test_philly_makes_gangs_of_large_jobs(tmp_path: Path) -> None:
    """16 GPUs are two pods of 8, 12 are three of 4; jobs are those of the window, with times from its beginning."""
    trace = read_trace(philly(tmp_path), Wanted(begin="2017-10-01", until="2017-11-01"))

    assert [(job.name, job.submitted, job.pods, job.ask.gpus) for job in trace.jobs] == [
        ("job-1", 30, 1, 1),
        ("job-2", 60, 3, 4),
        ("job-3", 86400, 2, 8),
    ]
    assert trace.notes == ("left out, as their virtual clusters have no nodes: 1 job",)


def test_times_with_an_offset_are_moments(tmp_path: Path) -> None:
    """Half past two at +02:00 is half an hour after midnight in UTC: the offset was dropped, as summer time ends."""
    path = philly(tmp_path).with_name("offsets.csv")
    rows = "1,2017-10-01 02:30:00+02:00,10,1,vc1\n2,2017-10-01 01:00:00Z,10,1,vc1\n3,0001-01-01T00:00+09:00,1,1,vc1\n"
    path.write_text(f"job,timestamp,duration,num_gpus,cluster\n{rows.rpartition('3,')[0]}")

    assert [job.submitted for job in read_trace(path, Wanted(begin="2017-10-01")).jobs] == [1800, 3600]
    path.write_text(f"job,timestamp,duration,num_gpus,cluster\n{rows}")
    with pytest.raises(InvalidTrace, match=r"offsets\.csv:4: job 3: found '0001-01-01T00:00"):
        read_trace(path, Wanted())


def test_pods_may_have_parts_of_several_gpus(tmp_path: Path) -> None:
    """A recorded pod with half of two GPUs gets them: it was replayed without any, and the placements did not hold."""
    annotations = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}
    recorded(tmp_path, 0, ["a"], _pod("p", "a", annotations=annotations), _pod("q", "a", annotations=annotations))
    trace = read_trace(tmp_path, Wanted())
    history = replayed(trace)

    assert [(job.ask.gpus, job.ask.milli) for job in trace.jobs] == [(2, 500)] * 2
    assert [set(event.devices[0]) for event in history.events if event.what == "started"] == [{0, 1}] * 2
    assert problems_of(trace, history) == []


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Wanted(begin="yesterday"), "--begin: found 'yesterday', expected a day or time such as 2017-10-01"),
        (Wanted(until=""), "--until: found '', expected a day"),
        (Wanted(begin="2030-01-01", until="2020-01-01"), "--until: found '2020-01-01', expected a day after '2030-"),
        (Wanted(begin="2017-10-01", until="2017-10-01"), "--until: found '2017-10-01', expected a day after '2017-"),
        (Wanted(begin="2030-01-01"), "no job was submitted in that period; the trace has 2017-10-01 00:00:30 to 2017-"),
        (Wanted(experiment="quarter"), "--experiment: found 'quarter', expected full or half or shared"),
    ],
)
def test_a_period_without_jobs_is_refused(tmp_path: Path, wanted: Wanted, complaint: str) -> None:
    """Days that are none, a period that ends before it begins, and one without jobs are said, not replayed."""
    with pytest.raises(InvalidTrace, match=complaint):
        read_trace(philly(tmp_path), wanted)


def test_dlrm_instances_live_as_the_trace_says(tmp_path: Path) -> None:
    """One role at a time; what was there before comes first; limits per node are kept."""
    path = tmp_path / "dlrm.csv"
    path.write_text(
        "instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,max_instance_per_node,"
        "creation_time,scheduled_time,deletion_time\n"
        "i1,HN,a,12,1,25,120.0,8,50,60,90\ni0,HN,a,12,1,25,120.0,8,,,80\nc0,CN,b,64,0,0,10.0,-1,,,\n"
    )
    trace = read_trace(path, Wanted(experiment="HN", node_count=3))

    assert [(job.name, job.submitted, job.ends) for job in trace.jobs] == [("i0", 0, 80), ("i1", 50, 90)]
    assert trace.jobs[0].ask.most_per_node == 8
    assert len(trace.machines) == 3
    assert read_trace(path, Wanted(experiment="CN")).jobs[0].ask.most_per_node == 0


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-8-sig", "utf-16"])
def test_text_is_read_in_the_encodings_of_others(tmp_path: Path, encoding: str) -> None:
    """Names of people and places in Latin-1, and what spreadsheets write: a mark before UTF-8, and UTF-16."""
    path = openb(tmp_path)
    path.write_bytes(_PODS.replace("p1", "M\xfcnchen").encode(encoding))
    assert [job.name for job in read_trace(path, Wanted(seed=43)).jobs] == ["p0", "M\xfcnchen"]


@pytest.mark.parametrize("field", ["MaxProcs", "MaxNodes"])
def test_a_field_of_an_swf_header_that_is_no_number_is_named(tmp_path: Path, field: str) -> None:
    """The message says which field it is, and what was found."""
    path = tmp_path / "small.swf"
    path.write_text(f"; {field}: many\n")
    with pytest.raises(InvalidTrace, match=f"small.swf: {field} of the header: found 'many', expected a whole number"):
        read_trace(path, Wanted())


def test_swf_is_read_with_its_header(tmp_path: Path) -> None:
    """Processors are GPUs of equal nodes; jobs that never ran are left out and counted."""
    path = tmp_path / "small.swf"
    rest = " -1 -1 -1 -1 -1 -1 1 -1 -1 -1"
    path.write_text(
        "; MaxNodes: 4\n; MaxProcs: 32\n"
        f"1 0 5 100 4 -1 -1 4 120{rest[3:]}\n2 10 5 50 16 -1 -1 16{rest}\n3 20 -1 -1 1 -1 -1 1{rest}\n"
    )
    trace = read_trace(path, Wanted())

    assert [(job.pods, job.ask.gpus, job.duration) for job in trace.jobs] == [(1, 4, 100), (2, 8, 50)]
    assert [job.stated for job in trace.jobs] == [120, None]
    assert (len(trace.machines), trace.gpus) == (4, 32)
    assert len(trace.notes) == 1


def test_a_part_of_an_swf_log_begins_with_its_first_job(tmp_path: Path) -> None:
    """Time before it is not time in which GPUs were idle: of a log's second half nearly all was."""
    path = tmp_path / "half.swf"
    rest = "-1 3600 8 -1 -1 8 3600 -1 1 1 1 1 1 -1 -1 -1\n"
    path.write_text(f"; MaxNodes: 1\n; MaxProcs: 8\n7 5000000 {rest}8 5000060 {rest}")

    assert [job.submitted for job in read_trace(path, Wanted()).jobs] == [0, 60]


def test_processors_that_do_not_divide_over_nodes_are_all_there(tmp_path: Path) -> None:
    """A job of all 30 processors of 4 nodes can run: nodes had 7, and it waited for ever. The report says it."""
    path = tmp_path / "odd.swf"
    path.write_text("; MaxNodes: 4\n; MaxProcs: 30\n1 0 -1 60 30 -1 -1 30 60 -1 1 1 1 1 1 -1 -1 -1\n")
    trace = read_trace(path, Wanted())

    assert ([machine.gpus for machine in trace.machines], trace.jobs[0].pods) == ([8] * 4, 4)
    assert trace.notes == ("30 processors do not divide over 4 nodes, so each has 8",)


def recorded(
    directory: Path,
    minute: int,
    nodes: list[str],
    *pods: Pod,
    unseen: tuple[Unseen, ...] = (),
    objects: Mapping[Resource, tuple[Any, ...]] | None = None,
    cordoned: str = "",
    lost: str = "",
) -> Path:
    """Write a snapshot of a recording, and return its file."""
    snapshot = ClusterSnapshot(
        objects={
            NODE: tuple(
                Node(
                    metadata=Metadata(name=name),
                    spec=NodeSpec(unschedulable=name == cordoned),
                    status=NodeStatus(
                        allocatable={"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4"},
                        conditions=(NodeCondition(type="Ready", status="Unknown" if name == lost else "True"),),
                    ),
                )
                for name in nodes
            ),
            POD: pods,
            **(objects or {}),
        },
        taken=_BEGIN + timedelta(minutes=minute),
        unseen=unseen,
    )
    path = directory / f"{minute:03d}.json.gz"
    write_snapshot(snapshot, path)
    return path


def test_a_recording_is_strung_together(tmp_path: Path) -> None:
    """A gang lasts from the snapshot that has its pods on nodes to the first that lacks them; nodes that go, fail."""
    recorded(tmp_path, 0, ["a", "b"])
    recorded(tmp_path, 2, ["a", "b"], _pod("p", ""))
    recorded(tmp_path, 3, ["a", "b"], _pod("p", "a"), _pod("q", ""))
    recorded(tmp_path, 9, ["a"], _pod("q", "a"))

    trace = read_trace(tmp_path, Wanted())

    assert [(job.name, job.submitted, job.duration, job.ask.gpus) for job in trace.jobs] == [
        ("default-p", 60, 360, 2),
        ("default-q", 60, None, 2),
    ]
    assert [(each.machine, each.begins, each.ends) for each in trace.outages] == [("b", 540, None)]
    assert trace.notes == ()


def test_a_recorded_node_that_was_closed_takes_no_new_pods(tmp_path: Path) -> None:
    """One that is cordoned or not ready kept its capacity in a replay; its pods go on, and no node has failed."""
    recorded(tmp_path, 0, ["a", "b"], _pod("p", "a", minute=-5), cordoned="a")
    recorded(tmp_path, 2, ["a", "b"], _pod("p", "a", minute=-5), lost="b")
    recorded(tmp_path, 4, ["a", "b"], _pod("p", "a", minute=-5), lost="b")
    recorded(tmp_path, 5, ["a", "b"], _pod("p", "a", minute=-5), cordoned="a")

    trace = read_trace(tmp_path, Wanted())
    assert trace.outages == ()
    assert [(each.machine, each.begins, each.ends) for each in trace.closures] == [
        ("a", 0, 120),
        ("b", 120, 300),
        ("a", 300, None),
    ]


def test_a_recording_goes_on_without_a_snapshot_that_is_damaged(tmp_path: Path) -> None:
    """What cannot be read of a recording is left out and named, since nobody can record last week again."""
    recorded(tmp_path, 0, ["a"])
    cut, undated = recorded(tmp_path, 2, ["a"], _pod("p", "a")), tmp_path / "003.json.gz"
    cut.write_bytes(cut.read_bytes()[:-20])
    write_snapshot(ClusterSnapshot(), undated)
    recorded(tmp_path, 4, ["a"], _pod("p", "a"))

    trace = read_trace(tmp_path, Wanted())

    assert [job.name for job in trace.jobs] == ["default-p"]
    second, first = trace.notes
    assert "left out, so what changed by then is seen in the snapshot after it" in first
    assert first.partition(f"{cut}: is damaged: ")[2]
    assert "take the snapshot again" not in first
    assert second.endswith(f"{undated}: does not say when it was taken, with a time zone")


def test_a_recording_that_cannot_be_read_at_all_is_refused(tmp_path: Path) -> None:
    """Without a single snapshot that can be read there is nothing to replay; the first fault is said."""
    cut = recorded(tmp_path, 0, ["a"])
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(InvalidTrace, match=r"has no snapshots to replay, none of its 1 can be read: .*is damaged"):
        read_trace(tmp_path, Wanted())


def test_gangs_of_a_recording_are_told_apart(tmp_path: Path) -> None:
    """Two gangs whose namespace and name come to the same are two jobs: one was lost."""
    recorded(tmp_path, 2, ["a"], _pod("b-c", "a", namespace="a"), _pod("c", "a", namespace="a-b"))

    assert [job.name for job in read_trace(tmp_path, Wanted()).jobs] == ["a-b-c", "a-b-c.2"]


def test_a_pod_that_was_made_anew_makes_a_gang_no_larger(tmp_path: Path) -> None:
    """A gang is of as many pods as were there at once: one that lost a pod and got another asked for one more."""
    recorded(tmp_path, 2, ["a"], _pod("x", "a", gang="g"), _pod("y", "a", gang="g"))
    leaving, coming = _pod("y", "a", gang="g", going=True), _pod("z", "", gang="g")
    recorded(tmp_path, 3, ["a"], _pod("x", "a", gang="g"), leaving, coming)
    recorded(tmp_path, 4, ["a"], _pod("x", "a", gang="g"), _pod("z", "a", gang="g"))
    recorded(tmp_path, 9, ["a"])

    jobs = read_trace(tmp_path, Wanted()).jobs
    assert [(job.name, job.pods, job.duration) for job in jobs] == [("default-g", 2, 420)]


def test_what_ran_before_a_recording_runs_as_long_as_it_did_in_it(tmp_path: Path) -> None:
    """Of a run of days the recording has the last hour: all of it was run again, and the nodes were full for days."""
    recorded(tmp_path, 0, ["a"], _pod("old", "a", minute=-3000))
    recorded(tmp_path, 60, ["a"])

    assert [(job.submitted, job.duration) for job in read_trace(tmp_path, Wanted()).jobs] == [(0, 3600)]


def test_a_recorded_job_is_in_the_queue_of_its_gang(tmp_path: Path) -> None:
    """The object of a gang says its queue, and pods need not: such jobs were in a queue that the cluster had not."""
    gangs = {
        POD_GANG: (PodGang(metadata=ObjectMeta(name="g", namespace="default", labels={KAI_QUEUE: "research"})),),
        kai.POD_GROUP: (
            kai.PodGroup(metadata=ObjectMeta(name="k", namespace="default"), spec=kai.PodGroupSpec(queue="vision")),
        ),
    }
    of_kai = _pod("k", "a", annotations={"pod-group-name": "k"})
    recorded(tmp_path, 2, ["a"], _pod("g", "a", gang="g"), of_kai, _pod("alone", "a"), objects=gangs)

    jobs = read_trace(tmp_path, Wanted()).jobs
    assert {job.name: job.queue for job in jobs} == {
        "default-g": "research",
        "default-k": "vision",
        "default-alone": "default-queue",
    }


@pytest.mark.parametrize("gap", [True, False])
def test_a_gang_that_comes_again_is_another_job(gap: bool, tmp_path: Path) -> None:
    """A gang deleted and made again under its name ran twice: its second run was lost, seen to be gone or not."""
    recorded(tmp_path, 2, ["a"], _pod("x", "a", gang="g", uid="1"))
    if gap:
        recorded(tmp_path, 4, ["a"])
    recorded(tmp_path, 6, ["a"], _pod("x", "a", gang="g", uid="2", minute=5))
    recorded(tmp_path, 9, ["a"])

    assert [(job.name, job.submitted, job.pods, job.duration) for job in read_trace(tmp_path, Wanted()).jobs] == [
        ("default-g", 0, 1, 120 if gap else 240),
        ("default-g.2", 180, 1, 180),
    ]


def test_a_gang_that_was_deleted_before_it_started_is_withdrawn(tmp_path: Path) -> None:
    """It is gone at that moment in the replay, too; it was a job of no length that waited to the end."""
    recorded(tmp_path, 2, ["a"], _pod("p", ""))
    recorded(tmp_path, 5, ["a"])

    assert [(job.duration, job.ends) for job in read_trace(tmp_path, Wanted()).jobs] == [(None, 180)]


def test_a_pod_that_was_seen_before_it_was_grouped_is_no_job_of_its_own(tmp_path: Path) -> None:
    """A pod belongs to the gang that it says last: one seen too early was a job beside its gang."""
    recorded(tmp_path, 2, ["a"], _pod("p", ""))
    recorded(tmp_path, 3, ["a"], _pod("p", "a", gang="g"))

    assert [job.name for job in read_trace(tmp_path, Wanted()).jobs] == ["default-g"]


def test_a_snapshot_without_the_right_to_list_pods_does_not_end_all_jobs(tmp_path: Path) -> None:
    """A right that was missing for a while is not taken for jobs that ended, and the report says so."""
    recorded(tmp_path, 2, ["a"], _pod("p", "a"))
    recorded(tmp_path, 3, ["a"], unseen=(Unseen(what="pods", reason="may not be listed"),))
    recorded(tmp_path, 4, ["a"], _pod("p", "a"))

    trace = read_trace(tmp_path, Wanted())

    assert [job.duration for job in trace.jobs] == [None]
    assert [note.rpartition(".json.gz: ")[2] for note in trace.notes] == ["has no pods, which could not be listed then"]


def _pod(
    name: str,
    node: str,
    namespace: str = "default",
    *,
    gang: str = "",
    uid: str = "",
    minute: int = 1,
    going: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> Pod:
    """Return a pod of two GPUs, or as annotations say."""
    requests = {"cpu": "1", "memory": "1Gi"} | ({} if annotations else {"nvidia.com/gpu": "2"})
    return Pod(
        metadata=Metadata(
            name=name,
            namespace=namespace,
            uid=uid or name,
            creation_timestamp=_BEGIN + timedelta(minutes=minute),
            deletion_timestamp=_BEGIN + timedelta(minutes=9) if going else None,
            labels={"grove.io/podgang": gang} if gang else {},
            annotations=annotations or {},
        ),
        spec=PodSpec(
            node_name=node, containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),)
        ),
        status=PodStatus(
            phase="Running" if node else "Pending",
            start_time=_BEGIN + timedelta(minutes=minute) if node and minute < 0 else None,
        ),
    )


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    """An unknown table is refused with the formats there are; a missing column is named."""
    unknown = tmp_path / "table.csv"
    unknown.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidTrace, match="no known format"):
        recognised(unknown)
    with pytest.raises(InvalidTrace, match="no column 'name'"):
        read_trace(unknown, Wanted(nodes=openb(tmp_path).with_name("openb_nodes.csv")), "openb")
