"""Commands speak of the workloads that people know: a Job, a PyTorchJob, not the gang that was made of it."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.notebook.cluster import Cluster
from spinney.sim.snapshots.files import write_snapshot

CONTAINER: JSON = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
POD: JSON = {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": [CONTAINER]}


def a_job(name: str, pods: int) -> JSON:
    """Return a Job that needs all its pods, of a whole node each."""
    metadata = {"name": name, "annotations": {"kai.scheduler/batch-min-member": str(pods)}}
    spec = {"parallelism": pods, "completions": pods, "template": {"spec": POD}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def a_torch_job(name: str, workers: int) -> JSON:
    """Return a PyTorchJob with a master and workers."""
    roles = {
        "Master": {"replicas": 1, "template": {"spec": POD}},
        "Worker": {"replicas": workers, "template": {"spec": POD}},
    }
    spec = {"pytorchReplicaSpecs": roles}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A snapshot of four nodes on which a Job runs and another waits, and a workload file."""
    cluster = Cluster(gpu_cluster(4, 8))
    cluster.submit(a_job("small", 3), a_job("big", 6))
    cluster.run()
    taken, workload = tmp_path / "cluster.json.gz", tmp_path / "torch.yaml"
    write_snapshot(cluster.snapshot(), taken)
    workload.write_text(yaml.safe_dump(a_torch_job("llm", 6)))
    return taken, workload


def said(*arguments: str) -> str:
    """Return what a command prints; it must succeed."""
    answer = CliRunner().invoke(main, list(arguments))
    assert answer.exit_code == 0, answer.output
    return " ".join(answer.output.split())


def test_gangs_are_listed_with_what_they_are_of(files: tuple[Path, Path]) -> None:
    """The list says Job/small, and a gang is found by the name of its workload."""
    everything = said("get", "gangs", "-A", "--from", str(files[0]))
    assert "Job/small" in everything
    assert "Job/big" in everything
    only = said("get", "gangs", "job/big", "-A", "--from", str(files[0]))
    assert "Job/big" in only
    assert "Job/small" not in only


def test_gangs_are_listed_by_the_short_words_of_kubectl(tmp_path: Path) -> None:
    """Who types sts/db for kubectl and for ``why`` does so here."""
    spec = {"replicas": 2, "podManagementPolicy": "Parallel", "template": {"spec": {**POD, "restartPolicy": "Always"}}}
    metadata = {"name": "db", "annotations": {"kai.scheduler/min-member": "2"}}
    cluster = Cluster(gpu_cluster(4, 8))
    cluster.submit({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    taken = tmp_path / "cluster.json.gz"
    write_snapshot(cluster.snapshot(), taken)
    assert "StatefulSet/db" in said("get", "gangs", "sts/db", "-A", "--from", str(taken))


def test_why_is_asked_of_a_workload(files: tuple[Path, Path]) -> None:
    """``why job/big`` is answered for the gang that was made of it."""
    answer = said("why", "job/big", "--from", str(files[0]))
    assert answer.startswith("job/big is podgang/")
    assert "pending" in answer


def test_a_workload_file_of_any_kind_is_simulated(files: tuple[Path, Path]) -> None:
    """A PyTorchJob that does not fit waits as a whole, and is called what it is."""
    answer = said("simulate", str(files[0]), "-f", str(files[1]))
    assert "default/llm PyTorchJob 0 7" in answer


def test_a_kind_that_says_no_pods_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    """What cannot be simulated is said with what can."""
    file = tmp_path / "odd.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "x"}}))
    answer = CliRunner().invoke(main, ["simulate", str(files[0]), "-f", str(file)])
    assert answer.exit_code == 1
    assert "example.com/v1 Odd: cannot be simulated" in answer.output
