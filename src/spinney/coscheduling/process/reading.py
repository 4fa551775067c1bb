"""The kinds the coscheduler reads beside pods and nodes, each only where the API server serves it.

The start of the process waits for this module, and loads the rest while it reads them.
"""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api.resource import Resource
from spinney.api.scheduling_kinds import ABOUT_GROUPS, CONSTRAINTS

COMPONENT: Final = "spinney-coscheduler"
"""As whom the coscheduler writes, and the name of its lease."""

OPTIONAL_KINDS: Final[Mapping[Resource, type[Any]]] = {**ABOUT_GROUPS, **CONSTRAINTS}
