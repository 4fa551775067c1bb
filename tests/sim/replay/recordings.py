"""Recordings written by hand: say which objects a cluster had at which minute, and replay them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spinney.api.struct import JSON
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import History, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.reading import Wanted, read_trace
from spinney.sim.snapshots.files import completed, write_snapshot
from spinney.sim.snapshots.snapshot import BY_NAME, ClusterSnapshot, Unseen, projected
from tests.sim.replay.building import replayed

BEGIN = datetime(2026, 5, 4, 8, tzinfo=UTC)
RACK = "example.com/rack"


def taken(directory: Path, minute: int, *objects: JSON, unseen: tuple[Unseen, ...] = ()) -> Path:
    """Write what a cluster had at a minute, and return the file."""
    found: dict[Any, list[Any]] = {}
    for each in objects:
        resource = BY_NAME[each["apiVersion"], each["kind"]]
        found.setdefault(resource, []).append(projected(resource, completed(each)))
    path = directory / f"{minute:04d}.json.gz"
    kinds = {resource: tuple(each) for resource, each in found.items()}
    write_snapshot(ClusterSnapshot(objects=kinds, taken=BEGIN + timedelta(minutes=minute), unseen=unseen), path)
    return path


def a_node(name: str, *, gpus: int = 4, rack: str = "", taints: Sequence[JSON] = (), **spec: Any) -> JSON:
    """Return a node, in a rack if one is named."""
    labels = {"kubernetes.io/hostname": name} | ({RACK: rack} if rack else {})
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": amounts},
    }


def a_pod(
    name: str,
    node: str = "",
    *,
    gpus: int = 1,
    minute: float = 0,
    group: str = "",
    sub_group: str = "",
    queue: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JSON:
    """Return a pod of whole GPUs that was created at a minute; it runs if it has a node."""
    said = {"kai.scheduler/queue": queue, "kai.scheduler/subgroup-name": sub_group, **(labels or {})}
    named = {"pod-group-name": group} if group else {}
    requests = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": (BEGIN + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z"),
            "labels": {key: text for key, text in said.items() if text},
            "annotations": {**named, **(annotations or {})},
        },
        "spec": {
            "schedulerName": "spinney-scheduler",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **spec,
            **({"nodeName": node} if node else {}),
        },
    }


def a_group(name: str, *, queue: str = "", **spec: Any) -> JSON:
    """Return a PodGroup of KAI."""
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": queue, **spec},
    }


def a_queue(name: str, parent: str = "", *, quota: float = -1, limit: float = -1, **spec: Any) -> JSON:
    """Return a queue with GPUs guaranteed to it, and a bound; of CPU and memory it may have any amount."""
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": free, "memory": free, "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": 1}}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources, **({"parentQueue": parent} if parent else {}), **spec},
    }


def a_class(name: str, value: int) -> JSON:
    """Return a priority class."""
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def racks() -> JSON:
    """Return a topology of racks, called so."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "cluster"},
        "spec": {"levels": [{"nodeLabel": RACK, "alias": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }


def replay_of(directory: Path, config: SchedulerConfig | None = None, **options: float) -> tuple[Trace, History]:
    """Replay a recording, of which nothing may break a rule."""
    trace = read_trace(directory, Wanted())
    history = replayed(trace, config, **options)
    assert problems_of(trace, history) == []
    return trace, history


def nodes_by_job(trace: Trace, history: History) -> dict[str, tuple[str, ...]]:
    """Return where jobs started last."""
    return {trace.jobs[each.job].name: each.nodes for each in history.events if each.what == "started"}
