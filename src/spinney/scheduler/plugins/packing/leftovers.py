"""What the free space of a device is worth, given the sizes of shares that are asked for.

Space is worth what will be put into it. A device with 0.19 free is worth little where hardly any pod asks for less than
0.2, and one with 0.53 free little where shares of 0.47 and 0.48 are common and others are not. How much is found as a
market finds prices: if requests come on as they have so far until the cluster is full, each device takes the requests
that pay most for its space; a size that too many devices want becomes dearer, one that is left over becomes cheaper. A
share is then best put where the value of what is left falls least.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.scheduler.plugins.packing.workload import LEVELS

Values = npt.NDArray[np.float64]
"""What free space is worth, in devices, by hundredths that are free: ``[0]`` to ``[100]``."""

_ROUNDS: Final = 40
_FIRST_STEP: Final = 0.4
_SLOWING: Final = 0.15
_MOST_ON_DEVICE: Final = 8
"""How many shares on one device are looked ahead at."""

AT_FACE_VALUE: Final[Values] = np.arange(LEVELS + 1) / LEVELS
"""What space is worth as long as nothing is known about requests."""


def values_of_space(sizes: Mapping[int, int], free: npt.NDArray[np.int64]) -> Values:
    """Return what space is worth where ``free[h]`` devices have ``h`` hundredths free.

    ``sizes`` says how many requests of each size, in hundredths, there are.
    """
    if not sizes or not free.any():
        return AT_FACE_VALUE
    size = np.array(sorted(sizes), dtype=np.int64)
    asked = np.array([sizes[each] for each in size.tolist()], dtype=np.float64)
    supply = free.astype(np.float64)
    space = float(supply @ np.arange(LEVELS + 1))
    expected = asked * (space / float(asked @ size))
    prices = np.zeros(len(size))
    left = np.arange(LEVELS + 1) - size[:, None]
    bars = np.where(left >= 0, 0.0, -np.inf)
    left[left < 0] = 0
    total = np.zeros(LEVELS + 1)
    for number in range(_ROUNDS):
        worth, choice = _best_use(size - prices, left, bars)
        taken = _demand(choice, size, supply)
        excess = (taken - expected) / (taken + expected + 1e-9)
        prices = np.clip(prices + _FIRST_STEP / (1 + _SLOWING * number) * excess * size, 0, size)
        if 2 * number >= _ROUNDS:
            total += worth
    found: Values = total / (LEVELS * (_ROUNDS // 2))
    return found


def _best_use(
    profit: Values, left: npt.NDArray[np.int64], bars: npt.NDArray[np.float64]
) -> tuple[Values, npt.NDArray[np.int64]]:
    """Return the most that each space brings, and the request to begin with; -1 for none.

    ``left`` is what a request leaves of a space; ``bars`` is minus infinity where there is too little for it, else 0:
    ``[request, space]``.
    """
    gain = profit[:, None] + bars
    worth = np.zeros(left.shape[1])
    for _ in range(_MOST_ON_DEVICE):
        use = worth.take(left)
        use += gain
        better = np.maximum.reduce(use, initial=0.0)
        if better.tobytes() == worth.tobytes():  # the quickest comparison; a zero with a sign costs one more round
            break
        worth = better
    else:
        use = gain + worth.take(left)
    best = use.argmax(axis=0)
    brings = use[best, np.arange(use.shape[1])] > 1e-9
    return worth, np.where(brings, best, -1)


def _demand(choice: npt.NDArray[np.int64], size: npt.NDArray[np.int64], supply: Values) -> Values:
    """Return how many requests of each size the devices take together."""
    taken = np.zeros(len(size))
    spaces, wanted = supply, choice >= 0
    rest = np.arange(len(supply)) - size[choice]
    for _ in range(_MOST_ON_DEVICE):
        (filled,) = ((spaces > 0) & wanted).nonzero()
        if not len(filled):
            break
        devices = spaces[filled]
        taken += np.bincount(choice[filled], weights=devices, minlength=len(size))
        spaces = np.bincount(rest[filled], weights=devices, minlength=len(spaces)).astype(np.float64, copy=False)
    return taken
