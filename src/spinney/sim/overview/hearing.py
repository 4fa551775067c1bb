"""What a running cluster tells besides its objects: events of evictions, and what its scheduler refused last."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from spinney.api.core import EVENT
from spinney.api.events import Event
from spinney.explain import Explanation
from spinney.gangs.tree import GangKey
from spinney.kube.client import Client
from spinney.runtime.tasks import together
from spinney.scheduler.process.endpoint import RefusedGang
from spinney.sim.overview.history import EVICTIONS

_OTHERWISE: Final = (
    "the cluster has changed since that cycle, or the scheduler's configuration is another; --config names its file"
)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """Events, and what a scheduler's endpoint lists; ``None`` where no endpoint was read."""

    events: tuple[Event, ...] = ()
    refused: Mapping[GangKey, RefusedGang] | None = None

    def differences(
        self, gangs: Collection[GangKey], found: Mapping[GangKey, tuple[str, Explanation | None]]
    ) -> Iterator[str]:
        """Yield where the scheduler's last cycle and the simulated one differ about gangs that wait.

        ``found`` has the message and the explanation of each gang that the simulation leaves waiting.
        """
        for gang in sorted(gangs) if self.refused is not None else ():
            said, simulated = (self.refused or {}).get(gang), found.get(gang)
            if said is not None and simulated is None:
                yield f"the running scheduler's last cycle refused {gang}, and this simulation places it: {_OTHERWISE}"
            elif said is None and simulated is not None:
                yield f"the running scheduler's last cycle did not refuse {gang}, this simulation does: {_OTHERWISE}"
            elif said is not None and simulated is not None and not _is_same(said, *simulated):
                yield f"the running scheduler gives another reason: {said.message}; {_OTHERWISE}"


NOTHING_HEARD: Final = Heard()


def refused_by(body: bytes) -> dict[GangKey, RefusedGang]:
    """Return what ``/explanations`` of a scheduler lists, by gang; raises :class:`msgspec.DecodeError`."""
    found = msgspec.json.decode(body, type=tuple[RefusedGang, ...])
    return {GangKey(each.source, each.namespace, each.name): each for each in found}


async def evictions(client: Client, namespace: str) -> tuple[Event, ...]:
    """Return the events of one namespace that tell of evictions."""
    answers = await together(
        *(client.list(EVENT, namespace, type=Event, field_selector=f"reason={reason}") for reason in EVICTIONS)
    )
    return tuple(event for listed in answers for event in listed.items)


def _is_same(said: RefusedGang, message: str, explanation: Explanation | None) -> bool:
    """Tell whether both give the same reason; figures of a cluster that moves on differ without meaning anything."""
    if said.explanation is None or explanation is None:
        return said.message == message
    return _kinds(said.explanation) == _kinds(explanation)


def _kinds(explanation: Explanation) -> tuple[object, ...]:
    """Return what kinds of reasons an explanation has, without amounts and counts."""
    queue = explanation.queue
    return (
        queue and (queue.queue, queue.rule, queue.resource),
        explanation.others,
        explanation.required_level,
        frozenset(
            (each.filter, reason.reason) for pod in explanation.pods for each in pod.filters for reason in each.reasons
        ),
        bool(explanation.plugin_errors),
    )
