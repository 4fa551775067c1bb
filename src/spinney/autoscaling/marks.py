"""The marks by which pods name their ProvisioningRequest: Cluster Autoscaler adds no other nodes for such pods.

So no pod may go on to name a request that there is not.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import structlog

from spinney.api.core import POD
from spinney.api.names import valid_name
from spinney.api.provisioning import CONSUMES, PROVISIONING_CLASS
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.sources import podgang
from spinney.gangs.tree import GangKey
from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.keys import Key
from spinney.kube.reconciling import annotate_exactly
from spinney.runtime.tasks import BackgroundTasks
from spinney.scheduler.intake.inventory import Inventory

log = structlog.get_logger()

_LOOK_AGAIN_SECONDS: Final = 15.0
_NONE: Final = {CONSUMES: None, PROVISIONING_CLASS: None}


class RequestMarks:
    """Takes marks off pods, which then ask for nodes by their condition. Mutable: some may be under way."""

    def __init__(self, client: Client, inventory: Inventory) -> None:
        self._client = client
        self._inventory = inventory
        self._under_way = BackgroundTasks()

    async def run(self) -> None:
        """Take all marks off, for a scheduler that makes no requests any more, and wait until cancelled."""
        while [gang for gang in self._inventory.gangs if self.take_off(gang)]:
            await self._client.runtime.clock.sleep(_LOOK_AGAIN_SECONDS)
        await asyncio.Event().wait()

    def take_off(self, gang: GangKey) -> bool:
        """Begin to take the marks off those pods of a gang that wait and name a request of ours, if there are any."""
        members, request = self._inventory.gangs.members(gang), request_name(gang).name
        pods = waiting(members) if members is not None else []
        marked = [each for each in pods if each.annotations.get(CONSUMES) == request]
        if marked:
            self._under_way.begin(self._take_off_all(marked))
        return bool(marked)

    async def _take_off_all(self, records: Iterable[PodRecord]) -> None:
        for record in records:
            try:
                await annotate_exactly(self._client, POD, record.key, record.uid, _NONE)
            except KubeError as error:
                log.warning("pod still names its request", pod=str(record.key), error=str(error))


def request_name(gang: GangKey) -> Key:
    """Return what the request of a gang is called; groups of several kinds may have one name."""
    name = gang.name if gang.source == podgang.SOURCE else f"{gang.name}.{gang.source}"
    return Key(gang.namespace, valid_name(f"spinney-{name}"))


def waiting(members: GangMembers) -> list[PodRecord]:
    """Return the pods of a gang that wait for nodes."""
    return [record for _, record in members.pods.values() if record.status is PodStatus.PENDING]
