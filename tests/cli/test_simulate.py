"""``spinney simulate`` says what would be placed where, what waits and why, and what another configuration changes."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from msgspec.structs import replace

from spinney.api.core import Pod
from spinney.api.meta import OwnerReference
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, as_yaml


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A snapshot of two empty nodes with four GPUs each, in one rack."""
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(Cluster("2x4").snapshot(), file)
    return file


def simulate(*arguments: object) -> Result:
    """Run the command."""
    answer = CliRunner().invoke(main, ["simulate", *map(str, arguments)])
    assert "Traceback" not in answer.output
    return answer


def test_a_workload_is_placed_or_explained(snapshot: Path, tmp_path: Path) -> None:
    """What fits is shown with its nodes, what does not with its reason."""
    file = tmp_path / "workload.yaml"
    file.write_text(
        as_yaml(a_training_job("fits", workers=2, gpus=2), a_training_job("waits", workers=3, gpus=2, within=None))
    )
    answer = simulate(snapshot, "-f", file)

    assert answer.exit_code == 0, answer.output
    rows = {line.split()[0]: line for line in answer.output.splitlines() if line.startswith("default/")}
    assert "gpu-000" in rows["default/fits-0"]
    assert "unschedulable on cluster" in rows["default/waits-0"]
    assert "2 pods placed, 3 pending" in answer.output


def test_a_set_that_names_no_scheduler_is_placed_as_others_of_the_cluster_are(tmp_path: Path) -> None:
    """The gangs of other sets tell the operator's default; without any, what is assumed is said."""
    unnamed = a_training_job("new", workers=3, gpus=4, within=None)
    old = a_training_job("old", workers=1, gpus=0, within=None)
    for each in (unnamed, old):
        del each["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"]
    file, snapshot = tmp_path / "workload.yaml", tmp_path / "snapshot.json.gz"
    file.write_text(as_yaml(unnamed))
    cluster = Cluster("2x4")
    write_snapshot(cluster.snapshot(), snapshot)
    assumed = simulate(snapshot, "-f", file)
    labels = {"app.kubernetes.io/part-of": "old", "grove.io/scheduler-name": "spinney-scheduler"}
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "old-0", "namespace": "default", "labels": labels},
        "spec": {"podgroups": []},
    }
    cluster.submit(old, gang)
    write_snapshot(cluster.snapshot(), snapshot)
    seen = simulate(snapshot, "-f", file)

    assert "PodCliqueSet new names no scheduler" in assumed.output
    assert "default-scheduler is assumed" in assumed.output
    assert "names no scheduler" not in seen.output
    assert "default/new-0 " in seen.output
    assert "unschedulable on cluster: 2 of 3 pods found room" in seen.output


def test_a_victim_that_would_be_asked_first_has_its_time_beside_it(snapshot: Path, tmp_path: Path) -> None:
    """Who checkpoints is shown as evicted, with how long it has; programs read it in seconds."""
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "4"}}, "name": "c", "image": "i"}

    def pod(name: str, priority: int, **spec: object) -> dict[str, object]:
        metadata = {"name": name, "annotations": {"spinney.dev/checkpoint-grace": "5m"}}
        body = {"containers": [gpus], "schedulerName": "spinney-scheduler", "priority": priority, **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}

    file = tmp_path / "pods.yaml"
    low = [pod(f"low-{number}", 10, nodeName=f"gpu-00{number}") for number in range(2)]
    file.write_text(yaml.safe_dump_all([*low, pod("high", 90)]))

    answer = simulate(snapshot, "-f", file)
    assert "for default/high, asked first: it has up to 5m0s to checkpoint" in answer.output
    (evicted,) = json.loads(simulate(snapshot, "-f", file, "-o", "json").output)["runs"][0]["evicted"]
    assert evicted["checkpointSeconds"] == 300


def test_the_file_may_be_named_as_in_other_commands(snapshot: Path) -> None:
    """``--from`` names the snapshot as for why and get; two files at once are refused."""
    assert simulate("--from", snapshot).exit_code == 0
    both = simulate(snapshot, "--from", snapshot)
    assert both.exit_code == 2
    assert "name two files" in both.output


def test_two_configurations_are_compared(snapshot: Path, tmp_path: Path) -> None:
    """Spreading instead of packing moves a gang's pods, and the table says from where to where."""
    workload = tmp_path / "workload.yaml"
    workload.write_text(as_yaml(a_training_job("two", workers=2, gpus=1, within=None)))
    configs = []
    for strategy in ("binpack", "spread"):
        config = tmp_path / f"{strategy}.yaml"
        spec = {"placementStrategy": {"gpu": strategy, "cpu": strategy}}
        config.write_text(yaml.safe_dump({"kind": "SchedulingShard", "spec": spec}))
        configs += ["--config", config]
    answer = simulate(snapshot, "-f", workload, *configs, "-o", "json")

    data = json.loads(answer.output)
    assert [len({each["node"] for each in run["placed"]}) for run in data["runs"]] == [1, 2]
    assert data["differences"][0]["gang"] == "default/two-0"
    assert "what" in simulate(snapshot, "-f", workload, *configs).output


def test_a_cluster_is_read_when_no_file_is_given(served: ServedCluster, tmp_path: Path) -> None:
    """Without a snapshot the running cluster is simulated, and nothing in it changes."""
    workload = tmp_path / "workload.yaml"
    workload.write_text(as_yaml(a_training_job("imagined", workers=2)))
    answer = served.spinney("simulate", "-f", str(workload))

    assert "default/imagined-0" in answer.output
    assert "2 pods placed" in answer.output
    assert "imagined" not in served.spinney("get", "gangs", "-A").output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n",
            "Deployment web: spec.template: not there, expected a pod template",
        ),
        ("replicas: 3\n", "workload.yaml:1: document: expected a Kubernetes object"),
        ("a: [1\n", "workload.yaml:2: document: expected ',' or ']'"),
        (
            as_yaml(a_training_job("bad", workers=-1)),
            "workload.yaml:13: spec.template.cliques[0].spec.replicas: Invalid value: -1",
        ),
    ],
)
def test_a_bad_workload_is_refused_with_its_name(snapshot: Path, tmp_path: Path, text: str, expected: str) -> None:
    """A file that holds no workload ends with what was expected."""
    file = tmp_path / "workload.yaml"
    file.write_text(text)
    answer = simulate(snapshot, "-f", file)

    assert answer.exit_code == 1
    assert expected in answer.output


def test_a_file_that_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    """Neither a truncated snapshot nor something else is taken for one."""
    file = tmp_path / "broken.gz"
    file.write_bytes(b"\x1f\x8b\x08\x00broken")

    assert "is damaged" in simulate(file).output


def test_a_bad_configuration_names_the_field(snapshot: Path, tmp_path: Path) -> None:
    """A misspelt field of the scheduler's configuration is one sentence."""
    config = tmp_path / "config.yaml"
    config.write_text("acitons: [allocate]")
    answer = simulate(snapshot, "--config", config)

    assert answer.exit_code == 1
    assert "acitons" in answer.output
    config.write_text("plugins: [nosuch]")
    assert "no plugin is called 'nosuch'" in simulate(snapshot, "--config", config).output


_KUBERAY = """
apiVersion: ray.io/v1
kind: {kind}
metadata: {{name: ray}}
spec:
  {where}:
    headGroupSpec:
      template: {{spec: {{schedulerName: spinney-scheduler, containers: [{{name: head, image: x}}]}}}}
    workerGroupSpecs:
    - groupName: w
      replicas: 2
      template: {{spec: {{schedulerName: spinney-scheduler, containers: [{{name: worker, image: x}}]}}}}
"""
_CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      parallelism: 3
      template:
        spec: {schedulerName: spinney-scheduler, restartPolicy: Never, containers: [{name: main, image: x}]}
"""
_TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm}
spec: {runtimeRef: {name: torch}, trainer: {numNodes: 3}}
"""
_RUNTIME = """
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec: {schedulerName: spinney-scheduler, restartPolicy: Never, containers: [{name: node, image: x}]}
"""


@pytest.mark.parametrize(
    "text",
    [
        _KUBERAY.format(kind="RayJob", where="rayClusterSpec"),
        _KUBERAY.format(kind="RayService", where="rayClusterConfig"),
        _CRON_JOB,
        _TRAIN_JOB + _RUNTIME,
    ],
    ids=["RayJob", "RayService", "CronJob", "TrainJob"],
)
def test_workloads_that_make_other_workloads_become_pods(tmp_path: Path, text: str) -> None:
    """Where a controller makes another workload of it, the pods of that one are simulated: three of each here."""
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "workload.yaml"
    cluster.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 8, pods: 9}}\n")
    file.write_text(text)
    answer = CliRunner().invoke(main, ["simulate", str(cluster), "-f", str(file)])

    assert "3 pods placed, 0 pending" in answer.output, answer.output


def test_a_fault_in_a_workload_file_has_its_place(tmp_path: Path) -> None:
    """A misspelt field is named with file, line and nearest word, as validate does; so is what is missing."""
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "workload.yaml"
    cluster.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 8, pods: 9}}\n")
    file.write_text(_CRON_JOB.replace("parallelism", "paralelism"))
    misspelt = CliRunner().invoke(main, ["simulate", str(cluster), "-f", str(file)])
    file.write_text(_TRAIN_JOB)
    missing = CliRunner().invoke(main, ["simulate", str(cluster), "-f", str(file)])

    assert f"{file}:9: spec.jobTemplate.spec.paralelism: unknown key; did you mean 'parallelism'?" in misspelt.output
    assert f"{file}:2: TrainJob llm: spec.runtimeRef: its pods are described by" in missing.output


@pytest.mark.parametrize("ran", [False, True])
def test_a_workload_that_is_there_already_is_made_anew(tmp_path: Path, ran: bool) -> None:
    """Of a set that was changed only the new pods are placed: the old ones waited beside them, in the same gang."""
    cluster = Cluster("2x4")
    cluster.submit(a_training_job("train", workers=2 if ran else 3, gpus=4), a_job("other"))
    cluster.step()
    file, taken = tmp_path / "train.yaml", tmp_path / "taken.json.gz"
    write_snapshot(cluster.snapshot(), taken)
    file.write_text(as_yaml(a_training_job("train", workers=1, gpus=4), a_job("other")))
    answer = simulate(taken, "-f", file)

    assert "2 pods placed, 0 pending" in answer.output
    assert f"what the files name has {3 if ran else 4} pods in " in answer.output


def test_pods_of_a_gang_go_with_what_it_was_made_for(tmp_path: Path) -> None:
    """Pods of a JobSet belong to its Jobs, and only their gang says whose it is; the JobSet is made anew whole."""
    jobs = [{"name": "workers", "replicas": 2, "template": {"spec": a_job("x")["spec"]}}]
    metadata = {"name": "set", "namespace": "default"}
    manifest = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}
    file, taken = tmp_path / "set.yaml", tmp_path / "taken.json.gz"
    cluster = Cluster("2x4")
    cluster.submit(manifest | {"spec": {"replicatedJobs": jobs}})
    cluster.step()
    found = cluster.snapshot()
    write_snapshot(found.with_objects(of_its_job(pod) for pod in found.pods), taken)
    file.write_text(as_yaml(manifest | {"spec": {"replicatedJobs": [jobs[0] | {"replicas": 1}]}}))
    answer = simulate(taken, "-f", file)

    assert "1 pod placed, 0 pending" in answer.output
    assert "what the files name has 2 pods in " in answer.output


def of_its_job(pod: Pod) -> Pod:
    """Return a pod as the Job controller makes it."""
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="set-workers", uid="j", controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))


def a_job(name: str) -> JSON:
    """Return a Job of one pod without GPUs."""
    template = {"spec": {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": [{"name": "c"}]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def test_a_set_in_place_of_a_snapshot_is_not_nothing(tmp_path: Path, snapshot: Path) -> None:
    """Manifests are a cluster as it is, where only an operator makes gangs; the option that makes them is named."""
    file = tmp_path / "train.yaml"
    file.write_text(as_yaml(a_training_job("train", workers=2)))

    assert "PodCliqueSet train has no gangs in " in simulate(file).output
    assert "has no gangs" not in simulate(snapshot, "-f", file).output
    assert "has no gangs" not in simulate(file, "-f", file).output
