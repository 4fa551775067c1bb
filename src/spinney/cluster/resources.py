"""The axis of resources: which column of a resource vector is which resource.

Vectors are exact ``int64``: cpu in millicores, memory and storage in bytes, everything else in whole units. The axis
only grows, and only when a node offers a resource that no node offered before: what pods ask for and no node offers
shares one column of which no node has anything, whatever names tenants think of. Its *width* is the number of columns
arrays are allocated with; it grows in steps, so that a new extended resource seldom makes an array move.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.api.pod_requests import LARGEST_AMOUNT, Amounts

Vector = npt.NDArray[np.int64]
"""Amounts by column of a :class:`ResourceAxis`, ``[resource]``."""

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2
PODS: Final = 3
GPU: Final = 4
UNOFFERED: Final = 5
"""Everything that no node offers."""

CPU_NAME: Final = "cpu"
MEMORY_NAME: Final = "memory"
EPHEMERAL_STORAGE_NAME: Final = "ephemeral-storage"
PODS_NAME: Final = "pods"
GPU_NAME: Final = "nvidia.com/gpu"
MIG_PREFIX: Final = "nvidia.com/mig-"
UNOFFERED_NAME: Final = "resources that no node offers"
UNCLAIMED_GPU_NAME: Final = "nvidia.com/gpu without a claim"
"""GPUs that a node has in its allocatable, where it has others for device claims besides."""

MOST_RESOURCES: Final = 512
"""How many resources have a column of their own; what nodes offer beyond that is not counted."""
_WIDTH_STEP: Final = 8
_NAMED: Final = 4
_MIG_DIGITS: Final = 2


class ResourceAxis:
    """Resource names to columns. Mutable: a name gets the next free column when a node first offers it."""

    def __init__(self) -> None:
        self._names = [CPU_NAME, MEMORY_NAME, EPHEMERAL_STORAGE_NAME, PODS_NAME, GPU_NAME, UNOFFERED_NAME]
        self._columns = {name: column for column, name in enumerate(self._names) if column != UNOFFERED}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    @property
    def width(self) -> int:
        """Return the number of columns to allocate, at least ``len(self)``."""
        return -(-len(self._names) // _WIDTH_STEP) * _WIDTH_STEP

    def fork(self) -> "ResourceAxis":
        """Return an independent copy: it does not grow with this one."""
        copy = ResourceAxis()
        copy._names, copy._columns = list(self._names), dict(self._columns)
        return copy

    def offer(self, names: Iterable[str]) -> list[str]:
        """Give resources that a node offers a column each; return those for which there is none left."""
        beyond = []
        for name in names:
            if name in self._columns:
                continue
            if len(self._names) >= MOST_RESOURCES:
                beyond.append(name)
                continue
            self._columns[name] = len(self._names)
            self._names.append(name)
        return beyond

    def column(self, name: str) -> int:
        """Return the column of ``name``: its own, or that of everything no node offers."""
        return self._columns.get(name, UNOFFERED)

    def find(self, name: str) -> int | None:
        """Return the column of ``name`` if it has one of its own."""
        return self._columns.get(name)

    def name(self, column: int) -> str:
        return self._names[column]

    def names(self, unoffered: Sequence[str]) -> list[str]:
        """Return the resource of each column, where ``unoffered`` are those of the column that no node offers."""
        names = list(self._names)
        if unoffered:
            more = f" and {len(unoffered) - _NAMED} more" if len(unoffered) > _NAMED else ""
            names[UNOFFERED] = ", ".join(unoffered[:_NAMED]) + more
        return names

    def zeros(self) -> Vector:
        return np.zeros(self.width, dtype=np.int64)

    def vector(self, amounts: Amounts) -> Vector:
        """Return amounts by column."""
        vector = self.zeros()
        for name, amount in amounts.items():
            vector[self.column(name)] += amount
        return np.minimum(vector, LARGEST_AMOUNT, out=vector)

    def amounts(self, vector: Vector) -> dict[str, int]:
        """Return the non-zero entries of ``vector`` by resource name, in column order."""
        return {self._names[column]: int(vector[column]) for column in np.flatnonzero(vector)}


def padded(vector: Vector, width: int) -> Vector:
    """Return ``vector`` with ``width`` columns: itself, or a copy with zeros appended."""
    if vector.shape[0] == width:
        return vector
    wider = np.zeros(width, dtype=np.int64)
    wider[: vector.shape[0]] = vector
    return wider


def is_mig(name: str) -> bool:
    """Tell whether ``name`` is a MIG profile such as ``nvidia.com/mig-1g.5gb``."""
    return name.startswith(MIG_PREFIX)


def mig_slices(name: str) -> int:
    """Return the compute slices (the g number) one instance of a MIG profile stands for, 0 for other resources."""
    if not is_mig(name):
        return 0
    digits = name[len(MIG_PREFIX) :].partition("g.")[0]
    return int(digits) if len(digits) <= _MIG_DIGITS and digits.isascii() and digits.isdigit() else 0
