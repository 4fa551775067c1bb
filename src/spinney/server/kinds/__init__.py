"""Which kinds the server knows: what each is called, how it merges, and the rules of its objects."""

from spinney.server.kinds.kind import Behaviour, FieldLabel, Kind, ScalePaths
from spinney.server.kinds.registry import Registry
from spinney.server.kinds.shape import ATOMIC, GRANULAR, Shape

__all__ = ["ATOMIC", "GRANULAR", "Behaviour", "FieldLabel", "Kind", "Registry", "ScalePaths", "Shape"]
