"""A pod's quality of service class, which decides who is killed first when a node runs short."""

from typing import Literal

from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.struct import JSON

QualityOfService = Literal["Guaranteed", "Burstable", "BestEffort"]
_COMPUTE = ("cpu", "memory")


def quality_of_service(spec: JSON) -> QualityOfService:
    """Return the class: Guaranteed if every container's cpu and memory limits equal its requests."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    guaranteed, anything = bool(containers), False
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _COMPUTE:
            request, limit = requests.get(name), limits.get(name)
            anything = anything or _positive(request) or _positive(limit)
            if not _positive(limit) or not _same(request, limit):
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(quantity: object) -> bool:
    return quantity is not None and str(quantity) not in {"0", "0m"}


def _same(one: object, other: object) -> bool:
    if one == other:
        return True
    try:
        return one is not None and Quantity.parse(str(one)) == Quantity.parse(str(other))
    except InvalidQuantity:
        return False
