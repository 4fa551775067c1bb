"""Clusters that are written down, for commands that read them from a file."""

from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner

from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON
from spinney.cli import main
from tests.cli.workloads import as_yaml

NODE: JSON = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def a_pod(name: str, *, cpu: str = "1", labels: dict[str, str] | None = None, **spec: object) -> JSON:
    """Return a pod for the default scheduler."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def why(tmp_path: Path, subject: str, *manifests: JSON) -> str:
    """Ask about a cluster that is written down."""
    file = tmp_path / "cluster.yaml"
    file.write_text(as_yaml(*manifests))
    answer = CliRunner().invoke(main, ["why", subject, "--from", str(file)])
    assert answer.exit_code == 0, answer.output
    return answer.output


def a_gang(name: str, clique: str = "all", *, conditions: Sequence[JSON] = (), **metadata: object) -> JSON:
    """Return a PodGang of one pod of a clique."""
    return {
        "apiVersion": POD_GANG.api_version,
        "kind": "PodGang",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"podgroups": [{"name": clique, "minReplicas": 1}]},
        "status": {"conditions": list(conditions)},
    }


def a_member(name: str, gang: str, clique: str = "all", **spec: object) -> JSON:
    """Return a pod of a gang."""
    pod = a_pod(name, labels={"grove.io/podgang": gang, "grove.io/podclique": clique})
    pod["spec"] |= spec
    return pod


def a_refusal(pod: str, said: str) -> JSON:
    """Return the event by which the grouper refuses to put a pod into a gang."""
    return {
        "metadata": {"name": f"{pod}.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": pod},
        "reason": "GroupingRefused",
        "message": said,
        "type": "Warning",
        "source": {"component": "spinney-grouper"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
