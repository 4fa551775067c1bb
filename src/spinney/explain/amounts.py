"""How amounts of a resource read: ``6 GPUs``, ``1.5 CPU cores``, ``32 GiB of memory``.

Amounts are the integers of the cluster's columns: millicores for cpu, bytes for memory and storage, units otherwise.
"""

from collections.abc import Sequence
from typing import Final

from spinney.api.pod_requests import LARGEST_AMOUNT

_KIBI: Final = 1024
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_BYTE_RESOURCES: Final = {"memory": "memory", "ephemeral-storage": "ephemeral storage"}
_GPU: Final = "nvidia.com/gpu"
_SHARE: Final = "share of "


def amount(resource: str, value: int) -> str:
    """Return ``value`` of ``resource`` with its unit, rounded to at most two decimals."""
    if resource == "cpu":
        return f"{_decimal(value / 1000)} CPU core{_plural(value == 1000)}"
    if resource in _BYTE_RESOURCES:
        return f"{_bytes(value)} of {_BYTE_RESOURCES[resource]}"
    if resource.startswith("hugepages-"):
        return f"{_bytes(value)} of {resource}"
    if resource == "pods":
        return f"{value} pod slot{_plural(value == 1)}"
    if resource == _GPU:
        return f"{value} GPU{_plural(value == 1)}"
    if resource.startswith(_SHARE):
        return f"{value} share{_plural(value == 1)} of {resource.removeprefix(_SHARE)}"
    return f"{value} {resource}"


def too_large(resource: str, wanted: int, largest: int) -> str:
    """Return that a pod asks for more than ``largest``, what the largest node offers."""
    offered = f"the largest node offers {amount(resource, largest)}" if largest else "no node offers any"
    more = " or more" if wanted >= LARGEST_AMOUNT else ""  # larger amounts are not kept
    return f"the pod requests {amount(resource, wanted)}{more}, but {offered}"


def listed(parts: list[str]) -> str:
    """Join ``parts`` as an English list: ``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def first_few(names: Sequence[object], most: int = 3) -> str:
    """Join the first ``most`` of many names, and say how many more there are: ``a, b, c and 7 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def counted(count: int, noun: str) -> str:
    """Return ``1 node`` or ``3 nodes``."""
    return f"{count} {noun}{_plural(count == 1)}"


def _plural(singular: bool) -> str:
    return "" if singular else "s"


def _decimal(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _bytes(value: int) -> str:
    scaled, unit = float(value), 0
    while abs(scaled) >= _KIBI and unit < len(_UNITS) - 1:
        scaled /= _KIBI
        unit += 1
    return f"{_decimal(scaled)} {_UNITS[unit]}"
