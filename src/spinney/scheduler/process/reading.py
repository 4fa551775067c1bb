"""Reading the cluster before there is a scheduler: most of a start is loading it, and lists take as long to come."""

from spinney.api.core import NODE, POD
from spinney.api.resource import Resource
from spinney.kube.manager import Manager
from spinney.scheduler.intake.sources import OPTIONAL_KINDS, type_of

COMPONENT = "spinney-scheduler"
"""As whom the scheduler writes, and the name of its lease."""


async def begin_reading(manager: Manager) -> frozenset[Resource]:
    """Begin to read what a scheduler of this manager will follow; return which optional kinds are served."""
    for resource in (POD, NODE):
        manager.begin(resource, type_of(resource))
    return await manager.begin_served(OPTIONAL_KINDS)
