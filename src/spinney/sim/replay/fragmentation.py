"""Fragmentation: free GPUs that typical pods cannot use (Beware of Fragmentation, USENIX ATC 2023).

For one machine and one typical pod, what is lost of the machine's free GPU thousandths is all of it if the pod asks for
no GPU, may not use the model, does not find its CPU or does not find its GPUs; otherwise what lies on GPUs with less
free than the pod's share. A machine's fragmentation is the mean over typical pods by how common they are; the cluster's
is the sum over machines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinney.sim.replay.trace import WHOLE, Ask, Machine


@dataclass(frozen=True)
class FreeSpace:
    """What is free, by machine: millicores ``[machine]`` and thousandths of each GPU ``[machine, device]``."""

    machines: Sequence[Machine]
    cpu: npt.NDArray[np.int64]
    gpus: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, machines: Sequence[Machine]) -> "FreeSpace":
        """Return the space of machines that nobody uses."""
        width = max((machine.gpus for machine in machines), default=0)
        gpus = np.array([[WHOLE] * each.gpus + [0] * (width - each.gpus) for each in machines], dtype=np.int64)
        return cls(
            machines, np.array([each.cpu for each in machines], dtype=np.int64), gpus.reshape(len(machines), width)
        )

    def take(self, machine: int, ask: Ask, devices: Iterable[int], sign: int = 1) -> None:
        """Note that a pod takes its devices of a machine, or with ``sign`` -1 gives them back."""
        self.cpu[machine] -= sign * ask.cpu
        for device in devices:
            self.gpus[machine, device] -= sign * ask.milli


def fragmentation(space: FreeSpace, typical: Sequence[tuple[Ask, int]]) -> float:
    """Return the GPUs that are lost to typical pods, on average."""
    total = sum(count for _, count in typical)
    if not total:
        return 0.0
    free = space.gpus.sum(axis=1)
    lost = np.zeros(len(free))
    models = np.array([machine.model for machine in space.machines])
    for ask, count in typical:
        if not ask.gpus:
            lost += count * free
            continue
        enough = space.gpus >= ask.milli
        fits = (enough.sum(axis=1) >= ask.gpus) & (space.cpu >= ask.cpu)
        if ask.models:
            fits &= np.isin(models, sorted(ask.models))
        lost += count * np.where(fits, np.where(enough, 0, space.gpus).sum(axis=1), free)
    return float(lost.sum()) / total / WHOLE
