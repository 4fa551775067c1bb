"""Which kinds the coscheduler reads, and reading them before it is loaded: lists take as long to come as loading."""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.resource import Resource
from spinney.api.scheduling_kinds import ABOUT_GROUPS, CONSTRAINTS
from spinney.kube.manager import Manager

COMPONENT: Final = "spinney-coscheduler"
"""As whom the coscheduler writes, and the name of its lease."""

OPTIONAL_KINDS: Final[Mapping[Resource, type[Any]]] = {**ABOUT_GROUPS, **CONSTRAINTS}
"""What it reads where the API server serves it."""


async def begin_reading(manager: Manager) -> frozenset[Resource]:
    """Begin to read what a coscheduler of this manager will follow; return which optional kinds are served."""
    manager.begin(NODE, Node)
    manager.begin(POD, Pod)
    return await manager.begin_served(OPTIONAL_KINDS)
