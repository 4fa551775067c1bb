"""Facts about the GPUs of a node: how many it offers, and what the labels of the device plugin's discovery say."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.api.core import Node
from spinney.api.quantity import value
from spinney.cluster.resources import GPU_NAME

GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
GPU_COUNT_LABEL: Final = "nvidia.com/gpu.count"
MIG_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
MIG_ENABLED_LABEL: Final = "node-role.kubernetes.io/mig-enabled"

DEVICE: Final = 10_000
"""Parts a device is divided into: a share of a GPU is a whole number of them."""

_HUNDREDTH: Final = DEVICE // 100
_DEFAULT_MEMORY: Final = 100
_MOST: Final = 1 << 30
_DIGITS: Final = 10


def gpus_on(node: Node) -> int:
    """Return how many GPUs a node offers, given out or not."""
    return value(node.status.allocatable.get(GPU_NAME, 0))


def device_columns(labels: Mapping[str, str]) -> dict[str, int]:
    """Return what columns of a node table say of the GPUs of a node; a label that is not a number counts as absent.

    Memory is that of one device in MiB, floored to a multiple of 100. Devices that are divided into MIG instances
    cannot be shared otherwise.
    """
    memory = whole_number(labels.get(GPU_MEMORY_LABEL)) or 0
    floored, strategy = memory - memory % 100, labels.get(MIG_STRATEGY_LABEL)
    return {
        "gpu_memory": floored or _DEFAULT_MEMORY,
        "gpu_memory_known": floored > 0,
        "mig_enabled": labels.get(MIG_ENABLED_LABEL) == "true",
        "mig_single": strategy == "single",
        "mig_mixed": strategy == "mixed",
    }


def share_of_memory(mebibytes: int, device_memory: int) -> int:
    """Return the parts of a device that a GPU memory request takes, rounded up to a hundredth of the device."""
    return -(-100 * mebibytes // device_memory) * _HUNDREDTH


def shares_of_memory(mebibytes: int, device_memory: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the same for devices of several sizes."""
    found: npt.NDArray[np.int64] = -(-100 * mebibytes // np.maximum(device_memory, 1)) * _HUNDREDTH
    return found


def whole_number(text: str | None) -> int | None:
    """Return the number that a text of decimal digits stands for; more devices, or memory, than there are is cut."""
    if not text or not text.isascii() or not text.isdigit():
        return None
    return min(int(text), _MOST) if len(text) <= _DIGITS else _MOST
