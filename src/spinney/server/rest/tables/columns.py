"""Columns and rows: what a table shows about one object."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spinney.api.struct import JSON
from spinney.server.rest.tables.durations import age

Cell = Callable[[JSON, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and how a cell is read from an object. Priority 1 shows only in wide output."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def to_json(self) -> JSON:
        """Return the column's definition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or f"{self.name} of the object.",
            "priority": self.priority,
        }


def at(obj: JSON, path: str, default: Any = None) -> Any:
    """Return the value at a dotted path, or ``default``."""
    value: Any = obj
    for step in path.split("."):
        if not isinstance(value, dict):
            return default
        value = value.get(step)
    return default if value is None else value


def field(name: str, path: str, default: Any = "<none>", *, kind: str = "string", priority: int = 0) -> Column:
    """Return a column that shows one field."""
    return Column(name, lambda obj, _: at(obj, path, default), type=kind, priority=priority)


NAME = Column("Name", lambda obj, _: obj["metadata"]["name"], format="name", description="Name of the object.")
CREATED = Column("Created At", lambda obj, _: obj["metadata"].get("creationTimestamp"), type="date")
AGE = Column(
    "Age",
    lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now),
    description="Time since its creation.",
)


def named(*columns: Column) -> tuple[Column, ...]:
    """Return the columns of a kind: its name, what is special about it, and its age."""
    return (NAME, *columns, AGE)
