"""Holding objects of built-in kinds to their fields, as :mod:`spinney.api.builtin_fields.checking` does."""

from spinney.api.builtin_fields.checking import WrongType, conform, conform_metadata

__all__ = ["WrongType", "conform", "conform_metadata"]
