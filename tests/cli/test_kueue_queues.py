"""Kueue's ClusterQueues and Cohorts are queues to ``queues``, ``why`` and ``simulate``."""

import gzip
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot
from tests.cli.written import NODE

API = "kueue.x-k8s.io/v1beta1"


def a_cluster_queue(name: str, gpus: int, *, cohort: str = "", borrowing: int | None = None) -> JSON:
    """Return a ClusterQueue with one flavour of GPUs."""
    quota: JSON = {"name": "nvidia.com/gpu", "nominalQuota": gpus}
    if borrowing is not None:
        quota["borrowingLimit"] = str(borrowing)
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [quota]}]}]
    spec = {"resourceGroups": groups, **({"cohort": cohort} if cohort else {})}
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def a_local_queue(name: str, leads_to: str) -> JSON:
    """Return a LocalQueue of the namespace default."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": leads_to}}


def a_job(name: str, queue: str, pods: int) -> JSON:
    """Return a Job of pods with eight GPUs each that start together, in a LocalQueue."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    template = {"spec": {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": [container]}}
    metadata = {
        "name": name,
        "labels": {"kueue.x-k8s.io/queue-name": queue},
        "annotations": {"kai.scheduler/batch-min-member": str(pods)},
    }
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Eight nodes of eight GPUs; two teams that may borrow from one another, and one on its own."""
    cluster = Cluster("8x8")
    cluster.submit(
        a_cluster_queue("research", 16, cohort="lab", borrowing=8),
        a_cluster_queue("serving", 16, cohort="lab"),
        a_cluster_queue("interns", 8),
        a_local_queue("mine", "research"),
        a_local_queue("ours", "serving"),
        a_local_queue("small", "interns"),
    )
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


def spinney(*arguments: object) -> str:
    """Run a command; return what it prints."""
    answer = CliRunner().invoke(main, list(map(str, arguments)))
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_queues_show_quotas_limits_and_cohorts(snapshot: Path) -> None:
    """A limit is nominal quota and what may be borrowed; a cohort has what its members have together."""
    told = json.loads(spinney("queues", "--from", snapshot, "-o", "json"))
    found = {line["name"]: line for line in told["queues"]}
    gpus = {name: line["shares"]["nvidia.com/gpu"] for name, line in found.items()}
    assert found["research"]["parent"] == found["serving"]["parent"] == "cohort/lab"
    assert (gpus["research"]["quota"], gpus["research"]["limit"]) == ("16", "24")
    assert (gpus["serving"]["quota"], gpus["serving"]["limit"]) == ("16", "unlimited")
    assert (gpus["cohort/lab"]["quota"], gpus["cohort/lab"]["limit"]) == ("32", "32")
    assert (gpus["interns"]["quota"], gpus["interns"]["limit"]) == ("8", "8")
    assert found["interns"]["shares"]["cpu"]["limit"] == "unlimited"


@pytest.mark.parametrize(
    ("queue", "pods", "refused_by"),
    [("mine", 3, ""), ("mine", 4, "research"), ("ours", 4, ""), ("ours", 5, "cohort/lab"), ("small", 2, "interns")],
)
def test_simulate_holds_a_job_to_the_quota_of_its_local_queue(
    snapshot: Path, tmp_path: Path, queue: str, pods: int, refused_by: str
) -> None:
    """A Job goes up to what its ClusterQueue may borrow and the Cohort has, and is told which of them is in the way."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(a_job("train", queue, pods)))
    (run,) = json.loads(spinney("simulate", snapshot, "-f", file, "-o", "json"))["runs"]
    assert len(run["placed"]) == (0 if refused_by else pods)
    refusals = [each["explanation"]["queue"]["queue"] for each in run["pending"]]
    assert refusals == ([refused_by] if refused_by else [])


def test_why_speaks_of_a_cluster_queue(snapshot: Path) -> None:
    """A ClusterQueue can be asked about like any queue."""
    assert "quota 16, limit 24" in spinney("why", "queue/research", "--from", snapshot)


@pytest.mark.parametrize("asked", ["cohort/lab", "queue/cohort/lab"])
def test_why_speaks_of_a_cohort(snapshot: Path, asked: str) -> None:
    """A Cohort is asked about by the name that 'spinney queues' lists."""
    assert "quota 32, limit 32" in spinney("why", asked, "--from", snapshot)


def test_a_quota_that_is_no_quantity_is_named(snapshot: Path) -> None:
    """The error says which object of the file is wrong, in which field, and what would be right."""
    written = gzip.decompress(snapshot.read_bytes())
    snapshot.write_bytes(gzip.compress(written.replace(b'"nominalQuota":8', b'"nominalQuota":"many"')))
    answer = CliRunner().invoke(main, ["queues", "--from", str(snapshot)])
    assert answer.exit_code == 1
    assert "ClusterQueue interns: nominalQuota: 'many' is not a quantity; expected a number" in answer.output
    assert "$.spec.resourceGroups[0].flavors[0].resources[0]" in answer.output


def a_waiting_workload(job: str, queue: str, **status: JSON) -> JSON:
    """Return the Workload of a Job that Kueue has not admitted."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u", "controller": True}
    metadata = {"name": f"job-{job}", "namespace": "default", "ownerReferences": [owner]}
    waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "16 more needed"}
    conditions = {"status": {"conditions": [waits, *status.values()]}}
    return {"apiVersion": API, "kind": "Workload", "metadata": metadata, "spec": {"queueName": queue}, **conditions}


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A Job that waits for Kueue, one that has ended, and one whose queue does not exist."""
    file = tmp_path / "waiting.yaml"
    ended = {"type": "Finished", "status": "True"}
    objects = [
        NODE,
        a_cluster_queue("research", 16),
        a_local_queue("mine", "research"),
        a_waiting_workload("late", "mine"),
        a_waiting_workload("done", "mine", ended=ended),
        a_waiting_workload("lost", "nowhere"),
    ]
    file.write_text(yaml.safe_dump_all(objects))
    return file


@pytest.mark.parametrize("subject", ["job/late", "jobs/late", "job.batch/late", "late"])
def test_what_kueue_says_of_a_workload_is_repeated_however_it_is_called(waiting: Path, subject: str) -> None:
    """A suspended Job has no pods, so its Workload is all there is; a plural kind was said not to exist."""
    answer = CliRunner().invoke(main, ["why", subject, "--from", str(waiting)])

    assert answer.exit_code == 1
    assert f"{subject} has no pods yet: Kueue has not admitted it: 16 more needed" in answer.output


def test_queues_say_how_many_workloads_kueue_has_not_admitted(waiting: Path) -> None:
    """They have no pods, so that the queue looked idle; one that has ended does not wait."""
    assert json.loads(spinney("queues", "--from", waiting, "-o", "json"))["suspended"] == {"research": 1}
    answer = spinney("why", "queue/research", "--from", waiting)
    assert "queue research: pending" in answer
    assert "1 suspended workload of it waits, without pods" in answer


@pytest.mark.parametrize("subject", ["mine", "queue/mine"])
def test_a_local_queue_is_answered_with_the_queue_it_leads_to(snapshot: Path, subject: str) -> None:
    """Users name LocalQueues, and may know no other."""
    answer = spinney("why", subject, "-n", "default", "--from", snapshot)

    assert f"{subject} is queue/research" in answer
    assert "queue research:" in answer
