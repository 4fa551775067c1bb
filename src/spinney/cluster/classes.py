"""Request classes: pods that ask for the same thing under the same constraints share one number.

Filters and scores are computed per class, not per pod. A class is what a pod requests, how it wants to share devices
and every constraint on where it may run. Pods whose constraints look at other pods (affinity, spreading) or at objects
of their namespace (volumes, claims) have their namespace, and for the former their labels, in the class as well.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from spinney.api.core import (
    Affinity,
    ContainerPort,
    Pod,
    PodResourceClaim,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from spinney.cluster.devices import DEVICE, share_of_memory
from spinney.cluster.journal import Rows
from spinney.cluster.requests import pod_requests
from spinney.cluster.resources import GPU, MIG_PREFIX, ResourceAxis, Vector, mig_slices, padded

FRACTION_ANNOTATION: Final = "gpu-fraction"
MEMORY_ANNOTATION: Final = "gpu-memory"
DEVICES_ANNOTATION: Final = "gpu-fraction-num-devices"
LEGACY_MIG_ANNOTATION: Final = "kai.scheduler/legacy-mig"
"""Marks a pod of the obsolete style that asked for MIG instances by annotation."""
_FRACTION = re.compile(r"0?\.(\d+)|[01]")


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """A request for a part of one or several GPUs."""

    parts: int
    """Parts of a device (of :data:`~spinney.cluster.devices.DEVICE`); 0 when the request is in memory."""
    memory: int
    """MiB of device memory; 0 when the request is a fraction."""
    devices: int = 1

    def parts_on(self, device_memory: int) -> int:
        """Return the parts one device of ``device_memory`` MiB gives for this request."""
        return self.parts or share_of_memory(self.memory, device_memory)


@dataclass(frozen=True, kw_only=True)
class PodConstraints:
    """Everything but amounts that decides where a pod may run. Fields are as in the pod spec."""

    namespace: str = ""
    """Empty unless a constraint depends on it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Empty unless the pod has affinity to pods or spreads over a topology."""
    node_name: str = ""
    """The node a pod that was not scheduled asks for by name; empty otherwise."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[ContainerPort, ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    """Only those that can restrict nodes: persistent volume claims and ephemeral ones."""
    claims: tuple[PodResourceClaim, ...] = ()

    @property
    def looks_at_pods(self) -> bool:
        """Tell whether where other pods are decides where this one may go."""
        pods = self.affinity is not None and (self.affinity.pod_affinity or self.affinity.pod_anti_affinity)
        return bool(pods or self.topology_spread or self.host_ports)


@dataclass(frozen=True, eq=False)
class RequestClass:
    """What a pod asks for. Compared by identity: one object per class in a process."""

    number: int
    requests: Vector
    """What the pod takes from the ledger; a shared device is accounted apart."""
    constraints: PodConstraints
    share: DeviceShare | None = None
    legacy_mig: bool = False
    mig_slices: int = 0
    """Compute slices of the MIG instances requested."""

    @cached_property
    def carries_rules(self) -> bool:
        """Tell whether a pod of this class, once placed, has a say about where other pods go."""
        affinity = self.constraints.affinity
        return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)

    @cached_property
    def columns(self) -> Rows:
        """Return the columns of resources this class asks for."""
        return np.flatnonzero(self.requests)

    @cached_property
    def amounts(self) -> Vector:
        """Return the requested amounts at :attr:`columns`."""
        return self.requests[self.columns]

    @cached_property
    def gpus(self) -> int:
        """Return the whole devices requested from the device plugin."""
        return int(self.requests[GPU])

    @cached_property
    def requires_gpu(self) -> bool:
        """Tell whether whole devices or a share of one are requested."""
        return self.gpus > 0 or self.share is not None

    def vector(self, width: int) -> Vector:
        """Return the requests with ``width`` columns."""
        return padded(self.requests, width)


class RequestClasses:
    """The request classes seen so far. Mutable: an unseen combination gets the next number."""

    def __init__(self, axis: ResourceAxis) -> None:
        self.axis = axis
        self._classes: list[RequestClass] = []
        self._numbers: dict[bytes, RequestClass] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def __iter__(self) -> Iterator[RequestClass]:
        return iter(self._classes)

    def __getitem__(self, number: int) -> RequestClass:
        return self._classes[number]

    def of(self, pod: Pod) -> RequestClass:
        """Return the class of ``pod``."""
        constraints = constraints_of(pod)
        annotations = pod.metadata.annotations
        sharing = tuple(
            annotations.get(key, "") for key in (FRACTION_ANNOTATION, MEMORY_ANNOTATION, DEVICES_ANNOTATION)
        )
        legacy_mig = any(key == LEGACY_MIG_ANNOTATION or key.startswith(MIG_PREFIX) for key in annotations)
        spec = pod.spec
        key = _encode(
            (
                [container.resources.requests for container in spec.containers],
                [(container.restart_policy, container.resources.requests) for container in spec.init_containers],
                spec.resources,
                spec.overhead,
                pod.status.resize,
                [
                    (status.name, status.allocated_resources, status.resources)
                    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
                    if status.allocated_resources or status.resources
                ],
                sharing,
                legacy_mig,
                constraints,
            )
        )
        known = self._numbers.get(key)
        if known is None:
            requests = pod_requests(pod, self.axis)
            known = RequestClass(
                number=len(self._classes),
                requests=requests,
                constraints=constraints,
                share=_share(*sharing),
                legacy_mig=legacy_mig,
                mig_slices=self._mig_slices(requests),
            )
            self._classes.append(known)
            self._numbers[key] = known
        return known

    def _mig_slices(self, requests: Vector) -> int:
        return sum(mig_slices(name) * amount for name, amount in self.axis.amounts(requests).items())


def constraints_of(pod: Pod) -> PodConstraints:
    """Return the constraints of ``pod``, reduced to what can restrict its nodes."""
    spec = pod.spec
    affinity = spec.affinity
    to_pods = affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)
    to_pods = to_pods or bool(spec.topology_spread_constraints)
    volumes = tuple(
        volume for volume in spec.volumes if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    )
    local = to_pods or bool(volumes or spec.resource_claims)
    ports = tuple(port for container in spec.containers for port in container.ports if port.host_port)
    return PodConstraints(
        namespace=(pod.metadata.namespace or "") if local else "",
        labels=pod.metadata.labels if to_pods else {},
        node_selector=spec.node_selector,
        affinity=affinity,
        tolerations=spec.tolerations,
        host_ports=ports,
        topology_spread=spec.topology_spread_constraints,
        volumes=volumes,
        claims=spec.resource_claims,
    )


def _share(fraction: str, memory: str, devices: str) -> DeviceShare | None:
    count = int(devices) if devices.isdigit() and int(devices) > 0 else 1
    if memory.isdigit() and int(memory) > 0:
        return DeviceShare(parts=0, memory=int(memory), devices=count)
    if _FRACTION.fullmatch(fraction) is None:
        return None
    parts = round(float(fraction) * DEVICE)
    return DeviceShare(parts=parts, memory=0, devices=count) if 0 < parts < DEVICE else None


_encode = msgspec.json.Encoder(order="deterministic").encode
