"""``spinney get`` lists gangs of every family with where they are and what they wait for; ``top`` draws them."""

import json
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.core import EVENT, POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.kai import QUEUE
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.cli.clusters.connecting import Connection
from spinney.cli.clusters.following import following
from spinney.kube.client import Client
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, as_yaml, until_refused, until_running
from tests.cli.written import a_refusal
from tests.grouping.world import JOB


def test_gangs_show_spread_and_reason(served: ServedCluster) -> None:
    """A placed gang shows over how many domains it spreads, a pending one what it waits for."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=2), 2))
    served.call(lambda client: until_refused(client, a_training_job("waits", workers=3)))
    rows = {row.split()[0]: row for row in served.spinney("get", "gangs").output.splitlines()[1:]}

    assert "2 nodes, 1 rack, 1 block" in rows["runs-0"]
    assert "2 of 3 pods found room" in rows["waits-0"]
    assert served.spinney("get", "gangs", "waits-0", "-o", "wide").output.count("\n") == 2
    assert "no gangs found" in served.spinney("get", "gangs", "-n", "elsewhere").output


@pytest.mark.parametrize("wide", [[], ["-o", "wide"]])
def test_a_narrow_terminal_shows_what_gangs_wait_for_within_its_width(mixed: Path, wide: list[str]) -> None:
    """Where 80 columns have no room for all, the spread gives way to the reason; ``-o wide`` has both."""
    heading, *lines = on_a_terminal("get", "gangs", "-A", "--from", str(mixed), *wide)

    assert ("SPREAD" in heading) is bool(wide)
    assert wide or max(map(len, lines)) == 80


def test_a_gang_of_the_grouper_has_a_short_name_that_can_be_asked_about(tmp_path: Path) -> None:
    """In 80 columns it is called as its workload, or without the middle of its name; why and get know both."""
    uid = "0f9d2c1e-5b7a-4c3d-9e8f-112233445566"
    items: list[JSON] = []
    for kind, owner, name in (
        ("Job", "train", f"pg-train-{uid}"),
        ("LeaderWorkerSet", "serve", f"pg-serve-{uid}-group-0"),
        ("LeaderWorkerSet", "serve", f"pg-serve-{uid}-group-1"),
    ):
        metadata: JSON = {"name": name, "namespace": "default", "labels": {"spinney.dev/grouped": "true"}}
        metadata |= {"annotations": {"kai.scheduler/top-owner-metadata": f"kind: {kind}\nname: {owner}"}}
        gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": metadata}
        items.append(gang | {"spec": {"podgroups": [{"name": "w", "minReplicas": 1}]}})
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(*items))

    heading, *rows = on_a_terminal("get", "gangs", "-n", "default", "--from", str(file))
    names = [row.split()[0] for row in rows]
    assert names == ["pg-serve-0f9...6-group-0", "pg-serve-0f9...6-group-1", "Job/train"]
    assert "OF" not in heading.split()
    assert max(map(len, rows)) <= 80
    wide = on_a_terminal("get", "gangs", "-n", "default", "--from", str(file), "-o", "wide")
    assert [row.split()[0] for row in wide[1:]] == [f"{name}-{uid}{end}" for name, end in _WHOLE]
    for name, (whole, end) in zip(names, _WHOLE, strict=True):
        for command in (["why"], ["get", "gangs", "-o", "json"]):
            answer = CliRunner().invoke(main, [*command, name, "-n", "default", "--from", str(file)])
            assert answer.exit_code == 0, answer.output
            assert f"{whole}-{uid}{end}" in answer.output


_WHOLE = (("pg-serve", "-group-0"), ("pg-serve", "-group-1"), ("pg-train", ""))


def on_a_terminal(*arguments: str) -> list[str]:
    """Return the lines that a command prints on a terminal of 80 columns."""
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 80))
    command = [sys.executable, "-c", "from spinney.cli import main; main(prog_name='spinney')", *arguments]
    variables = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    with os.fdopen(reader, "rb", buffering=0) as printed, os.fdopen(writer, "w") as terminal:
        subprocess.run(command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL, env=variables, check=True)
        return printed.read(10_000).decode().splitlines()


def test_sets_and_nodes_are_listed(served: ServedCluster) -> None:
    """Sets show how many pods are placed, nodes how many GPUs are used."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=2), 2))

    sets = {row.split()[0]: row.split() for row in served.spinney("get", "sets").output.splitlines()[1:]}
    assert sets["runs"][1:5] == ["1", "1", "2", "2"]
    nodes = json.loads(served.spinney("get", "nodes", "-o", "json").output)["nodes"]
    assert sum(node["gpusUsed"] for node in nodes) == 16


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A snapshot with a KAI gang, a coscheduling gang and a single pod, none of them placed."""
    cluster = Cluster("2x4")
    kai = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: kai-job}\nspec: {minMember: 1}\n"
    co = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: co-job}\nspec: {minMember: 1}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, %s: {%s: %s}}\nspec: {containers: [{name: main}]}\n"
    cluster.submit(kai, co)
    cluster.submit(pod % ("k", "annotations", "pod-group-name", "kai-job"))
    cluster.submit(pod % ("c", "labels", "scheduling.x-k8s.io/pod-group", "co-job"))
    cluster.submit(pod % ("alone", "labels", "app", "x"))
    file = tmp_path / "mixed.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


def test_what_pods_are_told_comes_before_what_is_derived_from_them(tmp_path: Path) -> None:
    """A gang of a scheduler that writes no condition waits for what it says of a pod; a silent one is named."""
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    derived = {"type": "Scheduled", "status": "False", "reason": "MinimumNotPlaced", "message": "all has 0 of 1"}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes fit"}
    items: list[JSON] = []
    for name, conditions in (("told", [refused | since]), ("silent", [])):
        metadata = {"name": name, "namespace": "default"}
        labels = {"grove.io/podgang": name, "grove.io/podclique": "all"}
        gang = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": metadata}
        gang |= {
            "spec": {"podgroups": [{"name": "all", "minReplicas": 1}]},
            "status": {"conditions": [derived | since]},
        }
        spec = {"schedulerName": "theirs", "containers": [{"name": "main"}]}
        status = {"phase": "Pending", "conditions": conditions}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"labels": labels}, "spec": spec}
        items += [gang, pod | {"status": status}]
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(*items))

    output = CliRunner().invoke(main, ["get", "gangs", "--from", str(file)]).output

    assert "0/1 nodes fit" in output
    assert "theirs has said nothing about it yet" in output


def test_a_gated_gang_says_what_its_gates_wait_for(tmp_path: Path) -> None:
    """The name of a gate tells nobody who has to act, or what is missing."""
    container: JSON = {"containers": [{"name": "main"}]}
    items: list[JSON] = []
    labels = {"grove.io/podgang": "grow", "grove.io/podclique": "all"}
    gates = [{"name": "grove.io/podgang-pending-creation"}, {"name": "kueue.x-k8s.io/admission"}]
    metadata = {"name": "grow", "namespace": "default", "labels": {"grove.io/base-podgang": "base"}}
    ready = [{"type": word, "status": "True"} for word in ("BackendReady", "Initialized")]
    items.append(
        {
            "apiVersion": "scheduler.grove.io/v1alpha1",
            "kind": "PodGang",
            "metadata": metadata,
            "spec": {"podgroups": [{"name": "all", "minReplicas": 1}]},
            "status": {"conditions": ready},
        }
    )
    pod: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": labels}}
    items.append(pod | {"spec": container | {"schedulingGates": gates}})
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(*items))

    (line,) = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    assert line["state"] == "gated"
    assert line["reason"] == (
        "PodGang grow is a scaled gang: it waits until its base gang base is scheduled; "
        "gate kueue.x-k8s.io/admission: Kueue has not admitted the workload"
    )


def test_a_gang_on_a_node_that_is_gone_says_so(tmp_path: Path) -> None:
    """Its pods are Running until the server takes them away, and nothing runs them."""
    labels = {"grove.io/podgang": "g", "grove.io/podclique": "w"}
    metadata = {"name": "p", "namespace": "default", "labels": labels}
    gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang"}
    gang |= {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"podgroups": [{"name": "w", "minReplicas": 1}]},
    }
    pod: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}
    pod |= {"spec": {"nodeName": "gone", "containers": [{"name": "main"}]}}
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "there"}}, gang, pod))

    (line,) = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    assert line["reason"] == "the node gone does not exist: nothing runs its pods until it is back"


def test_a_gang_without_pods_says_what_its_backend_says(tmp_path: Path) -> None:
    """Pods are made once the backend is ready; that none is placed is not the reason."""
    backend = {"type": "BackendReady", "status": "False", "message": "acme: out of order"}
    derived = {"type": "Scheduled", "status": "False", "reason": "MinimumNotPlaced", "message": "all has 0 of 1"}
    gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g"}}
    gang |= {"spec": {"podgroups": [{"name": "all", "minReplicas": 1}]}, "status": {"conditions": [backend, derived]}}
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(gang))

    (line,) = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    assert line["state"] == "empty"
    assert line["reason"] == "PodGang g waits for its scheduler's backend (BackendReady): acme: out of order"


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_gang_whose_group_is_gone_has_its_pods(tmp_path: Path, phase: str) -> None:
    """Pods name a PodGroup of KAI's that was deleted, or its kind was: the gang was 0/0 and empty, and said nothing."""
    gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang"}
    gang |= {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"podgroups": [{"name": "w", "minReplicas": 2}]},
    }
    labels = {"grove.io/podgang": "g", "grove.io/podclique": "w"}
    pods: list[JSON] = []
    for name in ("a", "b"):
        metadata: JSON = {"name": name, "namespace": "default", "labels": labels}
        metadata |= {"annotations": {"pod-group-name": "g"}}
        spec: JSON = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
        spec |= {"nodeName": "n1"} if phase == "Running" else {}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}})
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}, gang, *pods))

    (line,) = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    placed = 2 if phase == "Running" else 0
    assert (line["pods"], line["placed"], line["state"]) == (2, placed, phase.lower())
    assert line["reason"] == "the kai group default/g that the pod names does not exist"


@pytest.mark.parametrize("placed", [(), ({"type": "Scheduled", "status": "False", "reason": "MinimumNotPlaced"},)])
def test_a_gang_whose_pods_are_not_made_says_so(tmp_path: Path, placed: tuple[JSON, ...]) -> None:
    """Pods may be refused, by a quota or for a class that is missing: the gang waits until they are there."""
    ready = {"type": "BackendReady", "status": "True"}
    message = "0 of 2 pods of PodClique w exist"
    initialized = {"type": "Initialized", "status": "False", "message": message}
    gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g"}}
    gang |= {"spec": {"podgroups": [{"name": "w", "minReplicas": 2}]}}
    gang |= {"status": {"conditions": [ready, initialized, *({**each, "message": "w has 0 of 2"} for each in placed)]}}
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(gang))

    (line,) = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    assert line["reason"] == f"PodGang g waits until all its pods exist (Initialized): {message}"


def test_a_gang_whose_pods_are_refused_says_why(tmp_path: Path) -> None:
    """What refuses them, such as a quota, is what to look at: that pods do not exist is no reason."""
    said = 'pods "w-x7z2k" is forbidden: exceeded quota: small'
    error = {"code": "ERR_CREATE", "description": said, "observedAt": "2026-01-01T00:00:00Z"}
    clique: JSON = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "w"}}
    clique |= {"spec": {"roleName": "w", "replicas": 2, "podSpec": {"containers": [{"name": "main"}]}}}
    initialized = {"type": "Initialized", "status": "False", "message": "1 of 2 pods of PodClique w exist"}
    gang: JSON = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g"}}
    gang |= {"spec": {"podgroups": [{"name": "w", "minReplicas": 2}]}}
    gang |= {"status": {"conditions": [{"type": "BackendReady", "status": "True"}, initialized]}}
    metadata = {"name": "p", "labels": {"grove.io/podgang": "g", "grove.io/podclique": "w"}}
    pod: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    pod |= {"spec": {"containers": [{"name": "m"}], "schedulingGates": [{"name": "grove.io/podgang-pending-creation"}]}}
    file = tmp_path / "objects.yaml"
    for made in ((), (pod,)):
        file.write_text(as_yaml(gang, clique | {"status": {"lastErrors": [error]}}, *made))
        asked = CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"])
        (line,) = json.loads(asked.output)["gangs"]
        assert line["reason"] == "exceeded quota: small (PodClique w)"


def test_pods_that_the_grouper_refuses_are_listed_with_what_it_says(served: ServedCluster) -> None:
    """They wait for a gang that is not made: the list of gangs says so, at once and to those who follow it."""
    said = "annotation kai.scheduler/batch-min-member: found 'two', expected a whole number"
    pod = {"schedulerName": "nobodys", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}

    async def refuse(client: Client) -> None:
        job = {"metadata": {"name": "train"}, "spec": {"template": {"spec": pod}}}
        uid = (await client.create(JOB, job, "default"))["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
        await client.create(POD, {"metadata": {"name": "train-x", "ownerReferences": [owner]}, "spec": pod}, "default")
        await client.create(EVENT, a_refusal("train-x", said))

    served.call(refuse)
    (line,) = json.loads(served.spinney("get", "gangs", "train", "-o", "json").output)["gangs"]
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "get", "gangs", "-w", "--kubeconfig"]
    process = subprocess.Popen([*command, str(served.kubeconfig)], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    while "train-x" not in (row := process.stdout.readline()):
        pass
    served.call(lambda client: client.delete(POD, "train-x", "default"))
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=60) == 130
    process.stdout.close()
    assert (line["workload"], line["state"], line["reason"]) == ("Job/train", "pending", said)
    assert "Job/train" in row


def test_every_family_is_a_gang(mixed: Path) -> None:
    """PodGroups of other schedulers are listed with their family; single pods only when asked for."""
    found = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(mixed), "-o", "json"]).output)["gangs"]

    assert [(each["name"], each["source"]) for each in found] == [("co-job", "coscheduling"), ("kai-job", "kai")]
    assert "alone" in CliRunner().invoke(main, ["get", "gangs", "--from", str(mixed), "--singles"]).output


@pytest.mark.parametrize("kind", ["gangs", "sets", "nodes"])
def test_a_name_that_is_not_there_is_an_error(served: ServedCluster, kind: str) -> None:
    """Asking for one thing that does not exist fails, as with kubectl, and says how to find what there is."""
    answer = served.spinney("get", kind, "no-such-thing")

    assert answer.exit_code == 1
    assert "no-such-thing" in answer.output
    assert f"'spinney get {kind}" in answer.output


def test_a_namespace_is_shown_only_where_there_are_several(served: ServedCluster) -> None:
    """As with kubectl the namespace is a column when all are listed; wide adds who places the gang, and where."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=2), 2))
    here, everywhere, wide = (served.spinney("get", "gangs", *more).output for more in ([], ["-A"], ["-o", "wide"]))

    assert here.split()[0] == "NAME"
    assert everywhere.split()[0] == "NAMESPACE"
    assert {"KIND", "SCHEDULER", "QUEUE", "NODES"} <= set(wide.splitlines()[0].split())


def test_an_unknown_kind_lists_the_known_ones() -> None:
    """A typo is a usage error with the kinds there are."""
    answer = CliRunner().invoke(main, ["get", "gnags"])

    assert answer.exit_code == 2
    assert "gangs" in answer.output


_TRANSLATED = """
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGang
metadata: {name: train-0, uid: gang}
spec:
  podgroups: [{name: w, minReplicas: 1, podReferences: [{namespace: default, name: p}]}]
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata:
  name: train-0-abcde
  ownerReferences:
    - {apiVersion: scheduler.grove.io/v1alpha1, kind: PodGang, name: train-0, uid: gang, controller: true}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {grove.io/podgang: train-0, grove.io/podclique: w}}
spec: {schedulerName: default-scheduler, schedulingGroup: {podGroupName: train-0-abcde}, containers: [{name: main}]}
"""


def test_a_gang_that_a_backend_translated_is_listed_once(tmp_path: Path) -> None:
    """A PodGang and the native PodGroup that was made of it are one gang: the one that has the pods."""
    file = tmp_path / "cluster.yaml"
    file.write_text(_TRANSLATED)
    found = json.loads(CliRunner().invoke(main, ["get", "gangs", "--from", str(file), "-o", "json"]).output)["gangs"]

    assert [(each["name"], each["pods"]) for each in found] == [("train-0", 1)]


def test_a_watched_row_is_printed_again_when_it_changes(served: ServedCluster) -> None:
    """With -w the table is followed by each row that changed, and by what is gone."""
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "get", "gangs", "-w", "--kubeconfig"]
    process = subprocess.Popen([*command, str(served.kubeconfig)], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    served.call(lambda client: until_running(client, a_training_job("watched", workers=1, gpus=1), 1))
    rows: list[str] = []
    while not any("watched-0" in row and "running" in row for row in rows):
        rows.append(process.stdout.readline())
    served.call(lambda client: client.delete(POD_CLIQUE_SET, "watched", "default"))
    while rows[-1] != "watched-0 is gone\n":
        rows.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=60) == 130
    process.stdout.close()
    assert rows[0].split()[0] == "NAME"


def test_an_object_that_cannot_be_read_ends_no_watch(served: ServedCluster) -> None:
    """KAI's API takes any text for a duration: with one such queue -w, top and drain showed nothing and did not end."""
    odd = {"metadata": {"name": "odd"}, "spec": {"reclaimMinRuntime": "abc"}}

    async def follow(client: Client) -> int:
        await client.create(QUEUE, odd)
        try:
            async with following(Connection(client, "a cluster", "default")) as cluster:
                return len(cluster.snapshot().nodes)
        finally:
            await client.delete(QUEUE, "odd")

    assert served.call(follow) > 0
