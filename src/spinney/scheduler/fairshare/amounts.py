"""Amounts of the three resources that queues are charged for: CPU, memory and GPU.

Everything is a whole number: CPU in millicores, memory in bytes, GPU in thousandths of a device. A fraction of a GPU
has two decimals at most, so it is exact here, and whatever is charged can be taken back without a trace.
"""

import math
import re
from collections.abc import Mapping

import msgspec

UNLIMITED = -1
"""In a quota or limit: no bound."""

GPU = 1000
"""One whole device, in the unit GPU amounts are counted in."""

RESOURCES = ("cpu", "memory", "gpu")
UNITS = (1, 1, GPU)
"""The indivisible unit of each resource when fair shares are rounded (one millicore, one byte, one device)."""

_MIG_PROFILE = re.compile(r"(?:nvidia\.com/)?mig-(?P<slices>\d+)g\.\d+gb(?:\.\S+)?")


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """How much of each resource; as a quota or limit a negative number means unlimited."""

    cpu: int = 0
    memory: int = 0
    gpu: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu - other.cpu, self.memory - other.memory, self.gpu - other.gpu)

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory or self.gpu)

    def astuple(self) -> tuple[int, int, int]:
        """Return the amounts in the order of :data:`RESOURCES`."""
        return (self.cpu, self.memory, self.gpu)

    def within(self, bound: "Amounts") -> bool:
        """Return whether no resource is above ``bound``; unlimited bounds always hold."""
        return (
            (bound.cpu < 0 or self.cpu <= bound.cpu)
            and (bound.memory < 0 or self.memory <= bound.memory)
            and (bound.gpu < 0 or self.gpu <= bound.gpu)
        )

    def above_everywhere(self, bound: "Amounts") -> bool:
        """Return whether every resource is strictly above ``bound``; nothing is above an unlimited bound."""
        return self.cpu > bound.cpu >= 0 and self.memory > bound.memory >= 0 and self.gpu > bound.gpu >= 0

    def describe(self) -> dict[str, str]:
        """Render as a Kubernetes resource map: cores, bytes, devices; unlimited as ``unlimited``."""
        return {
            "cpu": _thousandths(self.cpu),
            "memory": "unlimited" if self.memory < 0 else str(self.memory),
            "nvidia.com/gpu": _thousandths(self.gpu),
        }


ZERO = Amounts()
NO_BOUND = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)


def gpu_memory_share(requested: int, device_memory: int) -> int:
    """Return what a request for GPU memory is of one device, rounded up to a hundredth, in thousandths."""
    if device_memory <= 0:
        raise ValueError(f"GPU memory of a device is {device_memory}, expected a positive amount")
    return math.ceil(100 * requested / device_memory) * (GPU // 100)


def mig_devices(slices: Mapping[str, int]) -> int:
    """Return what MIG instances count as in GPU thousandths: an instance of ``mig-<X>g.<Y>gb`` counts as X devices."""
    total = 0
    for profile, count in slices.items():
        matched = _MIG_PROFILE.fullmatch(profile)
        if matched is None:
            raise ValueError(f"MIG profile {profile!r} is not of the form mig-<slices>g.<memory>gb")
        total += int(matched["slices"]) * count * GPU
    return total


def _thousandths(amount: int) -> str:
    if amount < 0:
        return "unlimited"
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
