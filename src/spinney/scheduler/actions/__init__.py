"""Actions: what a cycle does with its session, one after the other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spinney.scheduler.actions.action import Action
from spinney.scheduler.actions.allocate import Allocate

BUILT_IN_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType({"allocate": Allocate()})
"""Actions by the name the configuration uses."""

__all__ = ["BUILT_IN_ACTIONS", "Action", "Allocate"]
