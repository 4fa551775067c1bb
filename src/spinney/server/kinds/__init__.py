"""Which kinds the server knows: what each is called, how it merges, and the rules of its objects."""

from spinney.server.kinds.kind import Behaviour, FieldLabel, Kind, ScalePaths
from spinney.server.kinds.registry import KindRegistry
from spinney.server.kinds.shape import ATOMIC, GRANULAR, MergeShape

__all__ = ["ATOMIC", "GRANULAR", "Behaviour", "FieldLabel", "Kind", "KindRegistry", "MergeShape", "ScalePaths"]
