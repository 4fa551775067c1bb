"""``spinney why`` of gangs, of what they are made for, and of the gates that hold them, in a cluster written down."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.grove import POD_CLIQUE
from spinney.api.labels import ABOVE, GROUPED, TOP_OWNER
from spinney.api.struct import JSON
from spinney.cli import main
from tests.cli.workloads import as_yaml
from tests.cli.written import NODE, a_gang, a_member, a_pod, why


def test_foreign_gates_are_named(tmp_path: Path) -> None:
    """A gate of somebody else says who has to act."""
    output = why(tmp_path, "held", NODE, a_pod("held", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))

    assert "pod default/held: gated" in output
    assert "Kueue has not admitted the workload" in output


@pytest.mark.parametrize("known_by", ["annotation", "group", "owner"])
def test_a_gate_of_kueues_says_what_its_workload_says(tmp_path: Path, known_by: str) -> None:
    """The reason is Kueue's own, whichever way the pod and its Workload are tied."""
    pod = a_pod("held", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    metadata: JSON = {"name": "its-workload", "namespace": "default"}
    if known_by == "annotation":
        pod["metadata"]["annotations"] = {"kueue.x-k8s.io/workload": "its-workload"}
    elif known_by == "group":
        pod["metadata"]["labels"] = {"kueue.x-k8s.io/pod-group-name": "its-workload"}
    else:
        pod["metadata"]["uid"] = "u-1"
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "held", "uid": "u-1"}]
    waiting = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient quota for gpu"}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": metadata,
        "status": {"conditions": [waiting]},
    }
    output = why(tmp_path, "held", NODE, pod, workload)

    assert "Kueue has not admitted the workload: insufficient quota for gpu" in output


def test_our_gate_says_what_the_gang_waits_for(tmp_path: Path) -> None:
    """A gated member says which condition of its PodGang is missing, and why."""
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "train-0"},
        "spec": {"podgroups": [{"name": "train-0-worker", "minReplicas": 2}]},
        "status": {
            "conditions": [
                {"type": "BackendReady", "status": "False", "message": "the KAI webhook refused the PodGroup"}
            ]
        },
    }
    gate = {"name": "grove.io/podgang-pending-creation"}
    pod = a_pod("member", schedulingGates=[gate], labels={"grove.io/podgang": "train-0"})
    output = why(tmp_path, "member", NODE, gang, pod)

    assert "waits for its scheduler's backend (BackendReady): the KAI webhook refused the PodGroup" in output


def test_gates_that_are_opening_are_open_in_the_simulation(tmp_path: Path) -> None:
    """While the gates of a complete gang open one by one, the reason is that of the whole gang."""
    clique, gate = "train-0-w", {"name": "grove.io/podgang-pending-creation"}
    names = ["m0", "m1", "m2"]
    references = [{"namespace": "default", "name": name} for name in names]
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "train-0"},
        "spec": {"podgroups": [{"name": clique, "minReplicas": 3, "podReferences": references}]},
        "status": {"conditions": [{"type": "Initialized", "status": "True"}]},
    }
    labels = {"grove.io/podgang": "train-0", "grove.io/podclique": clique}
    pods = [
        a_pod(name, cpu="2", labels=labels, schedulerName="spinney-scheduler", schedulingGates=[gate] * (name != "m0"))
        for name in names
    ]
    output = why(tmp_path, "train-0", NODE, gang, *pods)

    assert "3 pods: 1 pending and 2 gated" in output
    assert "2 of 3 pods found room" in output


def test_a_native_group_counts_together(tmp_path: Path) -> None:
    """Members of a native PodGroup are all left pending when its minimum does not fit."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    pods = [a_pod(f"p{i}", cpu="2", schedulingGroup={"podGroupName": "gang"}) for i in range(3)]
    output = why(tmp_path, "podgroup/gang", NODE, group, *pods)

    assert "3 pods: 3 pending" in output
    assert "2 of 3 pods found room" in output
    assert "NodeResourcesFit: 1 Insufficient cpu (n1)" in output


def test_a_group_of_scheduler_plugins_counts_together(tmp_path: Path) -> None:
    """Members of a coscheduling PodGroup wait together, and what refused the one too many is said."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "mpi"},
        "spec": {"minMember": 3},
    }
    labels = {"scheduling.x-k8s.io/pod-group": "mpi"}
    name = "scheduler-plugins-scheduler"
    pods = [a_pod(f"p{i}", cpu="2", labels=labels, schedulerName=name) for i in range(3)]
    output = why(tmp_path, "mpi", NODE, group, *pods)

    assert "podgroup default/mpi: pending" in output
    assert "2 of 3 pods found room" in output
    assert "NodeResourcesFit: 1 Insufficient cpu (n1)" in output
    assert "simulated from a snapshot" in output


@pytest.mark.parametrize("subject", ["deployment/web", "deployments/web", "deploy/web", "web"])
def test_a_deployment_is_answered_by_a_pod_that_waits(subject: str, tmp_path: Path) -> None:
    """No gang is made for it, and it has pods: the answer is about the first of them that has no node."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "u", "controller": True}
    placed, waiting = a_pod("web-abc-1", nodeName="n1"), a_pod("web-abc-2", nodeSelector={"no": "node"})
    for pod in (placed, waiting):
        pod["metadata"] |= {"ownerReferences": [owner], "labels": {"pod-template-hash": "abc"}}

    output = why(tmp_path, subject, NODE, placed, waiting)

    assert f"pod/web-abc-2 in namespace default is one of the pods of {subject}" in output
    assert "pod default/web-abc-2: pending" in output


def test_a_workload_of_a_users_own_kind_without_a_gang_is_answered_by_a_pod(tmp_path: Path) -> None:
    """The grouper refused its rule, so no gang tells its kind: the owner that its pods name does."""
    owner = {"apiVersion": "example.com/v1", "kind": "PyFlow", "name": "flow", "uid": "u", "controller": True}
    pod = a_pod("flow-driver")
    pod["metadata"]["ownerReferences"] = [owner]

    assert "pod/flow-driver in namespace default is one of the pods of pyflow/flow" in why(
        tmp_path, "pyflow/flow", NODE, pod
    )


@pytest.mark.parametrize("subject", ["lws/model", "leaderworkersets/model", "model"])
def test_a_workload_of_several_gangs_is_answered_for_all_of_them(subject: str, tmp_path: Path) -> None:
    """Each replica of a LeaderWorkerSet is a gang: all are told, the worst state is that of the whole."""
    said = {"kai.scheduler/top-owner-metadata": "name: model\nkind: LeaderWorkerSet\n"}
    objects = [NODE]
    for name, selector in (("model-0", {}), ("model-1", {"no": "node"})):
        objects.append(a_gang(name, labels={GROUPED: "owner"}, annotations=said))
        objects.append(a_member(f"{name}-leader", name, nodeSelector=selector))

    for each in objects[2::2]:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "model", "uid": "u", "controller": True}
        each["metadata"]["ownerReferences"] = [owner]

    output = why(tmp_path, subject, *objects)

    assert "leaderworkerset default/model: pending" in output
    assert "2 gangs: 1 pending and 1 placeable" in output
    assert "podgang default/model-1: pending" in output


@pytest.mark.parametrize("subject", ["nightly", "run-1"])
def test_a_workload_is_found_by_its_name_alone(subject: str, tmp_path: Path) -> None:
    """So is what owns it, as a CronJob; a name that two of them have has to be said with its kind."""
    said = {TOP_OWNER: "name: run-1\nkind: Job\n", ABOVE: "CronJob/nightly"}
    gang = a_gang("g", labels={GROUPED: "owner"}, annotations=said)

    assert "podgang default/g: placeable" in why(tmp_path, subject, NODE, gang, a_member("p", "g"))

    other = a_gang("h", labels={GROUPED: "owner"}, annotations={TOP_OWNER: f"name: {subject}\nkind: JobSet\n"})
    file = tmp_path / "cluster.yaml"
    file.write_text(as_yaml(NODE, gang, a_member("p", "g"), other))
    answer = CliRunner().invoke(main, ["why", subject, "--from", str(file)])
    assert f"'{subject}' could be {'cronjob' if subject == 'nightly' else 'job'}/{subject} in" in answer.output


def test_a_workload_whose_pods_do_not_name_it_is_answered_with_those_that_may_be_parts(tmp_path: Path) -> None:
    """Pods of another scheduler are in no gang, and those of a JobSet name their Job: it was said to have none."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-workers-0", "uid": "u", "controller": True}
    pod = a_pod("js-workers-0-0-x")
    pod["metadata"]["ownerReferences"] = [owner]
    file = tmp_path / "cluster.yaml"
    file.write_text(as_yaml(NODE, pod))

    answer = CliRunner().invoke(main, ["why", "jobset/js", "--from", str(file)])

    assert "no pod says that it is of jobset/js; ask about what may be a part of it: job/js-workers-0" in answer.output


def test_a_scaling_group_is_answered_for_the_gangs_it_has_parts_in(tmp_path: Path) -> None:
    """Its first replicas are in the base gang, the others gangs of their own; other gangs are left out."""
    group = "chat-0-pool"
    objects = [NODE]
    for gang, clique, grown in (
        ("chat-0", "chat-0-pool-0-work", group),
        ("chat-0-pool-0", "chat-0-pool-1-work", group),
        ("chat-1", "chat-1-pool-0-work", "chat-1-pool"),
    ):
        labels = {"grove.io/podcliquescalinggroup": grown}
        metadata = {"name": clique, "namespace": "default", "labels": labels}
        template = {"roleName": "work", "replicas": 1, "podSpec": {"containers": []}}
        objects.append(
            {"apiVersion": POD_CLIQUE.api_version, "kind": "PodClique", "metadata": metadata, "spec": template}
        )
        objects.append(a_gang(gang, clique))
        nowhere = {"no": "node"} if gang == "chat-0-pool-0" else {}
        objects.append(a_member(f"{clique}-x", gang, clique, nodeSelector=nowhere))

    output = why(tmp_path, f"pcsg/{group}", *objects)

    assert f"pcsg default/{group}: pending" in output
    assert "2 gangs: 1 pending and 1 placeable" in output
    assert "podgang default/chat-0-pool-0: pending" in output


def test_a_gang_that_runs_says_that_its_backend_is_not_ready(tmp_path: Path) -> None:
    """Its pods run on, but those that it loses are not replaced: whoever asks about a missing pod is told."""
    condition = {"type": "BackendReady", "status": "False", "reason": "BackendNotEnabled", "message": "enable it again"}
    gang = a_gang("train-0", conditions=[condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}])
    pod = a_member("train-0-all", "train-0", nodeName="n1")

    assert "said by PodGang condition BackendReady: enable it again" in why(
        tmp_path, "podgang/train-0", NODE, gang, pod
    )


def test_a_gang_that_no_scheduler_has_looked_at_is_not_said_to_be_refused(tmp_path: Path) -> None:
    """What the operator sees of its pods, and what the API server said while gates held them, is no refusal."""
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    scheduled = {"type": "Scheduled", "status": "False", "reason": "MinimumNotPlaced", "message": "all has 0 of 1"}
    gang = a_gang("train-0", conditions=[scheduled | since])
    pod = a_member("train-0-all", "train-0", schedulerName="nobodys-scheduler")
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "held by gates"}
    pod["status"] = {"phase": "Pending", "conditions": [gated | since]}

    output = why(tmp_path, "podgang/train-0", NODE, gang, pod)

    assert "nobodys-scheduler has said nothing about it yet: does a scheduler of that name run?" in output
    assert "refused" not in output


def test_what_the_grouper_finds_odd_about_a_gang_is_repeated(tmp_path: Path) -> None:
    """A gang that will never have its minimum waits for ever: the answer has the reason that stands on the PodGang."""
    odd = {"type": "GroupingProblem", "status": "True", "message": "needs 4 pods, but will have 2"}
    output = why(tmp_path, "podgang/web", NODE, a_gang("web", conditions=[odd]), a_member("web-0", "web"))

    assert "said by PodGang condition GroupingProblem: needs 4 pods, but will have 2" in output


def test_pods_of_a_workload_that_another_scheduler_places_are_named(tmp_path: Path) -> None:
    """They are in no gang with the others, which wait for them; a RayCluster's head may have been forgotten."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "u-ray", "controller": True}
    other = {**owner, "name": "other", "uid": "u-other"}
    waits = {"type": "Scheduled", "status": "False", "message": "headgroup has 0 of 1 pods"}
    worker = a_member("ray-worker", "ray", schedulerName="spinney-scheduler")
    head, stranger, elsewhere = a_pod("ray-head"), a_pod("other-head"), a_pod("third-head")
    elsewhere["metadata"]["namespace"] = "elsewhere"  # of a file whose author gave all owners one uid
    for pod, of in ((worker, owner), (head, owner), (stranger, other), (elsewhere, {**owner, "name": "third"})):
        pod["metadata"]["ownerReferences"] = [of]
    output = why(tmp_path, "podgang/ray", NODE, a_gang("ray", conditions=[waits]), worker, head, stranger, elsewhere)

    said = "pod ray-head of RayCluster ray asks for default-scheduler, and cannot be in this gang"
    assert f"{said}: give all pod templates the schedulerName spinney-scheduler" in output
    assert "other-head" not in output
    assert "third-head" not in output


def test_an_owner_that_is_written_oddly_on_a_gang_is_none(tmp_path: Path) -> None:
    """Anyone who may write PodGangs could end the answers about all workloads."""
    said = {"kai.scheduler/top-owner-metadata": "name: train\nkind: Job\n", "spinney.dev/above": "odd CronJob/nightly"}
    gang = a_gang("train", labels={GROUPED: "true"}, annotations=said)
    output = why(tmp_path, "cronjob/nightly", NODE, gang, a_member("train-0", "train"))

    assert "podgang default/train: placeable" in output
