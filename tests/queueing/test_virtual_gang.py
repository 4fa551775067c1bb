"""The gang that a suspended workload would be is the one that the grouper makes of its pods."""

from datetime import UTC, datetime

import pytest

from spinney.api.struct import JSON
from spinney.grouping import floors
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


def test_a_train_job_whose_runtime_is_not_there_says_so() -> None:
    """The reason names the runtime."""
    with pytest.raises(RuleRefused, match="torch"):
        made("TrainJob", "trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}})


def test_a_workload_of_any_number_of_pods_is_refused_before_they_are_made_up() -> None:
    """Two billion pods are a number in a Job, and would be the end of a scheduler that made them up."""
    spec = {"parallelism": 2**31 - 1, "completions": 2**31 - 1, "template": POD}
    with pytest.raises(RuleRefused, match="more than 10000 pods"):
        made("Job", "batch/v1", spec)


def test_the_parts_of_a_wide_workload_are_made_once_for_all_its_pods() -> None:
    """A thousand replicas of a Job are a thousand parts, not a thousand for each of a thousand pods."""
    wide = {"name": "wide", "replicas": 1000, "template": {"spec": {"template": POD}}}
    before = floors._split.cache_info().misses
    found = made("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [wide]})
    assert len(found.gang.spec.pod_groups) == len(found.pods) == 1000
    assert floors._split.cache_info().misses - before <= 1
