"""``spinney queues`` shows the tree with what each queue is entitled to, holds and asks for."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from spinney.api.struct import JSON
from spinney.cli import main
from tests.cli.workloads import as_yaml


def a_queue(name: str, *, quota: int, limit: int = -1, parent: str | None = None) -> JSON:
    """Return a queue with a quota of GPUs."""
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {"quota": quota, "limit": limit, "overQuotaWeight": 1}, "cpu": share, "memory": share}
    spec = {"resources": resources} | ({"parentQueue": parent} if parent else {})
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def a_pod(name: str, queue: str, *, gpus: int, node: str = "") -> JSON:
    """Return a pod of KAI's in a queue."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"kai.scheduler/queue": queue}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        }
        | ({"nodeName": node} if node else {}),
    }


def queues(tmp_path: Path, *options: str) -> Result:
    """Show the queues of a cluster of eight GPUs where research has six and asks for more."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"capacity": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}},
    }
    file = tmp_path / "cluster.yaml"
    file.write_text(
        as_yaml(
            node,
            a_queue("company", quota=8),
            a_queue("research", quota=2, parent="company"),
            a_queue("product", quota=4, limit=4, parent="company"),
            a_queue("lost", quota=1, parent="nowhere"),
            a_pod("r1", "research", gpus=6, node="n1"),
            a_pod("r2", "research", gpus=4),
            a_pod("p1", "product", gpus=4),
        )
    )
    return CliRunner().invoke(main, ["queues", "--from", str(file), *options])


def test_the_tree_shows_shares_and_holdings(tmp_path: Path) -> None:
    """Children stand below their parent; a queue without a parent in the cluster says so."""
    lines = queues(tmp_path).output.splitlines()

    assert lines[0].split("   ")[0] == "QUEUE"
    assert lines[1].split() == ["company", "gpu", "8", "unlimited", "8", "6", "14", "0"]
    assert [line.split(" gpu ")[0].rstrip() for line in lines[2:4]] == ["  product", "  research"]
    assert "parent queue nowhere does not exist" in lines[4]


def test_data_has_every_resource(tmp_path: Path) -> None:
    """JSON carries quota, limit, fair share, allocated and requested of each resource."""
    found = {line["name"]: line for line in json.loads(queues(tmp_path, "-o", "json").output)["queues"]}

    share = found["product"]["shares"]["nvidia.com/gpu"]
    assert share == {"quota": "4", "limit": "4", "fairShare": "4", "allocated": "0", "requested": "4"}
    assert set(found["research"]["shares"]) == {"cpu", "memory", "nvidia.com/gpu"}


def test_wide_adds_cpu_and_memory(tmp_path: Path) -> None:
    """The wide table has a row per resource, the queue named in the first."""
    rows = queues(tmp_path, "-o", "wide").output.splitlines()[1:4]

    assert [row[:7].strip() for row in rows] == ["company", "-", "-"]
    assert [row.split()[1] for row in rows] == ["gpu", "cpu", "memory"]


def test_a_resource_of_which_more_is_asked_than_the_limit_is_shown(tmp_path: Path) -> None:
    """A queue that names GPUs only may hold no memory; the table does not hide what keeps its jobs waiting."""
    queue = a_queue("gpuonly", quota=6)
    queue["spec"]["resources"] = {"gpu": queue["spec"]["resources"]["gpu"]}
    pod = a_pod("p", "gpuonly", gpus=1)
    pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(queue, pod))

    by_default, asked = (
        CliRunner().invoke(main, ["queues", "--from", str(file), *more]).output.splitlines()[1:]
        for more in ([], ["--resource", "gpu"])
    )

    assert [row.split()[1:] for row in by_default if " memory " in row] == [
        ["memory", "0.0Gi", "0.0Gi", "0.0Gi", "0.0Gi", "1.0Gi", "-"]
    ]
    assert not [row for row in (*by_default, *asked) if " cpu " in row]
    assert not [row for row in asked if " memory " in row]


def test_an_unknown_resource_is_refused(tmp_path: Path) -> None:
    """A resource that queues do not divide is a usage error that names those they do."""
    answer = queues(tmp_path, "--resource", "disk")

    assert answer.exit_code == 2
    assert "gpu, cpu, memory" in answer.output
