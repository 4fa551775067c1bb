"""Device selectors: CEL expressions over what a driver says about a device.

``device`` has ``driver``, ``attributes`` and ``capacity``; the latter two are maps of domains to maps of names, and a
domain that a device says nothing about is an empty map. Of Kubernetes' own CEL functions those for quantities and
semantic versions are there, which is what selectors use. An expression that fails on a device (it speaks of an
attribute the device does not have) does not match it. CEL is an optional dependency: without it no claim with selectors
is allocated, and it is told so.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from spinney.api.quantity import InvalidQuantity, milli
from spinney.api.resource_claims import Device, DeviceAttribute
from spinney.api.struct import JSON

Selector = Callable[[str, Device], bool]
"""Tells whether a device of a driver matches."""

_LITERAL: Final = re.compile(r""""([^"\\]*)"|'([^'\\]*)'""")
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class UnusableSelector(ValueError):
    """An expression that cannot be evaluated here; the text says why."""


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Selector:
    """Return a selector, compiled once; raises :class:`UnusableSelector`."""
    if find_spec("cel_expr_python") is None:
        raise UnusableSelector("device selectors need the package cel-expr-python: install spinney[cel]")
    try:
        program = _environment().compile(expression)
    except RuntimeError as error:
        raise UnusableSelector(f"selector {expression!r} is no valid CEL: {str(error).splitlines()[0]}") from error
    domains = tuple(sorted(set(_literals(expression))))

    def matches(driver: str, device: Device) -> bool:
        answer = program.eval(data={"device": _described(driver, device, domains)})
        return answer.value() is True

    return matches


def _described(driver: str, device: Device, domains: Sequence[str]) -> JSON:
    """Return a device as selectors see it; ``domains`` are there even if the device says nothing about them."""
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in (driver, *domains)}
    capacity: dict[str, dict[str, int]] = {domain: {} for domain in (driver, *domains)}
    for name, attribute in device.attributes.items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = _value(attribute)
    for name, amount in device.capacity.items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = milli(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version_value is not None:
        return _semver(attribute.version_value)
    for found in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if found is not None:
            return found
    return None


def _literals(expression: str) -> Iterator[str]:
    for match in _LITERAL.finditer(expression):
        yield match[1] if match[1] is not None else match[2]


# -- Kubernetes' CEL functions ----------------------------------------------------------------------------------------
# A quantity is a whole number of thousandths, a version the list of its three numbers and its pre-release.


def _is_quantity(text: str) -> bool:
    try:
        milli(text)
    except InvalidQuantity:
        return False
    return True


def _semver(text: str) -> list[Any]:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a semantic version")
    return [int(match[1]), int(match[2]), int(match[3]), match[4] or ""]


def _precedence(version: Sequence[Any]) -> tuple[Any, ...]:
    """Return what orders versions: a pre-release before its release, numbers in it before words."""
    numbers, pre = tuple(version[:3]), str(version[3])
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    return (*numbers, not pre, parts)


def _compare(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]  # noqa: PLC0415 - 50 MB, only where selectors are
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings  # type: ignore[import-untyped]  # noqa: PLC0415

    kinds = cel.Type

    def function(name: str, *overloads: tuple[Any, tuple[Any, ...], Callable[..., Any]], member: bool = True) -> Any:
        made = [
            cel.Overload(f"{name}_{number}", result, list(parameters), member, impl)
            for number, (result, parameters, impl) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, made)

    amounts, versions = (kinds.INT, kinds.INT), (kinds.LIST, kinds.LIST)

    def comparison(name: str, result: Any, by: Callable[[Any, Any], Any]) -> Any:
        of_versions = (result, versions, lambda one, other: by(_precedence(one), _precedence(other)))
        return function(name, (result, amounts, by), of_versions)

    functions = [
        function("quantity", (kinds.INT, (kinds.STRING,), milli), member=False),
        function("isQuantity", (kinds.BOOL, (kinds.STRING,), _is_quantity), member=False),
        function("semver", (kinds.LIST, (kinds.STRING,), _semver), member=False),
        function(
            "isSemver", (kinds.BOOL, (kinds.STRING,), lambda text: _VERSION.fullmatch(text) is not None), member=False
        ),
        comparison("compareTo", kinds.INT, _compare),
        comparison("isGreaterThan", kinds.BOOL, operator.gt),
        comparison("isLessThan", kinds.BOOL, operator.lt),
        function("add", (kinds.INT, amounts, operator.add)),
        function("sub", (kinds.INT, amounts, operator.sub)),
        function("sign", (kinds.INT, (kinds.INT,), lambda one: _compare(one, 0))),
        function("isInteger", (kinds.BOOL, (kinds.INT,), lambda one: one % 1000 == 0)),
        function("asInteger", (kinds.INT, (kinds.INT,), lambda one: one // 1000)),
        function("asApproximateFloat", (kinds.DOUBLE, (kinds.INT,), lambda one: one / 1000)),
        function("major", (kinds.INT, (kinds.LIST,), lambda one: one[0])),
        function("minor", (kinds.INT, (kinds.LIST,), lambda one: one[1])),
        function("patch", (kinds.INT, (kinds.LIST,), lambda one: one[2])),
    ]
    extensions = [
        cel.CelExtension("kubernetes", functions),
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_bindings.ExtBindings(),
    ]
    return cel.NewEnv(variables={"device": kinds.DYN}, extensions=extensions)
