"""What pods ask for: how large shares of a GPU are, and how much CPU and memory comes with one.

Learned from the pods that are there and from nothing else, so it needs no history and follows the workload by itself.
Those that wait are not looked at unless one asks for it: where a pod goes then does not depend on who comes after it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, MEMORY
from spinney.gangs.book import Holdings

LEVELS: Final = 100
"""Free space of a device is looked at in hundredths."""
QUANTILES: Final = 8
"""How many ratios of CPU and memory to GPU stand for all that pods ask for."""

_NOTHING: Final = 1.0
"""The least ratio: one millicore, or one byte, for each GPU."""

Ratios = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Workload:
    """What pods ask for."""

    sizes: Mapping[int, int]
    """How many devices, or shares of one, are asked for, by hundredths of a device."""
    cpu: Ratios
    """Millicores for each GPU, at evenly spaced quantiles; empty if no pod asks for GPUs."""
    memory: Ratios
    """Bytes for each GPU, likewise."""

    @cached_property
    def needs_company(self) -> bool:
        """Tell whether GPUs are asked for together with CPU or memory; if not, none can be stranded."""
        return bool(len(self.cpu)) and (float(self.cpu[-1]) > _NOTHING or float(self.memory[-1]) > _NOTHING)

    @property
    def has_shares(self) -> bool:
        """Tell whether anybody asks for less than a device."""
        return any(size < LEVELS for size in self.sizes)


def asked_of(holdings: Iterable[Holdings], *, waiting_too: bool = False) -> Counter[RequestClass]:
    """Return how many pods of each request class are placed, of all queues; those that wait are counted on request."""
    asked: Counter[RequestClass] = Counter()
    for each in holdings:
        for kind, count in each.items():
            if kind.charged or waiting_too:
                asked[kind.request] += count
    return asked


def workload_of(asked: Counter[RequestClass], device_memory: int) -> Workload:
    """Return what pods ask for; shares given in memory are taken on devices of ``device_memory`` MiB."""
    sizes: Counter[int] = Counter()
    needs: list[tuple[float, float, float]] = []
    for request, count in asked.items():
        gpus = gpus_of(request, device_memory)
        if gpus <= 0:
            continue
        if request.share is None:
            sizes[LEVELS] += request.gpus * count
        else:
            size = min(-(-request.share.parts_on(device_memory) * LEVELS // DEVICE), LEVELS)
            sizes[size] += request.share.devices * count
        needs.append((request.requests[CPU] / gpus, request.requests[MEMORY] / gpus, gpus * count))
    table = np.array(needs, dtype=np.float64).reshape(-1, 3)
    return Workload(
        sizes=dict(sizes),
        cpu=_quantiles(table[:, 0], table[:, 2]),
        memory=_quantiles(table[:, 1], table[:, 2]),
    )


def gpus_of(request: RequestClass, device_memory: int) -> float:
    """Return the GPUs a pod takes, shares as fractions."""
    if request.share is None:
        return float(request.gpus)
    return request.share.parts_on(device_memory) * request.share.devices / DEVICE


def _quantiles(values: Ratios, weights: Ratios) -> Ratios:
    """Return evenly spaced quantiles of ``values`` by weight."""
    if not len(values):
        return np.empty(0)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    wanted = reached[-1] * (np.arange(QUANTILES) + 0.5) / QUANTILES
    found: Ratios = np.maximum(values[order][np.searchsorted(reached, wanted)], _NOTHING)
    return found
