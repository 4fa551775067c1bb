"""GPUs that nobody can use because their node has too little of something else left for the pods that ask for GPUs."""

import numpy as np
import numpy.typing as npt

from spinney.scheduler.plugins.packing.workload import Workload

Amounts = npt.NDArray[np.float64]
"""Amounts by node, ``[node]``, or by resource and node, ``[resource, node]``."""


def stranded_gpus(workload: Workload, gpus: Amounts, others: Amounts) -> Amounts:
    """Return how many of the free GPUs of each node will stay free, on average over what pods ask for with a GPU.

    ``others`` is what is free of the resources of ``workload.columns``, ``[resource, node]``.
    """
    usable = (others[:, None, :] / workload.ratios[:, :, None]).min(axis=0)
    idle: Amounts = np.maximum(gpus - usable, 0.0)
    found: Amounts = idle.sum(axis=0) / len(idle)
    return found
