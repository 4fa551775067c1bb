"""Amounts of resources by name, and the little arithmetic that quotas and limits need."""

from collections.abc import Iterable, Mapping
from typing import Any

from spinney.api.quantity import ZERO, Quantity
from spinney.api.struct import JSON

Amounts = Mapping[str, Quantity]


def amounts(given: Any) -> dict[str, Quantity]:
    """Return the quantities of an object's field; an absent one has none."""
    return {name: Quantity.parse(value) for name, value in (given or {}).items()}


def total(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    """Return the sum, name by name."""
    names = dict.fromkeys([*one, *other])
    return {name: one.get(name, ZERO) + other.get(name, ZERO) for name in names}


def most(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    """Return the greater of both, name by name."""
    names = dict.fromkeys([*one, *other])
    return {name: max(one.get(name, ZERO), other.get(name, ZERO)) for name in names}


def more_than(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    """Return what ``one`` has more of than ``other``; what it has less of is left out."""
    found = {name: quantity - other.get(name, ZERO) for name, quantity in one.items()}
    return {name: quantity for name, quantity in found.items() if quantity > ZERO}


def only(given: Amounts, names: Iterable[str]) -> dict[str, Quantity]:
    """Return the amounts of some names."""
    return {name: given[name] for name in names if name in given}


def as_text(given: Amounts) -> str:
    """Return amounts as errors name them."""
    return ",".join(f"{name}={given[name]}" for name in sorted(given))


def written(given: Amounts) -> JSON:
    """Return amounts as a field of an object."""
    return {name: str(given[name]) for name in sorted(given)}


def of_pod(spec: JSON, field: str) -> dict[str, Quantity]:
    """Return what a pod's containers ask for (``field`` is ``requests``) or are held to (``limits``), without overhead.

    Init containers run before the others, sidecars beside them; what the pod says for itself goes before both.
    """
    found: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        found = total(found, amounts((container.get("resources") or {}).get(field)))
    beside: dict[str, Quantity] = {}
    before: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = amounts((container.get("resources") or {}).get(field))
        if container.get("restartPolicy") == "Always":
            found, beside = total(found, own), total(beside, own)
            own = beside
        else:
            own = total(own, beside)
        before = most(before, own)
    said = amounts((spec.get("resources") or {}).get(field))
    return most(found, before) | only(said, ("cpu", "memory"))


def with_usage(quota: JSON, used: Mapping[str, Quantity]) -> JSON | None:
    """Return a ResourceQuota whose status says what is used, or ``None`` if it says so already."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    status = quota.get("status") or {}
    if amounts(status.get("used")) == dict(used) and amounts(status.get("hard")) == amounts(hard):
        return None
    return {**quota, "status": {"hard": hard, "used": written(used)}}
