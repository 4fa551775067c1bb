"""Amounts of the three resources that queues are charged for: CPU, memory and GPU.

Everything is a whole number: CPU in millicores, memory in bytes, GPU in the parts of a device that the ledger of shared
devices counts in. So whatever is charged can be taken back without a trace.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, CPU_NAME, GPU_NAME, MEMORY, MEMORY_NAME

UNLIMITED: Final = -1
"""In a quota or limit: no bound."""

GPU: Final = DEVICE
"""One whole device, in the unit GPU amounts are counted in."""

RESOURCES: Final = ("cpu", "memory", "gpu")
NAMES: Final = (CPU_NAME, MEMORY_NAME, GPU_NAME)
"""What Kubernetes calls each of :data:`RESOURCES`."""
UNITS: Final = (1, 1, GPU)
"""The indivisible unit of each resource when fair shares are rounded (one millicore, one byte, one device)."""


_UNLIMITED: Final = "unlimited"


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """How much of each resource; as a quota or limit a negative number means unlimited."""

    cpu: int = 0
    memory: int = 0
    gpu: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu - other.cpu, self.memory - other.memory, self.gpu - other.gpu)

    def times(self, count: int) -> "Amounts":
        """Return ``count`` times these amounts; a negative count takes away."""
        return Amounts(self.cpu * count, self.memory * count, self.gpu * count)

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory or self.gpu)

    def astuple(self) -> tuple[int, int, int]:
        """Return the amounts in the order of :data:`RESOURCES`."""
        return (self.cpu, self.memory, self.gpu)

    def within(self, bound: "Amounts") -> bool:
        """Tell whether no resource is above ``bound``; unlimited bounds always hold."""
        return (
            (bound.cpu < 0 or self.cpu <= bound.cpu)
            and (bound.memory < 0 or self.memory <= bound.memory)
            and (bound.gpu < 0 or self.gpu <= bound.gpu)
        )

    def above_everywhere(self, bound: "Amounts") -> bool:
        """Tell whether every resource is strictly above ``bound``; nothing is above an unlimited bound."""
        return self.cpu > bound.cpu >= 0 and self.memory > bound.memory >= 0 and self.gpu > bound.gpu >= 0

    def describe(self) -> dict[str, str]:
        """Render by resource name: cores, bytes, devices, and the word ``unlimited``."""
        return {
            CPU_NAME: _decimal(self.cpu, 1000),
            MEMORY_NAME: _decimal(self.memory, 1),
            GPU_NAME: _decimal(self.gpu, GPU),
        }

    def quantities(self) -> dict[str, str]:
        """Render as a Kubernetes resource list; what is unlimited is left out."""
        return {name: text for name, text in self.describe().items() if text != _UNLIMITED}


ZERO: Final = Amounts()
NO_BOUND: Final = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)


def total_of(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum of many amounts."""
    cpu = memory = gpu = 0
    for each in amounts:
        cpu += each.cpu
        memory += each.memory
        gpu += each.gpu
    return Amounts(cpu, memory, gpu)


def charge_of(request: RequestClass, gpu_memory: int) -> Amounts:
    """Return what a queue pays for a pod of a class on a node whose GPUs have ``gpu_memory`` MiB each."""
    return Amounts(int(request.requests[CPU]), int(request.requests[MEMORY]), request.gpu_parts(gpu_memory))


def _decimal(amount: int, unit: int) -> str:
    """Render as a Kubernetes quantity: units, or thousandths of one where that is needed."""
    if amount < 0:
        return _UNLIMITED
    if amount % unit == 0:
        return str(amount // unit)
    return f"{-(-amount * 1000 // unit)}m"
