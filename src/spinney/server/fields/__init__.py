"""The fields of the built-in kinds: their names, types and protobuf numbers, and what follows from them."""

from spinney.server.fields.table import FieldTable, field_table

__all__ = ["FieldTable", "field_table"]
