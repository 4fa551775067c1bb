"""How the requests of a pod's containers add up, by Kubernetes' rules.

Containers and sidecars (restartable init containers) run together, so their requests add up. An ordinary init
container runs alone beside the sidecars started before it, so it only matters where it needs more than the rest
together. Amounts are whole numbers by name: CPU in millicores, everything else in whole units.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from spinney.api.quantity import RawQuantity, milli, value

Amounts = Mapping[str, int]

LARGEST_AMOUNT: Final = 1 << 46
"""What larger amounts count as: 64 TiB, which no node has, so that sums over a gang are exact in 64 bits."""


def amount_of(name: str, quantity: RawQuantity) -> int:
    """Return ``quantity`` of ``name`` as a whole number, rounded up."""
    return min(milli(quantity) if name == "cpu" else value(quantity), LARGEST_AMOUNT)


def amounts_of(resources: Mapping[str, RawQuantity]) -> dict[str, int]:
    """Return a resource list such as ``{"cpu": "500m", "memory": "1Gi"}`` in whole numbers, rounded up."""
    return {name: amount_of(name, quantity) for name, quantity in resources.items()}


def peak_of_containers(init: Iterable[tuple[Amounts, bool]], containers: Iterable[Amounts]) -> dict[str, int]:
    """Return the most that a pod's containers need at a time; ``init`` says of each whether it is a sidecar."""
    together: dict[str, int] = {}
    peak: dict[str, int] = {}
    for own, sidecar in init:
        beside = total_of(together, own)
        peak = most_of(peak, beside)
        if sidecar:
            together = beside
    for own in containers:
        together = total_of(together, own)
    return most_of(together, peak)


def total_of(left: Amounts, right: Amounts) -> dict[str, int]:
    """Return the sum, name by name."""
    return {**left, **{name: left.get(name, 0) + amount for name, amount in right.items()}}


def most_of(left: Amounts, right: Amounts) -> dict[str, int]:
    """Return the larger amount of each name."""
    return {**left, **{name: max(left.get(name, 0), amount) for name, amount in right.items()}}
