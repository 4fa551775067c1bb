"""GPUs that nobody can use because their node has too little CPU or memory left for the pods that ask for GPUs."""

import numpy as np
import numpy.typing as npt

from spinney.scheduler.packing.workload import Workload

Amounts = npt.NDArray[np.float64]
"""Amounts by node."""
AnyAmounts = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def stranded_gpus(workload: Workload, gpus: Amounts, cpu: AnyAmounts, memory: AnyAmounts) -> Amounts:
    """Return how many of the free GPUs of each node will stay free, on average over what pods ask for with a GPU."""
    if not workload.needs_company:
        return np.zeros(len(gpus))
    usable = np.minimum(cpu / workload.cpu[:, None], memory / workload.memory[:, None])
    idle: Amounts = np.maximum(gpus - usable, 0.0)
    found: Amounts = idle.sum(axis=0) / len(idle)
    return found
