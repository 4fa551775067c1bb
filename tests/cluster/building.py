"""Builders for cluster tests."""

from collections.abc import Mapping
from datetime import UTC, datetime

from spinney.api.affinity import Taint
from spinney.api.core import (
    Container,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from spinney.api.meta import Metadata


def a_node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    conditions: Mapping[str, str] | None = None,
    cpu: str = "8",
    gpus: str = "0",
    resources: Mapping[str, str] | None = None,
) -> Node:
    """Return a node that offers ``resources`` beside cpu, memory, pods and GPUs."""
    offered = {"cpu": cpu, "memory": "64Gi", "pods": "110", "nvidia.com/gpu": gpus, **(resources or {})}
    return Node(
        metadata=Metadata(name=name, labels=dict(labels or {})),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(
            allocatable=offered,
            conditions=tuple(
                NodeCondition(type=kind, status="True" if status == "True" else "False")
                for kind, status in (conditions or {}).items()
            ),
        ),
    )


def a_container(name: str = "main", *, restart_policy: str | None = None, **requests: str) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=requests), restart_policy=restart_policy)


def a_pod(
    name: str = "p1",
    *,
    node: str = "",
    phase: str = "",
    terminating: bool = False,
    containers: tuple[Container, ...] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str | None = None,
    **spec: object,
) -> Pod:
    """Return a pod: pending, or running on ``node``."""
    return Pod(
        metadata=Metadata(
            name=name,
            namespace="team",
            uid=uid or name,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC) if terminating else None,
        ),
        spec=PodSpec(node_name=node, containers=containers or (a_container(cpu="1"),), **spec),  # type: ignore[arg-type]
        status=PodStatus(phase=phase or ("Running" if node else "Pending")),
    )
