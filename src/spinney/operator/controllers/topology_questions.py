"""What backends are asked about topologies, within a time; what is wrong is told with the method's name."""

import asyncio
from collections.abc import Callable
from types import NoneType
from typing import Any, Final

from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends.interface import TopologyAware, TopologyState
from spinney.backends.lending import lent
from spinney.extensions.answers import InvalidAnswer, fault_of, instance_of, shown
from spinney.operator.controllers.backend_calls import TIMEOUT_SECONDS
from spinney.runtime.faults import raised, raised_later

_a_text: Final[Callable[[Any], str]] = instance_of(str, "the name of a topology")
_a_state: Final[Callable[[Any], TopologyState]] = instance_of(TopologyState, "a TopologyState")
_FIELDS: Final = (
    ("in_sync", bool, "bool"),
    ("message", str, "str"),
    ("observed_generation", (int, NoneType), "int or None"),
)


class TopologyFault(RuntimeError):
    """A backend could not say how its topology stands; the message names the method."""


def topology_name(backend: TopologyAware, binding: ClusterTopologyBinding) -> str:
    """Return the topology a binding stands for; raises :class:`TopologyFault`."""
    try:
        return _a_text(backend.topology_name(lent(binding)))
    except raised() as error:
        raise TopologyFault(f"topology_name {fault_of(error)}") from error


async def topology_state(backend: TopologyAware, binding: ClusterTopologyBinding, named: str | None) -> TopologyState:
    """Return how the topology stands that a binding names, or that is kept for it; raises :class:`TopologyFault`."""
    method = "sync_topology" if named is None else "check_topology"
    limit = asyncio.timeout(TIMEOUT_SECONDS)
    try:
        async with limit:
            own = lent(binding)
            return _checked(await (backend.sync_topology(own) if named is None else backend.check_topology(own, named)))
    except raised_later() as error:
        if limit.expired():
            raise TopologyFault(f"{method} has not answered within {TIMEOUT_SECONDS:.0f} s") from error
        raise TopologyFault(f"{method} {fault_of(error)}") from error


def _checked(answer: object) -> TopologyState:
    state = _a_state(answer)
    for field, kind, expected in _FIELDS:
        found = getattr(state, field)
        if not isinstance(found, kind):
            raise InvalidAnswer(f"a TopologyState whose {field} is {shown(found)}", expected)
    return state
