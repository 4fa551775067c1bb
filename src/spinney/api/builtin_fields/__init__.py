"""The fields of the built-in kinds: their names, types and protobuf numbers, and holding objects to them."""

from spinney.api.builtin_fields.table import FieldTable, field_table

__all__ = ["FieldTable", "field_table"]
