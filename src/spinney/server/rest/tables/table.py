"""Objects as rows of a table (``meta.k8s.io/v1`` Table)."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from spinney.api.apiextensions import PrinterColumn
from spinney.api.struct import JSON
from spinney.api.time import parse_timestamp
from spinney.server.kinds import Kind
from spinney.server.operations.representation import Representation
from spinney.server.rest.tables.builtin import COLUMNS, DEFAULT
from spinney.server.rest.tables.columns import AGE, NAME, Column
from spinney.server.rest.tables.durations import age
from spinney.server.rest.tables.jsonpath import InvalidPath, find
from spinney.server.store import Record

IncludeObject = Literal["None", "Metadata", "Object"]


class Table(Representation):
    """Objects as rows. In a watch, only the first event carries the column definitions."""

    def __init__(self, kind: Kind, include: IncludeObject, now: Callable[[], datetime], version: str = "v1") -> None:
        super().__init__(kind)
        self._columns = columns_of(kind)
        self._include = include
        self._now = now
        self._api_version = f"meta.k8s.io/{version}"
        self._defined = False

    def single(self, record: Record) -> bytes:
        return msgspec.json.encode(self._table([record], {"resourceVersion": str(record.revision)}))

    def many(self, records: Sequence[Record], metadata: JSON) -> bytes:
        return msgspec.json.encode(self._table(records, metadata))

    def event(self, event: str, record: Record) -> bytes:
        table = self._table([record], {"resourceVersion": str(record.revision)})
        if self._defined:
            table["columnDefinitions"] = None
        self._defined = True
        return msgspec.json.encode({"type": event, "object": table}) + b"\n"

    def bookmark(self, metadata: JSON) -> bytes:
        table = self._table([], metadata)
        table["columnDefinitions"] = None
        resource = self._kind.resource
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        table["rows"] = [{"cells": [None for _ in self._columns], "object": obj}]
        return msgspec.json.encode({"type": "BOOKMARK", "object": table}) + b"\n"

    def _table(self, records: Sequence[Record], metadata: JSON) -> JSON:
        now = self._now()
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": [column.to_json() for column in self._columns],
            "rows": [self._row(record, now) for record in records],
        }

    def _row(self, record: Record, now: datetime) -> JSON:
        obj = record.decode()
        row: JSON = {"cells": [column.cell(obj, now) for column in self._columns]}
        match self._include:
            case "Object":
                row["object"] = self._kind.served(obj)
            case "Metadata":
                row["object"] = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": self._api_version,
                    "metadata": obj["metadata"],
                }
            case "None":
                row["object"] = None
        return row


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind."""
    if not kind.custom:
        return COLUMNS.get(kind.storage, DEFAULT)
    if not kind.columns:
        return DEFAULT
    return (NAME, *(AGE if _is_age(column) else _custom(column) for column in kind.columns))


def _is_age(column: PrinterColumn) -> bool:
    return column.type == "date" and column.json_path == ".metadata.creationTimestamp" and column.name == "Age"


def _custom(column: PrinterColumn) -> Column:
    def cell(obj: JSON, now: datetime) -> Any:
        try:
            found = find(column.json_path, obj)
        except InvalidPath:
            return "<invalid path>"
        return _shown(found, column.type, now)

    return Column(column.name, cell, column.type, column.format, column.priority, column.description)


def _shown(found: list[Any], kind: str, now: datetime) -> Any:
    if not found or found[0] is None:
        return None
    value = found[0]
    if kind == "date" and isinstance(value, str):
        try:
            parse_timestamp(value)
        except ValueError:
            return "<invalid>"
        return age(value, now)
    if kind in {"integer", "number", "boolean"} and not isinstance(value, str):
        return value
    if len(found) > 1:
        return ",".join(_text(each) for each in found)
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
