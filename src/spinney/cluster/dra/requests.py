"""What claims ask for, as values: requests, each with one way to meet it or several in order of preference."""

from typing import Final

import msgspec

from spinney.api.affinity import Toleration
from spinney.api.pod_requests import LARGEST_AMOUNT
from spinney.api.resource_claims import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceConstraint,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)

MOST_DEVICES: Final = 32
"""Kubernetes lets a claim hold at most that many devices."""
_Found = ExactDeviceRequest | DeviceSubRequest
_GPU_WORD: Final = "gpu"


def is_class_of_gpus(name: str) -> bool:
    """Tell whether devices of a class count as GPUs: its name speaks of them."""
    return _GPU_WORD in name


class Option(msgspec.Struct, frozen=True):
    """One way to meet a request: so many devices of a class, or all there are on the node."""

    request: str
    """What devices of this option are booked under: the request's name, or ``request/alternative``."""
    device_class: str
    count: int | None
    """None asks for all devices that match."""
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    admin: bool = False
    """For administrative access: devices are looked at, also those in use."""


class DeviceOptions(msgspec.Struct, frozen=True):
    """Options, the preferred first."""

    name: str
    options: tuple[Option, ...]


class ClaimDemand(msgspec.Struct, frozen=True):
    """Everything a claim asks for. ``problem`` says why it can never be met here; empty if it can."""

    requests: tuple[DeviceOptions, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    problem: str = ""

    @property
    def gpus(self) -> int:
        """Return how many GPUs it counts as: devices of classes whose names speak of GPUs.

        All of a node's devices count as none, because how many they are is known only once the node is; and so do
        devices for administrative access, because they are taken from nobody.
        """
        first = (request.options[0] for request in self.requests if request.options)
        counts = (option.count or 0 for option in first if is_class_of_gpus(option.device_class) and not option.admin)
        return min(sum(counts), LARGEST_AMOUNT)


def ask_of(spec: ResourceClaimSpec) -> ClaimDemand:
    """Read what a claim asks for."""
    requests, problem = [], ""
    for request in spec.devices.requests:
        if request.exactly is not None:
            options: list[tuple[str, _Found]] = [(request.name, request.exactly)]
        else:
            options = [(f"{request.name}/{each.name}", each) for each in request.first_available]
        for name, option in options:
            problem = problem or _problem(name, option)
        requests.append(DeviceOptions(request.name, tuple(_option(name, option) for name, option in options)))
    least = sum(min((option.count or 1 for option in request.options), default=0) for request in requests)
    if least > MOST_DEVICES:
        problem = problem or f"it asks for {least} devices, and a claim may hold {MOST_DEVICES}"
    return ClaimDemand(tuple(requests), spec.devices.constraints, problem)


def _option(name: str, found: _Found) -> Option:
    return Option(
        request=name,
        device_class=found.device_class_name,
        count=None if found.allocation_mode == ALL_DEVICES else found.count or 1,
        selectors=tuple(each.cel.expression for each in found.selectors if each.cel is not None),
        tolerations=found.tolerations,
        admin=isinstance(found, ExactDeviceRequest) and bool(found.admin_access),
    )


def _problem(name: str, found: _Found) -> str:
    if found.allocation_mode not in {"", EXACT_COUNT, ALL_DEVICES}:
        return f"request {name} has the allocation mode {found.allocation_mode!r}, which is not known here"
    if any(selector.cel is None for selector in found.selectors):
        return f"request {name} has selectors of a kind that is not known here"
    if found.capacity is not None and found.capacity.requests:
        return f"request {name} asks for a part of a device's capacity, which is not supported"
    return ""
