"""What the controllers of one operator share."""

from dataclasses import dataclass

from spinney.backends.registry import Registry
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.operator.caches import Caches
from spinney.operator.controllers.growth import Growth
from spinney.operator.controllers.interlock import GangInterlock
from spinney.operator.owned.claims import ClaimKeeper


@dataclass(frozen=True)
class Shared:
    """The parts that every controller works with."""

    client: Client
    caches: Caches
    registry: Registry
    events: EventRecorder
    claims: ClaimKeeper
    growth: Growth
    interlock: GangInterlock
