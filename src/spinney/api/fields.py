"""Annotations of struct fields that reach the CRD schema.

They describe, they do not enforce: an object that breaks a rule still decodes, so that validation can name every fault
with its path instead of stopping at the first. Schema keywords are those of structural OpenAPI v3 schemas.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from spinney.api.struct import JSON

LABEL_KEY_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)


def schema(keywords: JSON, description: str | None = None) -> msgspec.Meta:
    """Add schema ``keywords`` to a field."""
    return msgspec.Meta(extra_json_schema=keywords, description=description)


def described(description: str) -> msgspec.Meta:
    """Say what a field means; shown by ``kubectl explain``."""
    return msgspec.Meta(description=description)


def rule(expression: str, message: str, *, reason: str | None = None, optional_old_self: bool = False) -> JSON:
    """Return one CEL rule of ``x-kubernetes-validations``."""
    found: JSON = {"rule": expression, "message": message}
    if reason is not None:
        found["reason"] = reason
    if optional_old_self:
        found["optionalOldSelf"] = True
    return found


def rules(*each: JSON) -> msgspec.Meta:
    """Add CEL rules to a field."""
    return schema({"x-kubernetes-validations": list(each)})


def enum(*values: str, default: str | None = None) -> msgspec.Meta:
    """Restrict a text to ``values``."""
    keywords: JSON = {"enum": list(values)}
    if default is not None:
        keywords["default"] = default
    return schema(keywords)


def list_map(*keys: str) -> msgspec.Meta:
    """Declare a list whose items are told apart by ``keys``, so that several writers can each own some."""
    return schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


Int32 = Annotated[int, schema({"format": "int32"})]
Int64 = Annotated[int, schema({"format": "int64"})]
Count = Annotated[int, schema({"format": "int32", "default": 0})]
"""A counter in a status: absent is zero, and the API server fills that in."""

OpenObject: TypeAlias = JSON
"""An object of another API inside ours, carried verbatim."""

Duration = Annotated[str, described("A duration such as 4h30m.")]
"""Text that :func:`spinney.api.durations.parse_duration` reads."""
