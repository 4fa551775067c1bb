"""Builders of pods as nodes see them, and of pod manifests."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from spinney.api.core import ResourceRequirements
from spinney.api.struct import JSON, convert
from spinney.nodes.behaviour import PodTimings
from spinney.nodes.pods import BoundPod, ContainerSpec

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """Return the moment so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def a_container(name: str = "main", **requests: str | int) -> ContainerSpec:
    """Return a container that requests ``cpu=...``, ``memory=...``, ``gpus=...``."""
    named = {"nvidia.com/gpu" if key == "gpus" else key: amount for key, amount in requests.items()}
    return ContainerSpec(name=name, image="pause", resources=ResourceRequirements(requests=named))


def a_bound_pod(document: Mapping[str, Any] | None = None, /, **spec: Any) -> BoundPod:
    """Return a pod on node ``n0``; ``spec`` are fields of its spec, ``document`` the rest of it."""
    spec = {"nodeName": "n0", "containers": [{"name": "main", "image": "pause"}], **spec}
    metadata = {"name": "p", "namespace": "test", "uid": "u"}
    merged = {**(document or {}), "spec": spec}
    merged["metadata"] = {**metadata, **merged.get("metadata", {})}
    return convert(BoundPod, merged)


def a_behaviour(
    *,
    start: float | None = 0,
    init: float = 0,
    ready: float | None = 0,
    stop: float = 0,
    runs_for: float | None = None,
    exit_code: int = 0,
    restart_back_off: float = 10,
) -> PodTimings:
    """Return a behaviour in seconds; ``None`` is never."""

    def span(seconds: float | None) -> timedelta | None:
        return None if seconds is None else timedelta(seconds=seconds)

    return PodTimings(
        start=span(start),
        init=timedelta(seconds=init),
        ready=span(ready),
        stop=timedelta(seconds=stop),
        runs_for=span(runs_for),
        exit_code=exit_code,
        restart_back_off=timedelta(seconds=restart_back_off),
    )


def a_pod_manifest(
    name: str,
    *,
    node: str | None = "n0",
    requests: Mapping[str, str | int] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    init_containers: Sequence[JSON] = (),
    **spec: Any,
) -> JSON:
    """Return a pod to create, already bound to ``node`` unless that is None."""
    wanted = {key: str(amount) for key, amount in (requests or {}).items()}
    limits = {key: amount for key, amount in wanted.items() if "/" in key}
    body: JSON = {
        "containers": [{"name": "main", "image": "pause", "resources": {"requests": wanted, "limits": limits}}],
        "terminationGracePeriodSeconds": 5,
        **spec,
    }
    if node is not None:
        body["nodeName"] = node
    if init_containers:
        body["initContainers"] = list(init_containers)
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})},
        "spec": body,
    }
