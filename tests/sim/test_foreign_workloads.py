"""A workload file of any project comes to the pods its controller makes, or is refused with what to simulate."""

from typing import Any

import pytest

from spinney.api.struct import JSON, to_json
from spinney.sim import Cluster
from spinney.sim.snapshots.expanding import InvalidWorkload

POD_SPEC: JSON = {
    "schedulerName": "spinney-scheduler",
    "containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
}
TEMPLATE: JSON = {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}


def placed(version: str, kind: str, spec: Any, cluster: Cluster | None = None) -> dict[str, str]:
    """Return where the pods of one object are after a cycle, by name."""
    cluster = cluster or Cluster("2x8")
    cluster.submit({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
    cluster.step()
    return {pod.metadata.name: pod.spec.node_name for pod in cluster.snapshot().pods}


@pytest.mark.parametrize(
    ("version", "kind", "spec", "pods"),
    [
        ("v1", "ReplicationController", {"replicas": 2, "template": TEMPLATE}, 2),
        ("argoproj.io/v1alpha1", "Rollout", {"replicas": 2, "template": TEMPLATE}, 2),
        ("run.ai/v1", "RunaiJob", {"parallelism": 2, "template": TEMPLATE}, 2),
        ("serving.knative.dev/v1", "Service", {"template": {"spec": POD_SPEC}}, 1),
        (
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {
                "components": [
                    {
                        "template": {
                            "apiVersion": "batch/v1",
                            "kind": "Job",
                            "metadata": {"name": "j"},
                            "spec": {"parallelism": 3, "template": TEMPLATE},
                        }
                    },
                    {"template": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}},
                ]
            },
            3,
        ),
        ("v1", "Service", {"ports": [{"port": 80}]}, 0),
    ],
)
def test_a_workload_comes_to_its_pods(version: str, kind: str, spec: JSON, pods: int) -> None:
    """As many pods are placed as its controller makes; what makes none is left out."""
    found = placed(version, kind, spec)

    assert len(found) == pods
    assert all(found.values())


def test_a_daemon_set_has_a_pod_for_each_node_that_takes_it() -> None:
    """Nodes that its selector leaves out get none; a cordoned one does, as its controller tolerates that."""
    cluster = Cluster("3x8")
    for number, node in enumerate(cluster.snapshot().nodes):
        changed = to_json(node)
        changed["metadata"]["labels"]["pool"] = "infra" if number < 2 else "other"
        cluster.submit(changed)

    found = placed(
        "apps/v1", "DaemonSet", {"template": {"spec": {**POD_SPEC, "nodeSelector": {"pool": "infra"}}}}, cluster
    )

    assert found == {"x-gpu-000": "gpu-000", "x-gpu-001": "gpu-001"}


def test_a_spark_application_has_a_driver_and_its_executors() -> None:
    """Cores, memory and GPUs become requests; the executors are a gang beside the driver."""
    executor = {"instances": 2, "cores": 4, "memory": "8g", "gpu": {"name": "nvidia.com/gpu", "quantity": 8}}
    spec = {"driver": {"cores": 1}, "executor": {**executor, "schedulerName": "spinney-scheduler"}}
    cluster = Cluster("3x8")
    found = placed("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec, cluster)

    assert len(found) == 3
    executors = [pod for pod in cluster.snapshot().pods if pod.metadata.labels["spark-role"] == "executor"]
    assert len({pod.spec.node_name for pod in executors}) == 2
    assert executors[0].spec.containers[0].resources.requests["memory"] == "8Gi"


def test_a_volcano_job_is_a_gang() -> None:
    """Its tasks are placed together, by the minimum it names, or not at all."""
    tasks = [{"name": "w", "replicas": 3, "template": TEMPLATE}]
    spec = {"minAvailable": 3, "schedulerName": "volcano", "tasks": tasks}
    large = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}

    assert all(placed("batch.volcano.sh/v1alpha1", "Job", spec).values())
    tasks[0]["template"] = {"spec": large}
    assert not any(placed("batch.volcano.sh/v1alpha1", "Job", spec).values())


@pytest.mark.parametrize(
    ("version", "kind", "instead"),
    [
        ("argoproj.io/v1alpha1", "Workflow", "simulate a step as a Job"),
        ("nvidia.com/v1alpha1", "DynamoGraphDeployment", "simulate that ('kubectl get podcliquesets"),
        ("run.ai/v2alpha1", "TrainingWorkload", "run:ai makes another workload of it"),
        ("example.com/v1", "Widget", "cannot be simulated, nothing says which pods its controller makes"),
    ],
)
def test_a_refusal_says_what_to_simulate(version: str, kind: str, instead: str) -> None:
    """Where the object does not say which pods run at one time, the refusal names what does."""
    with pytest.raises(InvalidWorkload) as refused:
        placed(version, kind, {})

    assert kind in str(refused.value)
    assert instead in str(refused.value)
