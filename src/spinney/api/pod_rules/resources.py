"""Rules for what a container requests and is limited to.

Amounts of what the kubelet divides up (cpu, memory, ephemeral storage) may be requested below their limit. Anything
else, such as devices and huge pages, cannot be overcommitted: its request is its limit. Pods come in sets whose
containers are alike: that amounts are right is found out once.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from spinney.api.field_error import FieldError, forbidden, invalid, required
from spinney.api.names import qualified_name_faults
from spinney.api.quantity import ZERO, InvalidQuantity, Quantity
from spinney.api.struct import JSON

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")  # what a container may ask for without a domain before it
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_Amounts = tuple[tuple[str, str], ...]


def resource_faults(resources: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with names and amounts, and with requests against limits."""
    if not _are_right(_amounts(resources.get("requests")), _amounts(resources.get("limits"))):
        yield from _faults(resources, path)


def _amounts(given: Mapping[str, Any] | None) -> _Amounts:
    return tuple((name, str(amount)) for name, amount in given.items()) if given else ()


@lru_cache(maxsize=4096)
def _are_right(requests: _Amounts, limits: _Amounts) -> bool:
    return next(_faults({"requests": dict(requests), "limits": dict(limits)}, ""), None) is None


def _faults(resources: JSON, path: str) -> Iterator[FieldError]:
    amounts: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    for field, found in amounts.items():
        for name, text in (resources.get(field) or {}).items():
            where = f"{path}.{field}[{name}]"
            try:
                found[name] = Quantity.parse(str(text)) if text is not None else ZERO
            except InvalidQuantity as error:
                yield invalid(where, text, str(error))
                continue
            yield from _amount_faults(where, name, found[name])
    requests, limits = amounts["requests"], amounts["limits"]
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _is_overcommitted(name):
                yield required(f"{path}.limits", f"{name} cannot be overcommitted: set its limit to {request}")
        elif request != limit and not _is_overcommitted(name):
            yield invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
        elif request > limit:
            yield invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")
    names = requests.keys() | limits.keys()
    if any(map(_is_huge, names)) and not names & {"cpu", "memory"}:
        yield forbidden(path, "huge pages need cpu or memory beside them")


def _amount_faults(path: str, name: str, amount: Quantity) -> Iterator[FieldError]:
    yield from (invalid(path, name, fault) for fault in qualified_name_faults(name))
    if "/" not in name and name not in _STANDARD and not _is_huge(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, f"must be a standard resource for containers: {', '.join(_STANDARD)}")
    if amount < ZERO:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    elif _is_extended(name) and amount.milli % 1000:
        yield invalid(path, str(amount), "must be an integer")
    elif _is_huge(name) and not _fills_pages(name, amount):
        yield invalid(path, str(amount), f"must be a positive multiple of the page size of {name}")


def _is_huge(resource: str) -> bool:
    return resource.startswith(_HUGE_PAGES)


def _is_extended(resource: str) -> bool:
    """Tell whether a resource is counted whole and never overcommitted: it belongs to a device."""
    return "/" in resource and _NATIVE not in resource


def _is_overcommitted(resource: str) -> bool:
    return not _is_extended(resource) and not _is_huge(resource)


def _fills_pages(name: str, amount: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except InvalidQuantity:
        return False
    return page > ZERO and amount > ZERO and not amount.milli % page.milli
