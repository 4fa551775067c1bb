"""Faults of an object, each with the path of the field it is in.

Validation collects every fault it finds. A path reads as in Kubernetes (``spec.template.cliques[0].name``), and so does
a fault as text, so that what an admission webhook answers looks like the API server's own answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from spinney.api.struct import JSON


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The path of a field, built from the root downwards."""

    text: str = ""

    def child(self, *names: str) -> "FieldPath":
        """Return the path of a field inside this one."""
        return FieldPath(".".join((self.text, *names) if self.text else names))

    def index(self, position: int) -> "FieldPath":
        """Return the path of an item of this list."""
        return FieldPath(f"{self.text}[{position}]")

    def key(self, key: str) -> "FieldPath":
        """Return the path of an entry of this mapping."""
        return FieldPath(f"{self.text}[{key}]")

    def __str__(self) -> str:
        return self.text


CauseReason = Literal[
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
    "FieldValueTypeInvalid",
    "FieldValueTooLong",
    "FieldValueNotFound",
    "FieldValueTooMany",
    "FieldManagerConflict",
    "DisruptionBudget",
    "NamespaceTerminating",
    "ResourceVersionTooLarge",
]

_SHOWN: Final = 256  # characters of a value that a message shows


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of an object or a request; the path is empty where it is not about a field."""

    reason: CauseReason
    path: str
    text: str

    def cause(self) -> JSON:
        """Return this fault as a cause in the details of a ``Status``."""
        return {"reason": self.reason, "message": self.text} | ({"field": self.path} if self.path else {})

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def shown(value: object) -> str:
    """Render a value inside a message: strings quoted, structures as JSON, large ones by their shape only."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _SHOWN else f'"{value[:_SHOWN]}..."'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
        return text if len(text) <= _SHOWN else "object" if isinstance(value, dict) else "array"
    return str(value)


def _fault(reason: CauseReason, path: FieldPath | str, *said: str) -> FieldError:
    return FieldError(reason, str(path), ": ".join(filter(None, said)))


def required(path: FieldPath | str, message: str = "") -> FieldError:
    """Return the fault of a field that is missing."""
    return _fault("FieldValueRequired", path, "Required value", message)


def invalid(path: FieldPath | str, value: Any, message: str) -> FieldError:
    """Return the fault of a value that breaks a rule."""
    return _fault("FieldValueInvalid", path, "Invalid value", shown(value), message)


def duplicate(path: FieldPath | str, value: Any, message: str = "") -> FieldError:
    """Return the fault of a value that must be unique and is not."""
    return _fault("FieldValueDuplicate", path, "Duplicate value", shown(value), message)


def not_supported(path: FieldPath | str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the fault of a value outside a closed set."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return _fault("FieldValueNotSupported", path, "Unsupported value", shown(value), f"supported values: {listed}")


def forbidden(path: FieldPath | str, message: str) -> FieldError:
    """Return the fault of a field that may not be set, or not be changed, here."""
    return _fault("FieldValueForbidden", path, "Forbidden", message)


def not_found(path: FieldPath | str, value: Any, message: str = "") -> FieldError:
    """Return the fault of a name that names nothing."""
    return _fault("FieldValueNotFound", path, "Not found", shown(value), message)


def too_long(path: FieldPath | str, message: str) -> FieldError:
    """Return the fault of a text that is too long."""
    return _fault("FieldValueTooLong", path, "Too long", message)


def too_many(path: FieldPath | str, count: int, most: int) -> FieldError:
    """Return the fault of a list that is too long."""
    return _fault("FieldValueTooMany", path, "Too many", str(count), f"must have at most {most} items")


def immutable(path: FieldPath | str, new: Any, old: Any) -> list[FieldError]:
    """Return the fault of a field that changed and must not."""
    return [] if new == old else [invalid(path, new, "field is immutable")]
