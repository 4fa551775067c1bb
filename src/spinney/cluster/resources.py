"""The axis of resources: which column of a resource vector is which resource.

Vectors are exact ``int64``: cpu in millicores, memory and storage in bytes, everything else in whole units. The axis
only grows. Its *width* is the number of columns arrays are allocated with; it grows in steps, so that a new extended
resource seldom makes an array move.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.api.quantity import RawQuantity, milli, value

Vector = npt.NDArray[np.int64]
"""Amounts by column of a :class:`ResourceAxis`, ``[resource]``."""

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2
PODS: Final = 3
GPU: Final = 4

CPU_NAME: Final = "cpu"
MEMORY_NAME: Final = "memory"
EPHEMERAL_STORAGE_NAME: Final = "ephemeral-storage"
PODS_NAME: Final = "pods"
GPU_NAME: Final = "nvidia.com/gpu"
MIG_PREFIX: Final = "nvidia.com/mig-"

_WIDTH_STEP: Final = 8


class ResourceAxis:
    """Resource names to columns. Mutable: a name gets the next free column the first time it is seen."""

    def __init__(self) -> None:
        self._names = [CPU_NAME, MEMORY_NAME, EPHEMERAL_STORAGE_NAME, PODS_NAME, GPU_NAME]
        self._columns = {name: column for column, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    @property
    def width(self) -> int:
        """Return the number of columns to allocate, at least ``len(self)``."""
        return -(-len(self._names) // _WIDTH_STEP) * _WIDTH_STEP

    def column(self, name: str) -> int:
        """Return the column of ``name``, giving it one if it is new."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self._names)
            self._names.append(name)
        return column

    def find(self, name: str) -> int | None:
        """Return the column of ``name`` if it has one."""
        return self._columns.get(name)

    def name(self, column: int) -> str:
        """Return the resource of ``column``."""
        return self._names[column]

    def zeros(self) -> Vector:
        """Return an empty vector."""
        return np.zeros(self.width, dtype=np.int64)

    def amount(self, name: str, quantity: RawQuantity) -> int:
        """Return ``quantity`` of ``name`` in the unit of its column, rounded up."""
        return milli(quantity) if name == CPU_NAME else value(quantity)

    def vector(self, amounts: Mapping[str, RawQuantity]) -> Vector:
        """Return the vector of a Kubernetes resource list such as ``{"cpu": "500m", "memory": "1Gi"}``."""
        columns = [(self.column(name), self.amount(name, quantity)) for name, quantity in amounts.items()]
        vector = self.zeros()
        for column, amount in columns:
            vector[column] = amount
        return vector

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
    return int(digits) if digits.isdigit() else 0
