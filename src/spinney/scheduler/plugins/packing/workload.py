"""What pods ask for: how large shares of a GPU are, and how much of other resources comes with one.

Learned from the pods that are there and from nothing else, so it needs no history and follows the workload by itself.
Those that wait are not looked at unless one asks for it: where a pod goes then does not depend on who comes after it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import truediv
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import GPU, PODS, Vector, padded
from spinney.gangs.holdings import Holdings

LEVELS: Final = 100
"""Free space of a device is looked at in hundredths."""
QUANTILES: Final = 8
"""How many ratios of a resource to GPUs stand for all that pods ask for."""

_LEAST: Final = 1e-6
"""The least ratio, so that nothing is divided by zero."""

Ratios = npt.NDArray[np.float64]
Columns = npt.NDArray[np.intp]
Amounts = npt.NDArray[np.float64]
"""Amounts by node, ``[node]``, or by resource and node, ``[resource, node]``."""


@dataclass(frozen=True)
class DemandMix:
    """What pods ask for."""

    sizes: Mapping[int, int]
    """How many devices, or shares of one, are asked for, by hundredths of a device."""
    columns: Columns
    """The resources that are asked for together with GPUs: CPU, memory, and whatever else nodes offer."""
    ratios: Ratios
    """How much of each for one GPU, at evenly spaced quantiles, ``[resource, quantile]``."""

    @cached_property
    def needs_company(self) -> bool:
        """Tell whether GPUs are asked for together with anything else; if not, none can be stranded."""
        return len(self.columns) > 0

    @cached_property
    def hungriest_first(self) -> Sequence[Sequence[float]]:
        """Return the ratios as numbers, ``[quantile][resource]``, the largest first."""
        found: list[list[float]] = self.ratios.T[::-1].tolist()
        return found

    @property
    def has_shares(self) -> bool:
        """Tell whether any pod asks for less than a device."""
        return any(size < LEVELS for size in self.sizes)


def asked_of(holdings: Iterable[Holdings], *, waiting_too: bool = False) -> Counter[RequestClass]:
    """Return how many pods of each request class are placed, of all queues; those that wait are counted on request."""
    asked: Counter[RequestClass] = Counter()
    for each in holdings:
        for kind, count in each.items():
            if kind.charged or waiting_too:
                asked[kind.request] += count
    return asked


def workload_of(asked: Counter[RequestClass], device_memory: int, width: int) -> DemandMix:
    """Return what pods ask for of the first ``width`` resources.

    Shares given in memory are taken on devices of ``device_memory`` MiB.
    """
    sizes: Counter[int] = Counter()
    everything = np.array([column for column in range(width) if column not in {PODS, GPU}], dtype=np.intp)
    needs: list[Vector] = []
    gpus: list[float] = []
    counts: list[int] = []
    for request, count in asked.items():
        amount = gpus_of(request, device_memory)
        if amount <= 0 or count <= 0:
            continue
        if request.share is None:
            sizes[LEVELS] += request.gpus * count
        else:
            size = min(-(-request.share.parts_on(device_memory) * LEVELS // DEVICE), LEVELS)
            sizes[size] += request.share.devices * count
        needs.append(padded(request.requests[:width], width))
        gpus.append(amount)
        counts.append(count)
    if not needs:
        return DemandMix(dict(sizes), np.empty(0, dtype=np.intp), np.empty((0, QUANTILES)))
    table = np.array(needs)[:, everything] / np.array(gpus)[:, None]
    weights = np.array(gpus) * counts
    wanted = np.flatnonzero(table.any(axis=0))
    ratios = [_quantiles(table[:, place], weights) for place in wanted.tolist()]
    return DemandMix(dict(sizes), everything[wanted], np.array(ratios).reshape(-1, QUANTILES))


def needs_of(request: RequestClass, columns: Columns) -> Ratios:
    """Return how much a pod asks for of some resources."""
    found = np.zeros(len(columns))
    known = columns < len(request.requests)
    found[known] = request.requests[columns[known]]
    return found


def gpus_of(request: RequestClass, device_memory: int) -> float:
    """Return the GPUs a pod takes, shares as fractions."""
    if request.share is None:
        return float(request.gpus)
    return request.share.parts_on(device_memory) * request.share.devices / DEVICE


def _quantiles(values: Ratios, weights: Ratios) -> Ratios:
    """Return evenly spaced quantiles of ``values`` by weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    wanted = reached[-1] * (np.arange(QUANTILES) + 0.5) / QUANTILES
    found: Ratios = np.maximum(values[order][np.searchsorted(reached, wanted)], _LEAST)
    return found


def stranded_gpus(workload: DemandMix, gpus: Amounts, others: Amounts) -> Amounts:
    """Return how many of the free GPUs of each node will stay free, on average over what pods ask for with a GPU.

    ``others`` is what is free of the resources of ``workload.columns``, ``[resource, node]``.
    """
    (short,) = (gpus > np.minimum.reduce(others / workload.ratios[:, -1:])).nonzero()
    found: Amounts = np.zeros(len(gpus))
    if len(short):  # where the hungriest leave none idle, nobody does
        usable = np.minimum.reduce(others.take(short, axis=1)[:, None] / workload.ratios[:, :, None])
        idle = np.subtract(gpus.take(short), usable, out=usable)
        np.maximum(idle, 0.0, out=idle)
        found[short] = np.add.reduce(idle) / len(idle)
    return found


def stranded_on(workload: DemandMix, gpus: float, *others: float) -> float:
    """Return the same of one node: for a few nodes numbers are quicker than arrays."""
    idle: list[float] = []
    for ratios in workload.hungriest_first:
        left = gpus - min(map(truediv, others, ratios))
        if left <= 0.0:
            break  # who asks for less with a GPU leaves none idle either
        idle.append(left)
    total = 0.0
    for left in reversed(idle):  # rounded as an array of several nodes is
        total += left
    return total / QUANTILES
