"""A recording is replayed with what its cluster's scheduler went by: rules of nodes, queues, priorities, topology."""

import gzip
import shutil
from pathlib import Path

import msgspec
import pytest

from spinney.api.struct import JSON
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import History
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.reading import Wanted, read_trace
from spinney.sim.snapshots.files import read_snapshot, snapshot_bytes
from spinney.sim.snapshots.snapshot import FORBIDDEN, Unseen
from tests.sim.replay.building import replayed, told
from tests.sim.replay.recordings import (
    RACK,
    a_class,
    a_group,
    a_node,
    a_pod,
    a_queue,
    nodes_by_job,
    racks,
    replay_of,
    taken,
)

TAINT = {"key": "example.com/reserved", "value": "yes", "effect": "NoSchedule"}
TOLERATES = [{"key": "example.com/reserved", "operator": "Exists"}]


def test_a_tainted_node_gets_only_pods_that_tolerate_it(tmp_path: Path) -> None:
    """The taint repelled nobody in a replay: jobs began on nodes that were kept for others."""
    nodes = a_node("free", gpus=1), a_node("kept", gpus=4, taints=[TAINT])
    pods = [a_pod(f"p{number}", minute=1 + number / 60) for number in range(3)]
    taken(tmp_path, 0, *nodes)
    taken(tmp_path, 2, *nodes, *pods, a_pod("guest", minute=2, tolerations=TOLERATES, gpus=4))
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history) == {"default-p0": ("free",), "default-guest": ("kept",)}


def test_a_taint_holds_from_the_snapshot_that_has_it(tmp_path: Path) -> None:
    """What ran before stays; who comes later waits until the taint is gone."""
    open_, tainted = a_node("n"), a_node("n", taints=[TAINT])
    first, second = a_pod("first", "n"), a_pod("second", minute=11)
    taken(tmp_path, 0, open_, first)
    taken(tmp_path, 10, tainted, first)
    taken(tmp_path, 12, tainted, first, second)
    taken(tmp_path, 30, open_, first, second)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(0, "started", "default-first"), (1800, "started", "default-second")]


def test_selectors_and_affinity_to_nodes_hold(tmp_path: Path) -> None:
    """Pods began anywhere."""
    nodes = [a_node(f"{rack}{number}", rack=rack, gpus=1) for rack in "ab" for number in range(2)]
    wants_b = {"matchExpressions": [{"key": RACK, "operator": "NotIn", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wants_b]}}}
    pods = [
        a_pod("selects-0", nodeSelector={RACK: "a"}, minute=1),
        a_pod("selects-1", nodeSelector={RACK: "a"}, minute=1),
        a_pod("selects-2", nodeSelector={RACK: "a"}, minute=1),
        a_pod("prefers-b", affinity=affinity, minute=1),
    ]
    taken(tmp_path, 0, *nodes)
    taken(tmp_path, 1, *nodes, *pods)
    trace, history = replay_of(tmp_path)

    found = nodes_by_job(trace, history)
    assert {name: nodes[0][0] for name, nodes in found.items()} == {
        "default-selects-0": "a",
        "default-selects-1": "a",
        "default-prefers-b": "b",
    }


def test_a_pod_keeps_away_from_pods_it_has_an_aversion_to(tmp_path: Path) -> None:
    """Labels and namespaces of pods are those of the recording: two of one service were on one node."""
    away = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    pods = [a_pod(f"web-{number}", labels={"app": "web"}, affinity=affinity, minute=1) for number in range(3)]
    nodes = a_node("a"), a_node("b")
    taken(tmp_path, 0, *nodes)
    taken(tmp_path, 1, *nodes, *pods)
    trace, history = replay_of(tmp_path)

    assert sorted(nodes_by_job(trace, history).values()) == [("a",), ("b",)]


@pytest.mark.parametrize("quota", [0, 2])
def test_a_limit_binds_and_quota_is_taken_back(quota: int, tmp_path: Path) -> None:
    """Queues have what the recording says of them: all jobs were equals, and a queue had as much as it asked for."""
    queues = (
        a_queue("all", quota=8),
        a_queue("bounded", "all", quota=0, limit=3),
        a_queue("owner", "all", quota=quota),
        a_queue("greedy", "all", quota=0),
    )
    nodes = (a_node("a"), a_node("b"))
    bounded = [a_pod(f"bounded-{number}", queue="bounded", minute=1) for number in range(5)]
    greedy = [a_pod(f"greedy-{number}", queue="greedy", minute=2) for number in range(9)]
    owner = [a_pod(f"owner-{number}", queue="owner", minute=5) for number in range(2)]
    taken(tmp_path, 0, *nodes, *queues)
    taken(tmp_path, 3, *nodes, *queues, *bounded, *greedy)
    taken(tmp_path, 6, *nodes, *queues, *bounded, *greedy, *owner)
    trace, history = replay_of(tmp_path)

    running: dict[str, int] = {}
    most: dict[str, int] = {}
    for event in history.events:
        queue = trace.jobs[event.job].queue
        running[queue] = running.get(queue, 0) + {"started": 1, "ended": -1, "evicted": -1}.get(event.what, 0)
        most[queue] = max(most.get(queue, 0), running[queue])
    assert most["bounded"] == 3
    if quota:
        assert (running["owner"], running["greedy"] + running["bounded"]) == (2, 6)
        assert any(event.what == "evicted" for event in history.events)


def test_a_quota_that_changed_counts_from_then_on(tmp_path: Path) -> None:
    """A queue whose limit was raised at noon had the new one from the beginning, or none at all."""
    pods = [a_pod(f"p{number}", queue="q", minute=0) for number in range(4)]
    taken(tmp_path, 0, a_node("a"), a_queue("q", limit=1), *pods)
    taken(tmp_path, 20, a_node("a"), a_queue("q", limit=3), *pods)
    trace, history = replay_of(tmp_path)

    assert [when for when, what, _ in told(trace, history) if what == "started"] == [0, 1200, 1200]


def test_priority_decides_who_is_first_and_who_gives_way(tmp_path: Path) -> None:
    """Priority classes of groups and pods count: the replay knew none, and served whoever came first."""
    classes = a_class("low", 10), a_class("high", 60)
    low = [a_pod(f"low-{number}", gpus=4, minute=1, priorityClassName="low", priority=10) for number in range(2)]
    group, of_group = a_group("g", priorityClassName="high"), a_pod("g-0", group="g", gpus=4, minute=2)
    pinned = a_pod("pinned", gpus=4, minute=0.5, labels={"kai.scheduler/preemptibility": "non-preemptible"})
    nodes = (a_node("a"), a_node("b"))
    taken(tmp_path, 0, *nodes, *classes)
    taken(tmp_path, 1, *nodes, *classes, *low, pinned)
    taken(tmp_path, 3, *nodes, *classes, *low, pinned, group, of_group)
    trace, history = replay_of(tmp_path)

    assert [each for each in told(trace, history) if each[0] >= 120] == [
        (120, "evicted", "default-low-0"),
        (120, "started", "default-g"),
    ]


@pytest.mark.parametrize("level", ["rack", RACK])
def test_a_gang_that_requires_a_rack_is_in_one(level: str, tmp_path: Path) -> None:
    """Levels of a gang, and of its parts, hold: its pods were spread over whatever was free."""
    nodes = [a_node(f"{rack}{number}", rack=rack, gpus=2) for rack in "ab" for number in range(2)]
    whole = a_group("whole", topologyConstraint={"topology": "cluster", "requiredTopologyLevel": level})
    own = {"topology": "cluster", "requiredTopologyLevel": level}
    parts = a_group(
        "parts",
        subGroups=[{"name": f"part-{number}", "minMember": 1, "topologyConstraint": own} for number in range(2)],
    )
    blocker = a_pod("blocker", "a0", gpus=1)
    gang = [a_pod(f"whole-{number}", group="whole", gpus=2, minute=1) for number in range(2)]
    split = [
        a_pod(f"parts-{number}", group="parts", sub_group=f"part-{number // 2}", gpus=1, minute=15)
        for number in range(4)
    ]
    rest = (racks(), whole, parts)
    taken(tmp_path, 0, *nodes, *rest, blocker)
    taken(tmp_path, 2, *nodes, *rest, blocker, *gang)
    taken(tmp_path, 16, *nodes, *rest, blocker, *(a_pod(f"whole-{n}", f"b{n}", group="whole", gpus=2) for n in "01"))
    taken(tmp_path, 20, *nodes, *rest, blocker, *split)
    trace, history = replay_of(tmp_path)

    found = nodes_by_job(trace, history)
    assert {node[0] for node in found["default-whole"]} == {"b"}
    assert trace.levels == (RACK,)
    racks_of_parts = [node[0] for node in found["default-parts"]]
    assert racks_of_parts[0] == racks_of_parts[1]
    assert racks_of_parts[2] == racks_of_parts[3]


def test_what_ran_when_the_recording_began_is_where_it_was(tmp_path: Path) -> None:
    """Also on nodes that take no new pods, whatever the rhythm of cycles is; who waited then does not come there."""
    nodes = a_node("a", gpus=4, unschedulable=True), a_node("b", gpus=1, taints=[TAINT])
    running = a_pod("x", "a", gpus=2), a_pod("y", "b", minute=-60)
    waits = a_pod("waits", gpus=2, minute=-1)
    taken(tmp_path, 0, *nodes, *running, waits)
    taken(tmp_path, 30, a_node("a"), nodes[1], *running, waits)
    for every in (0.0, 60.0):
        trace, history = replay_of(tmp_path, every=every)
        assert told(trace, history) == [
            (0, "started", "default-x"),
            (0, "started", "default-y"),
            (1800, "started", "default-waits"),
        ]
        assert nodes_by_job(trace, history)["default-y"] == ("b",)


def test_each_pod_of_a_gang_asks_for_its_own(tmp_path: Path) -> None:
    """A leader without a GPU asked for as many as its workers have, and the gang did not fit."""
    pods = [a_pod(f"g-{number}", group="g", gpus=4 * (number > 0), minute=1) for number in range(3)]
    taken(tmp_path, 0, a_node("a"), a_node("b"), a_group("g"))
    taken(tmp_path, 2, a_node("a"), a_node("b"), a_group("g"), *pods)
    trace, history = replay_of(tmp_path)

    assert trace.jobs[0].gpu_milli == 8000
    assert len(nodes_by_job(trace, history)["default-g"]) == 3


def test_pods_of_other_schedulers_are_in_no_queue_of_the_cluster(tmp_path: Path) -> None:
    """System pods name no queue: where a cluster has queues, they would wait for one that does not exist."""
    system = [a_pod(f"agent-{name}", name, gpus=0, schedulerName="default-scheduler") for name in "ab"]
    later = a_pod("agent-late", gpus=0, schedulerName="default-scheduler", minute=3)
    fixed = (a_node("a"), a_node("b"), a_queue("q", quota=8), *system)
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 4, *fixed, later, a_pod("p", queue="q", minute=2))
    trace, history = replay_of(tmp_path)

    assert {job.name: job.queue for job in trace.jobs} == {
        "default-agent-a": "other-schedulers",
        "default-agent-b": "other-schedulers",
        "default-agent-late": "other-schedulers",
        "default-p": "q",
    }
    assert len(nodes_by_job(trace, history)) == 4


def test_queues_of_kueue_bind(tmp_path: Path) -> None:
    """Where ClusterQueues are the queues of a cluster, they are those of the replay, and a LocalQueue leads to one."""
    cluster_queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "team"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [
                        {"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "2"}]},
                    ],
                }
            ]
        },
    }
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"clusterQueue": "team"},
    }
    pods = [a_pod(f"p{number}", labels={"kueue.x-k8s.io/queue-name": "mine"}, minute=1) for number in range(3)]
    taken(tmp_path, 0, a_node("a"), cluster_queue, local)
    taken(tmp_path, 2, a_node("a"), cluster_queue, local, *pods)
    trace, history = replay_of(tmp_path)

    assert {job.queue for job in trace.jobs} == {"team"}
    assert len(nodes_by_job(trace, history)) == 2


def test_a_configuration_with_a_name_of_its_own_replays_all_pods(tmp_path: Path) -> None:
    """One of a scheduler that is called otherwise placed nobody."""
    taken(tmp_path, 0, a_node("a"), a_pod("p"))
    trace, history = replay_of(tmp_path, SchedulerConfig(scheduler_names=("gpu-scheduler",)))

    assert list(nodes_by_job(trace, history)) == ["default-p"]


def test_only_what_changed_is_kept(tmp_path: Path) -> None:
    """A recording was held in memory whole: a quiet day took as much as a busy one."""
    pods = [a_pod(f"p{number}", "a", gpus=0) for number in range(50)]
    for minute in range(40):
        taken(tmp_path, minute, a_node("a"), *pods[: 49 + minute % 2])
    trace = read_trace(tmp_path, Wanted())

    assert len(trace.changes) == 1
    assert len({id(job.recorded.pods[0].pod) for job in trace.jobs if job.recorded is not None}) == 1


def test_snapshots_are_read_in_the_order_in_which_they_were_taken(tmp_path: Path) -> None:
    """Files of one's own were read by name, 10 before 2, and those that turned time back were left out."""
    pods = [a_pod(f"p{number}", minute=number) for number in range(1, 12)]
    for minute in range(12):
        taken(tmp_path, minute, a_node("a", gpus=12), *pods[:minute]).rename(tmp_path / f"mine-{minute}.json.gz")
    trace = read_trace(tmp_path, Wanted())

    assert [job.submitted for job in trace.jobs] == [60 * number for number in range(1, 12)]
    assert trace.notes == ()


def test_a_snapshot_that_something_else_wrote_again_keeps_its_place(tmp_path: Path) -> None:
    """A tool may sort the fields: with no moment at its beginning the file came first, and all before it were lost."""
    pods = [a_pod(f"p{number}", minute=number) for number in range(1, 4)]
    for minute in range(4):
        file = taken(tmp_path, minute, a_node("a"), *pods[:minute])
        if minute == 2:
            found = msgspec.json.decode(snapshot_bytes(read_snapshot(file)))
            file.write_bytes(gzip.compress(msgspec.json.encode(dict(sorted(found.items())))))
    trace = read_trace(tmp_path, Wanted())

    assert [job.submitted for job in trace.jobs] == [60, 120, 180]
    assert trace.notes == ()


def test_a_second_snapshot_of_one_moment_is_left_out(tmp_path: Path) -> None:
    """A copy says nothing new; the report names it."""
    taken(tmp_path, 0, a_node("a"))
    shutil.copy(taken(tmp_path, 9, a_node("a"), a_pod("p", minute=1)), tmp_path / "copy.json.gz")
    trace = read_trace(tmp_path, Wanted())

    assert [job.name for job in trace.jobs] == ["default-p"]
    assert "was taken at 2026-05-04 08:09:00+00:00, no later than another one" in trace.notes[0]


@pytest.mark.parametrize("moment", ['"2026-05-04T08:05:00"', '"noon"', "null", "5"])
def test_a_snapshot_without_a_moment_is_left_out(moment: str, tmp_path: Path) -> None:
    """Nobody knows where it belongs; one without a time zone ended the replay with a word about comparing."""
    taken(tmp_path, 0, a_node("a"))
    found = snapshot_bytes(read_snapshot(taken(tmp_path, 5, a_node("a"))))
    taken(tmp_path, 9, a_node("a"), a_pod("p", minute=1))
    (tmp_path / "0005.json.gz").write_bytes(found.replace(b'"2026-05-04T08:05:00Z"', moment.encode()))
    trace = read_trace(tmp_path, Wanted())

    assert [job.name for job in trace.jobs] == ["default-p"]
    assert "0005.json.gz" in trace.notes[0]


def test_a_kind_that_may_not_be_listed_for_a_while_stays_as_it_was(tmp_path: Path) -> None:
    """A right that was missing in one snapshot took all queues away."""
    pods = [a_pod(f"p{number}", queue="q") for number in range(2)]
    taken(tmp_path, 0, a_node("a"), a_queue("q", limit=1))
    unseen = (Unseen(what="queues.scheduling.run.ai", reason=FORBIDDEN),)
    taken(tmp_path, 5, a_node("a"), *pods, unseen=unseen)
    trace, history = replay_of(tmp_path)

    assert len(nodes_by_job(trace, history)) == 1
    assert "could not be listed at times" in trace.notes[0]
    assert "queues.scheduling.run.ai" in trace.notes[0]


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        (("kept", "kept"), "a pod is on kept, which has the taint example.com/reserved=yes:NoSchedule"),
        (("a0", "a0"), "a pod is on a0, where kind is None, and not large"),
        (("b0", "large"), "its pods are in 2 values of example.com/rack"),
    ],
)
def test_a_placement_that_breaks_a_rule_is_found(nodes: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    """The rules are checked by code of their own, whoever placed the pods."""
    large = a_node("large", rack="a")
    large["metadata"]["labels"]["kind"] = "large"
    machines = (large, a_node("a0", rack="a"), a_node("b0", rack="b"), a_node("kept", rack="a", taints=[TAINT]))
    group = a_group("g", topologyConstraint={"topology": "cluster", "requiredTopologyLevel": "rack"})
    pods = [a_pod(f"g-{number}", group="g", minute=1, nodeSelector={"kind": "large"}) for number in range(2)]
    taken(tmp_path, 0, *machines, racks(), group)
    taken(tmp_path, 2, *machines, racks(), group, *pods)
    trace = read_trace(tmp_path, Wanted())
    wrong = History([JobHappening(60.0, "started", 0, nodes, ((0,), (1,)))])
    right = History([JobHappening(60.0, "started", 0, ("large", "large"), ((0,), (1,)))])

    assert complaint in "; ".join(problems_of(trace, wrong))
    assert problems_of(trace, right) == []


def a_pod_gang(name: str, base: str = "") -> JSON:
    """Return a PodGang of one pod that requires a rack, beside the gang it was scaled out from if one is named."""
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"grove.io/base-podgang": base} if base else {},
            "annotations": {"kai.scheduler/topology": "cluster"},
        },
        "spec": {
            "podgroups": [{"name": f"{name}-w", "podReferences": [], "minReplicas": 1}],
            "topologyConstraint": {"packConstraint": {"required": RACK}},
        },
    }


def test_a_gang_stays_with_the_one_it_was_scaled_out_from(tmp_path: Path) -> None:
    """A scaled gang is in the rack of its base, also where another has more room, and also in a replay."""
    nodes = a_node("a0", rack="a", gpus=4), a_node("a1", rack="a", gpus=1), a_node("b0", rack="b", gpus=1)
    fixed = (*nodes, racks(), a_pod_gang("base"), a_pod_gang("base-1", base="base"))
    base = a_pod("base-w", "a1", labels={"grove.io/podgang": "base", "grove.io/podclique": "base-w"})
    more = a_pod("base-1-w", minute=1, labels={"grove.io/podgang": "base-1", "grove.io/podclique": "base-1-w"})
    taken(tmp_path, 0, *fixed, base)
    taken(tmp_path, 2, *fixed, base, more)
    trace, history = replay_of(tmp_path)

    assert [job.recorded.anchor for job in trace.jobs if job.recorded is not None] == ["", "default-base"]
    assert nodes_by_job(trace, history)["default-base-1"] == ("a0",)


def test_shares_of_a_device_that_were_held_are_held(tmp_path: Path) -> None:
    """Pods that share a device when the recording begins share one in the replay, as far as its memory goes."""
    node = a_node("a", gpus=2)
    node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "80000"
    half = {"gpu-memory": "40000"}
    pods = [a_pod(f"p{n}", "a", gpus=0, annotations=half, labels={"runai-gpu-group": "g"}) for n in range(2)]
    taken(tmp_path, 0, node, *pods)
    taken(tmp_path, 2, node, *pods, a_pod("late", gpus=0, annotations=half, minute=1))
    trace, history = replay_of(tmp_path)

    devices = {trace.jobs[each.job].name: each.devices[0] for each in history.events if each.what == "started"}
    assert devices["default-p0"] == devices["default-p1"] != devices["default-late"]
    assert [(job.ask.gpus, job.ask.milli) for job in trace.jobs] == [(1, 500)] * 3


def test_who_is_evicted_in_the_cycle_that_bound_it_loses_its_place(tmp_path: Path) -> None:
    """The pod that was made anew was bound in the place of the evicted one, and nobody had what was taken away."""
    queues = a_queue("poor", quota=2, priority=50), a_queue("rich")
    host = {"topology": "cluster", "requiredTopologyLevel": "kubernetes.io/hostname"}
    fixed = (a_node("a", gpus=8, rack="r"), *queues, racks(), a_group("g", queue="rich", topologyConstraint=host))
    running = [a_pod("x", "a", queue="poor")]
    # KAI's rules see no room for a gang where twice its largest pod has none, but take room away for it.
    gang = [a_pod(f"g-{number}", group="g", gpus=2 + 2 * number, minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed, *running)
    taken(tmp_path, 2, *fixed, *running, *gang, a_pod("p", queue="poor", gpus=2, minute=1))
    trace = read_trace(tmp_path, Wanted())
    history = replayed(trace, SchedulerConfig.kai_compat())
    evicted = [each for each in history.events if each.what == "evicted"]

    assert evicted
    assert all(each.nodes == ("a",) for each in evicted)
    assert problems_of(trace, history) == []


def test_a_queue_that_cannot_be_read_is_left_out_of_a_recording(tmp_path: Path) -> None:
    """KAI's API takes any text for a duration: one such queue ended the replay of the whole cluster."""
    queues = a_queue("odd", preemptMinRuntime="abc"), a_queue("sound")
    taken(tmp_path, 0, a_node("n"), *queues, a_pod("p", minute=0, queue="sound"))
    taken(tmp_path, 5, a_node("n"), a_queue("sound"), a_pod("p", "n", minute=0, queue="sound"))
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history) == {"default-p": ("n",)}
    assert [note for note in trace.notes if "Queue odd: 'abc' is not a duration" in note]
