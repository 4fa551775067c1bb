"""Faults of an object, each with the path of the field it is in.

Validation collects every fault it finds. A path reads as in Kubernetes (``spec.template.cliques[0].name``), and so does
a fault as text, so that what an admission webhook answers looks like the API server's own answer.
"""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

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


class FaultKind(Enum):
    """What is wrong with a field; the value is how messages begin."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "Not found"
    TOO_LONG = "Too long"

    @property
    def cause(self) -> str:
        """Return the reason a ``Status`` gives for a fault of this kind."""
        return f"FieldValue{self.name.title().replace('_', '')}"


_SHOWN: Final = 256  # characters of a value that a message shows
# Kinds whose value says nothing a reader needs: it is absent, or the field must not be there at all.
_WITHOUT_VALUE = frozenset({FaultKind.REQUIRED, FaultKind.FORBIDDEN, FaultKind.TOO_LONG})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of an object."""

    path: str
    kind: FaultKind
    value: Any
    message: str

    def cause(self) -> JSON:
        """Return this fault as a cause in the details of a ``Status``."""
        return {"reason": self.kind.cause, "message": self.text, "field": self.path}

    @property
    def text(self) -> str:
        """What is wrong, without the path."""
        value = "" if self.kind in _WITHOUT_VALUE else f": {shown(self.value)}"
        return f"{self.kind.value}{value}{f': {self.message}' if self.message else ''}"

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


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


def required(path: FieldPath | str, message: str = "") -> FieldError:
    """Return the fault of a field that is missing."""
    return FieldError(str(path), FaultKind.REQUIRED, None, message)


def invalid(path: FieldPath | str, value: Any, message: str) -> FieldError:
    """Return the fault of a value that breaks a rule."""
    return FieldError(str(path), FaultKind.INVALID, value, message)


def duplicate(path: FieldPath | str, value: Any, message: str = "") -> FieldError:
    """Return the fault of a value that must be unique and is not."""
    return FieldError(str(path), FaultKind.DUPLICATE, value, message)


def not_supported(path: FieldPath | str, value: Any, supported: tuple[str, ...]) -> FieldError:
    """Return the fault of a value outside a closed set."""
    listed = ", ".join(json.dumps(each) for each in supported)
    return FieldError(str(path), FaultKind.NOT_SUPPORTED, value, f"supported values: {listed}")


def forbidden(path: FieldPath | str, message: str, value: Any = None) -> FieldError:
    """Return the fault of a field that may not be set, or not be changed, here."""
    return FieldError(str(path), FaultKind.FORBIDDEN, value, message)


def not_found(path: FieldPath | str, value: Any, message: str = "") -> FieldError:
    """Return the fault of a name that names nothing."""
    return FieldError(str(path), FaultKind.NOT_FOUND, value, message)


def too_long(path: FieldPath | str, value: Any, message: str) -> FieldError:
    """Return the fault of a text that is too long."""
    return FieldError(str(path), FaultKind.TOO_LONG, value, message)


def immutable(path: FieldPath, new: Any, old: Any) -> list[FieldError]:
    """Return the fault of a field that changed and must not."""
    return [] if new == old else [invalid(path, new, "field is immutable")]
