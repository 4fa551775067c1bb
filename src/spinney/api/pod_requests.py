"""How the requests of a pod's containers add up, by Kubernetes' rules.

Containers and sidecars (restartable init containers) run together, so their requests add up. An ordinary init
container runs alone beside the sidecars started before it, so it only matters where it needs more than the rest
together. The rule is stated once for whatever amounts are kept in: columns, or amounts by name.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def peak_of_containers(
    init: Iterable[tuple[T, bool]],
    containers: Iterable[T],
    *,
    nothing: T,
    plus: Callable[[T, T], T],
    most: Callable[[T, T], T],
) -> T:
    """Return the most that a pod's containers need at a time; ``init`` says of each whether it is a sidecar."""
    together = peak = nothing
    for own, sidecar in init:
        beside = plus(together, own)
        peak = most(peak, beside)
        if sidecar:
            together = beside
    for own in containers:
        together = plus(together, own)
    return most(together, peak)
