"""Request classes: pods that ask for the same thing under the same constraints share one number.

Filters and scores are computed per class, not per pod. A class is what a pod requests, how it wants to share devices
and every constraint on where it may run. Pods whose constraints look at other pods (affinity, spreading) or at objects
of their namespace (volumes, claims) have their namespace, and for the former their labels, in the class as well: where
every pod has a claim of its own, every pod is a class of its own. So classes that no pod has any more are forgotten.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from spinney.api.affinity import Affinity, Toleration, TopologySpreadConstraint
from spinney.api.core import ContainerPort, PersistentVolumeClaimVolume, Pod, PodResourceClaim, Volume
from spinney.api.guarding import guarded
from spinney.api.labels import GPU_FRACTION, GPU_MEMORY
from spinney.api.pod_requests import LARGEST_AMOUNT
from spinney.cluster.devices import DEVICE, share_of_memory, shares_of_memory, whole_number
from spinney.cluster.journal import Rows
from spinney.cluster.requests import requested
from spinney.cluster.resources import GPU, MIG_PREFIX, ResourceAxis, Vector, mig_slices, padded

DEVICES_ANNOTATION: Final = "gpu-fraction-num-devices"
LEGACY_MIG_ANNOTATION: Final = "kai.scheduler/legacy-mig"
"""Marks a pod of the obsolete style that asked for MIG instances by annotation."""
_FRACTION = re.compile(r"0?\.(\d+)|[01]")
_NO_SHARING: Final = ("", "", "")
_KEPT: Final = 4096
"""How many classes are remembered before those that nobody uses are looked for."""
_KEPT_BYTES: Final = 16 << 20
"""How much may be written in what is remembered, likewise: a single pod may say a megabyte."""
_SHOWN: Final = 40
"""Characters of an annotation that are told."""
_ANYTHING: Final = np.iinfo(np.int64).min
_NO_LABELS: Final[Mapping[str, str]] = {}


class DeviceShare(msgspec.Struct, frozen=True):
    """A request for a part of one or several GPUs."""

    parts: int
    """Parts of a device (of :data:`~spinney.cluster.devices.DEVICE`); 0 when the request is in memory."""
    memory: int
    """MiB of device memory; 0 when the request is a fraction."""
    devices: int = 1

    def parts_on(self, device_memory: int) -> int:
        """Return the parts one device of ``device_memory`` MiB gives for this request."""
        return self.parts or share_of_memory(self.memory, device_memory)

    def parts_on_each(self, device_memory: Vector) -> Vector:
        """Return the same for devices of nodes, ``[node]``."""
        if self.parts:
            return np.full(len(device_memory), self.parts, dtype=np.int64)
        return shares_of_memory(self.memory, device_memory)


class PodConstraints(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but amounts that decides where a pod may run. Fields are as in the pod spec."""

    namespace: str = ""
    """Empty unless a constraint depends on it."""
    labels: Mapping[str, str] = {}
    """Empty unless the pod has affinity to pods or spreads over a topology."""
    node_name: str = ""
    """The node a pod that was not scheduled asks for by name; empty otherwise."""
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[ContainerPort, ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    """Only those that can restrict nodes: persistent volume claims, and ephemeral ones with the claim of the pod."""
    claims: tuple[PodResourceClaim, ...] = ()

    @property
    def looks_at_pods(self) -> bool:
        """Tell whether where other pods are decides where this one may go."""
        pods = self.affinity is not None and (self.affinity.pod_affinity or self.affinity.pod_anti_affinity)
        return bool(pods or self.topology_spread or self.host_ports)


@dataclass(frozen=True, eq=False)
class RequestClass:
    """What a pod asks for. Compared by identity: one object per class in a process, which nobody can write to."""

    number: int
    requests: Vector
    """What the pod takes from the ledger; a shared device is accounted apart."""
    constraints: PodConstraints
    share: DeviceShare | None = None
    legacy_mig: bool = False
    mig_slices: int = 0
    """Compute slices of the MIG instances requested."""
    unoffered: tuple[str, ...] = ()
    """The resources requested that no node has offered so far, by name."""
    misread: str | None = None
    """Which annotation about shared devices cannot be read, and how to write it. Without it no device is asked for."""

    @cached_property
    def carries_rules(self) -> bool:
        """Tell whether a pod of this class, once placed, has rules about where other pods go."""
        affinity = self.constraints.affinity
        return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)

    @cached_property
    def columns(self) -> Rows:
        """Return the columns of resources this class asks for."""
        return _sealed(np.flatnonzero(self.requests))

    @cached_property
    def amounts(self) -> Vector:
        """Return the requested amounts at :attr:`columns`."""
        return _sealed(self.requests[self.columns])

    @cached_property
    def asked(self) -> Sequence[tuple[int, int]]:
        """Return the same as numbers: a column and an amount for each resource, GPUs first: they are scarcest."""
        asked = zip(self.columns.tolist(), self.amounts.tolist(), strict=True)
        return tuple(sorted(asked, key=lambda each: each[0] != GPU))

    def least(self, width: int) -> Vector:
        """Return what a node must have of each of ``width`` resources, ``[resource, 1]``: no bound where none is asked.

        A node may have less than nothing: one that is over-committed in what is not asked for takes the pod.
        """
        known = self._least.get(width)
        if known is None:
            known = self._least[width] = np.full((width, 1), _ANYTHING, dtype=np.int64)
            known[self.columns, 0] = self.amounts
        return known

    @cached_property
    def _least(self) -> dict[int, Vector]:
        return {}

    @cached_property
    def gpus(self) -> int:
        """Return the whole devices requested from the device plugin."""
        return int(self.requests[GPU])

    def gpu_parts(self, gpu_memory: int) -> int:
        """Return the parts of devices requested, :data:`DEVICE` for each whole one, of GPUs with ``gpu_memory`` MiB.

        A MIG slice counts as many GPUs as its profile says, and a share of a device as that part of one.
        """
        parts = (self.gpus + self.mig_slices) * DEVICE
        if self.share is not None:
            parts += self.share.parts_on(gpu_memory) * self.share.devices
        return parts

    @cached_property
    def looks_around(self) -> bool:
        """Tell whether where other pods are, or its volumes, decides where a pod may go."""
        return self.constraints.looks_at_pods or bool(self.constraints.volumes)

    @cached_property
    def requires_gpu(self) -> bool:
        """Tell whether whole devices or a share of one are requested."""
        return self.gpus > 0 or self.share is not None

    def vector(self, width: int) -> Vector:
        """Return the requests with ``width`` columns."""
        return padded(self.requests, width)


class RequestClasses:
    """The request classes of the pods there are, and some of the past. Mutable: a new one gets the next number."""

    def __init__(self, axis: ResourceAxis) -> None:
        self.axis = axis
        self._known: dict[bytes, RequestClass] = {}
        self._numbers = itertools.count()
        self._enough = _KEPT
        self._bytes = 0
        self._most_bytes = _KEPT_BYTES

    def __len__(self) -> int:
        return len(self._known)

    def of(self, pod: Pod) -> RequestClass:
        constraints = constraints_of(pod)
        sharing, legacy_mig = _device_request(pod.metadata.annotations)
        spec, status = pod.spec, pod.status
        statuses = status.container_statuses
        if status.init_container_statuses:
            statuses = (*status.init_container_statuses, *statuses)
        key = _encode(
            (
                [container.resources.requests for container in spec.containers],
                [(container.restart_policy, container.resources.requests) for container in spec.init_containers],
                spec.resources,
                spec.overhead,
                status.resize,
                [
                    (each.name, each.allocated_resources, each.resources)
                    for each in statuses
                    if each.allocated_resources or each.resources
                ],
                sharing,
                legacy_mig,
                constraints,
            )
        )
        known = self._known.get(key)
        if known is None or (known.unoffered and self._is_now_offered(known)):
            requests = requested(pod)
            known = RequestClass(
                number=next(self._numbers),
                requests=_sealed(self.axis.vector(requests)),
                constraints=guarded(constraints),
                share=_share(*sharing),
                legacy_mig=legacy_mig,
                mig_slices=min(sum(mig_slices(name) * each for name, each in requests.items()), LARGEST_AMOUNT),
                unoffered=tuple([name for name in requests if requests[name] and self.axis.find(name) is None]),
                misread=_misread(*sharing),
            )
            if len(self._known) >= self._enough or self._bytes >= self._most_bytes:
                self._forget_unused()
            self._known[key] = known
            self._bytes += len(key)
        return known

    def _forget_unused(self) -> None:
        held = WeakValueDictionary(self._known)
        self._known = {}  # what only this held is gone now
        self._known = dict(held)
        self._enough = _KEPT + 2 * len(self._known)
        self._bytes = sum(map(len, self._known))
        self._most_bytes = _KEPT_BYTES + 2 * self._bytes

    def _is_now_offered(self, known: RequestClass) -> bool:
        """Tell whether a resource has a column by now that had none when the class was made."""
        return any(self.axis.find(name) is not None for name in known.unoffered)


def constraints_of(pod: Pod) -> PodConstraints:
    """Return the constraints of ``pod``, reduced to what can restrict its nodes."""
    spec, metadata = pod.spec, pod.metadata
    affinity, spread, volumes = spec.affinity, spec.topology_spread_constraints, spec.volumes
    to_pods = bool(spread) or (affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity))
    if volumes:
        named = [(each, each.claim_name(metadata.name)) for each in volumes]
        volumes = tuple([_with_claim(volume, claim) for volume, claim in named if claim is not None])
    local = to_pods or bool(volumes or spec.resource_claims)
    return PodConstraints(
        namespace=(metadata.namespace or "") if local else "",
        labels=metadata.labels if to_pods else _NO_LABELS,
        node_selector=spec.node_selector,
        affinity=affinity,
        tolerations=spec.tolerations,
        host_ports=host_ports(pod),
        topology_spread=spread,
        volumes=volumes,
        claims=spec.resource_claims,
    )


def _with_claim(volume: Volume, name: str) -> Volume:
    """Return a volume that names its claim; that of an ephemeral one is made for its pod alone."""
    if volume.persistent_volume_claim is not None:
        return volume
    return msgspec.structs.replace(volume, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=name))


def host_ports(pod: Pod) -> tuple[ContainerPort, ...]:
    """Return the ports ``pod`` takes on its host for as long as it runs: its sidecars' and its containers'."""
    found: list[ContainerPort] = []
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            found += [port for port in container.ports if port.host_port > 0]
    for container in pod.spec.containers:
        if container.ports:
            found += [port for port in container.ports if port.host_port > 0]
    return tuple(found)


def _device_request(annotations: Mapping[str, str]) -> tuple[tuple[str, str, str], bool]:
    """Return how a pod wants to share devices, and whether it asks for MIG instances in the obsolete style."""
    if not annotations:
        return _NO_SHARING, False
    legacy_mig = False
    for key in annotations:
        if key == LEGACY_MIG_ANNOTATION or key.startswith(MIG_PREFIX):
            legacy_mig = True
    sharing = (
        annotations.get(GPU_FRACTION, ""),
        annotations.get(GPU_MEMORY, ""),
        annotations.get(DEVICES_ANNOTATION, ""),
    )
    return sharing, legacy_mig


def _sealed(vector: Vector) -> Vector:
    """Return a vector that cannot be written to any more."""
    vector.setflags(write=False)
    return vector


def _share(fraction: str, memory: str, devices: str) -> DeviceShare | None:
    count = whole_number(devices) or 1
    asked = whole_number(memory)
    if asked:
        return DeviceShare(parts=0, memory=asked, devices=count)
    if _FRACTION.fullmatch(fraction) is None:
        return None
    parts = round(float(fraction) * DEVICE)
    return DeviceShare(parts=parts, memory=0, devices=count) if 0 < parts < DEVICE else None


def _misread(fraction: str, memory: str, devices: str) -> str | None:
    """Return which annotation about shared devices says nothing that can be read; a fraction of 0 asks for none."""
    if fraction and (_FRACTION.fullmatch(fraction) is None or (float(fraction) and _share(fraction, "", "") is None)):
        return f"{_told(GPU_FRACTION, fraction)} is no part of a GPU; write a number between 0 and 1, like 0.5"
    if memory and whole_number(memory) is None:
        return f"{_told(GPU_MEMORY, memory)} is no amount of memory; write MiB as digits, like 4096"
    if devices and not whole_number(devices):
        return f"{_told(DEVICES_ANNOTATION, devices)} is no number of GPUs; write digits, like 2"
    return None


def _told(annotation: str, value: str) -> str:
    return f"annotation {annotation}: {value[:_SHOWN]!r}"


_encode = msgspec.json.Encoder(order="deterministic").encode
