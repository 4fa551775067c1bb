"""Rules for what a container requests and is limited to.

Amounts of what the kubelet divides up (cpu, memory, ephemeral storage) may be requested below their limit. Anything
else, such as devices, is whole and cannot be overcommitted: its request is its limit.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spinney.api.names import qualified_name_faults
from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.schema.field_error import FieldError, FieldPath, invalid, required

OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"


def validate_container_resources(resources: Any, path: FieldPath) -> Iterator[FieldError]:
    """Check names and amounts, and requests against limits."""
    if resources is None:
        return
    if not isinstance(resources, dict):
        yield invalid(path, resources, "must be an object with requests and limits")
        return
    found: dict[str, dict[str, Quantity]] = {"limits": {}, "requests": {}}
    for kind, amounts in found.items():
        written = resources.get(kind)
        if written is not None and not isinstance(written, dict):
            yield invalid(path.child(kind), written, "must map names of resources to quantities")
            continue
        for name, text in (written or {}).items():
            where = path.child(kind).key(str(name))
            faults = list(_name(str(name), where))
            yield from faults
            try:
                amount = _quantity(text)
            except InvalidQuantity as fault:
                yield invalid(where, text, str(fault))
                continue
            if not faults:
                amounts[name] = amount
            yield from _amount(str(name), amount, text, where)
    yield from _against_limits(found["requests"], found["limits"], path)


def _quantity(text: Any) -> Quantity:
    if text is None:
        return Quantity(0)
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise InvalidQuantity(repr(text))
    return Quantity.parse(text)


def _name(name: str, path: FieldPath) -> Iterator[FieldError]:
    yield from (invalid(path, name, fault) for fault in qualified_name_faults(name))
    if "/" not in name and name not in OVERCOMMITTED and not name.startswith(_HUGE_PAGES):
        standard = ", ".join(OVERCOMMITTED)
        yield invalid(
            path, name, f"is no resource of a container: {standard}, {_HUGE_PAGES}<size>, or one with its domain"
        )


def _amount(name: str, amount: Quantity, text: Any, path: FieldPath) -> Iterator[FieldError]:
    if amount < Quantity(0):
        yield invalid(path, text, "must not be negative")
    elif "/" in name and amount.milli % 1000:
        yield invalid(path, text, "must be a whole number")


def _against_limits(
    requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], path: FieldPath
) -> Iterator[FieldError]:
    for name, request in requests.items():
        limit = limits.get(name)
        if name in OVERCOMMITTED or _NATIVE in name:
            if limit is not None and request > limit:
                text = f"must be less than or equal to {name} limit of {limit}"
                yield invalid(path.child("requests"), str(request), text)
        elif limit is None:
            yield required(path.child("limits"), f"{name} cannot be overcommitted: set its limit to {request}")
        elif request != limit:
            yield invalid(path.child("requests"), str(request), f"must be equal to {name} limit of {limit}")
