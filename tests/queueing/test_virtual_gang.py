"""The gang that a suspended workload would be is the one that the grouper makes of its pods."""

import contextlib
import sys
from datetime import UTC, datetime

import pytest

from spinney.api.struct import JSON
from spinney.grouping.terms import RuleRefused
from spinney.queueing.virtual_gang import VirtualGang, virtual_gang, without_uid

BORN = datetime(2026, 1, 1, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
POD: JSON = {
    "spec": {
        "schedulerName": "spinney-scheduler",
        "priorityClassName": "urgent",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    }
}
JOBS = [
    {"name": "launcher", "replicas": 1, "template": {"spec": {"template": POD}}},
    {"name": "node", "replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 3, "template": POD}}},
]


def made(kind: str, api_version: str, spec: JSON, *others: JSON) -> VirtualGang:
    """Return the gang of a workload in the queue ``team``."""
    labels = {"kai.scheduler/queue": "team"}
    metadata = {"name": "train", "namespace": "ns", "uid": UID, "labels": labels}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    priorities = {"urgent": 7}
    return virtual_gang(manifest, others, names=["spinney-scheduler"], priorities=priorities, born=BORN)


def test_a_job_set_has_its_groups() -> None:
    """Each Job of a JobSet is a group with its minimum; pods carry priority and age, under names no pod can have."""
    found = made("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": JOBS})
    assert sorted(group.min_replicas for group in found.gang.spec.pod_groups) == [1, 3, 3]
    assert found.gang.metadata.labels["kai.scheduler/queue"] == "team"
    assert len(found.pods) == len({pod.metadata.name for pod in found.pods}) == 7
    for pod in found.pods:
        assert (pod.spec.priority, pod.metadata.creation_timestamp) == (7, BORN)
        assert pod.metadata.name.endswith("~")
        assert pod.metadata.labels["grove.io/podgang"] == found.gang.metadata.name
    assert found.expected == ("ns", "pg-train-")
    assert without_uid(f"pg-train-{UID}") == "pg-train-"


def test_a_train_job_takes_its_pods_from_its_runtime() -> None:
    """What the runtime describes becomes the gang, with as many nodes as the TrainJob asks for."""
    runtime: JSON = {"kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"}}
    runtime["spec"] = {"template": {"spec": {"replicatedJobs": [JOBS[1] | {"replicas": 1}]}}}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 5}}
    found = made("TrainJob", "trainer.kubeflow.org/v1alpha1", spec, runtime)
    assert [group.min_replicas for group in found.gang.spec.pod_groups] == [5]
    assert found.expected == ("ns", "pg-train-")


def a_runtime(
    *jobs: JSON, kind: str = "ClusterTrainingRuntime", namespace: str = "", policy: JSON | None = None
) -> JSON:
    """Return a runtime called ``torch``."""
    metadata = {"name": "torch", **({"namespace": namespace} if namespace else {})}
    spec = {"mlPolicy": policy or {"numNodes": 1}, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    return {"kind": kind, "metadata": metadata, "spec": spec}


def a_step(name: str, step: str = "", **pod_spec: object) -> JSON:
    """Return a replicated job of a runtime, with the container that the trainer knows."""
    labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}} if step else {}
    node = {"name": "node", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    spec = {"schedulerName": "spinney-scheduler", "containers": [node], **pod_spec}
    return {"name": name, "template": {"metadata": labels, "spec": {"template": {"spec": spec}}}}


def a_train_job(spec: JSON, *runtimes: JSON) -> VirtualGang:
    """Return the gang of a TrainJob with the runtime ``torch``."""
    return made("TrainJob", "trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}} | spec, *runtimes)


def test_a_train_job_says_itself_what_each_node_needs() -> None:
    """``resourcesPerNode`` is added to what the runtime asks for: this is where TrainJobs ask for GPUs."""
    trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}, "requests": {"memory": "1Gi"}}}
    found = a_train_job(
        {"trainer": trainer}, a_runtime(a_step("node", "trainer"), a_step("fetch", "dataset-initializer"))
    )
    asked = {pod.metadata.name.split("-")[1]: dict(pod.spec.containers[0].resources.requests) for pod in found.pods}
    assert {name: str(each.get("nvidia.com/gpu", "-")) for name, each in asked.items()} == {"node": "8", "fetch": "-"}
    assert {"cpu", "memory"} <= asked["node"].keys()


@pytest.mark.parametrize("beside", [False, True])
def test_the_launcher_of_a_train_job_may_be_one_of_its_nodes(*, beside: bool) -> None:
    """With MPI the workers are the nodes; there is one less of them where the launcher works as well."""
    policy = {"numNodes": 1, "mpi": {"runLauncherAsNode": beside}}
    runtime = a_runtime(a_step("node"), a_step("launcher", "trainer"), policy=policy)
    found = a_train_job({"trainer": {"numNodes": 4}}, runtime)
    steps = [pod.metadata.name.split("-")[1] for pod in found.pods]
    assert (steps.count("node"), steps.count("launcher")) == (3 if beside else 4, 1)


@pytest.mark.parametrize("written", ["runtimePatches", "podTemplateOverrides"])
def test_patches_of_a_train_job_say_where_its_pods_may_go(written: str) -> None:
    """A node selector that a TrainJob adds counts, in the form of either version of the trainer."""
    selector = {"nodeSelector": {"zone": "b"}}
    patched = {"name": "node", "template": {"spec": {"template": {"spec": selector}}}}
    patches = {
        "runtimePatches": [
            {"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patched]}}}}
        ],
        "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": selector}],
    }
    runtime = a_runtime(a_step("node", "trainer", nodeSelector={"disk": "fast"}))
    found = a_train_job({written: patches[written]}, runtime)
    assert [dict(pod.spec.node_selector) for pod in found.pods] == [{"disk": "fast", "zone": "b"}]


def test_a_runtime_of_another_namespace_is_not_meant() -> None:
    """Two teams may call their TrainingRuntimes alike."""
    theirs = a_runtime(a_step("node", "trainer"), kind="TrainingRuntime", namespace="other", policy={"numNodes": 9})
    ours = a_runtime(a_step("node", "trainer"), kind="TrainingRuntime", namespace="ns", policy={"numNodes": 2})
    reference = {"runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}}
    assert len(a_train_job(reference, theirs, ours).pods) == 2
    with pytest.raises(RuleRefused, match="TrainingRuntime 'torch', which is not there"):
        a_train_job(reference, theirs)


@pytest.mark.parametrize("wrong", [None, True, -1, "text", [None], {"a": None}])
@pytest.mark.parametrize("field", ["replicatedJobs", "runtimeRef", "trainer", "runtimePatches"])
def test_what_has_no_shape_is_refused_and_nothing_else(field: str, wrong: object) -> None:
    """A CRD may have no schema, so anything can stand in a field: the workload is refused, or it is made sense of."""
    for kind, version in (("JobSet", "jobset.x-k8s.io/v1alpha2"), ("TrainJob", "trainer.kubeflow.org/v1alpha1")):
        spec: JSON = {"runtimeRef": {"name": "torch"}, "replicatedJobs": JOBS, field: wrong}
        with contextlib.suppress(RuleRefused):
            assert made(kind, version, spec, a_runtime(a_step("node", "trainer"))).pods


def test_a_train_job_whose_runtime_is_not_there_says_so() -> None:
    """The reason names the runtime."""
    with pytest.raises(RuleRefused, match="torch"):
        made("TrainJob", "trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}})


def test_a_job_of_no_pods_is_refused_for_that() -> None:
    """The reason is the number that its user wrote, not the rule of its kind."""
    with pytest.raises(RuleRefused, match="it asks for 0 pods, expected at least 1"):
        made("Job", "batch/v1", {"parallelism": 0, "template": POD})


def test_a_workload_of_any_number_of_pods_is_refused_before_they_are_made_up() -> None:
    """Two billion pods are a number in a Job, and would be the end of a scheduler that made them up."""
    spec = {"parallelism": 2**31 - 1, "completions": 2**31 - 1, "template": POD}
    with pytest.raises(RuleRefused, match="more than 10000 pods"):
        made("Job", "batch/v1", spec)


def calls_for(spec: JSON) -> int:
    """Return how many functions are called to make up the gang of a JobSet."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        made("JobSet", "jobset.x-k8s.io/v1alpha2", spec)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("wide", [True, False], ids=["replicas", "roles"])
@pytest.mark.parametrize("order", ["AnyOrder", "InOrder"])
def test_a_workload_of_twice_the_parts_takes_twice_the_work(wide: bool, order: str) -> None:
    """The parts of a workload are found once, not for each of its pods; whoever may write a JobSet writes any number.

    What is made of twice as many parts is a little more than twice the work, never four times.
    """

    def of(parts: int) -> JSON:
        job = {"replicas": parts if wide else 1, "template": {"spec": {"template": POD}}}
        jobs = [{**job, "name": f"part-{number}"} for number in range(1 if wide else parts)]
        return {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": order}}

    assert len(made("JobSet", "jobset.x-k8s.io/v1alpha2", of(100)).gang.spec.pod_groups) == 100
    assert calls_for(of(200)) < 3 * calls_for(of(100))


def test_a_template_that_is_nested_without_end_is_refused() -> None:
    """Where a CRD has no schema a template has any depth; the workload stays where it is, and others wait on."""
    deep: JSON = {}
    for _ in range(5000):
        deep = {"deeper": deep}
    job = {"name": "odd", "template": {"spec": {"template": {"spec": {**POD["spec"], "affinity": deep}}}}}
    with pytest.raises(RuleRefused):
        made("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [job]})
