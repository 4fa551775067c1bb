"""Emptying nodes, one gang at a time.

The nodes are closed first. Then the gangs that have pods on them leave one after another, see :mod:`.moving`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from spinney.api.core import NODE
from spinney.binding.moving import GangMover, Leaving, MoveStopped
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import ACTIVE_USED

_MIRROR: Final = "kubernetes.io/config.mirror"


class DrainStopped(Exception):
    """A drain that did not come to its end; the text says at which gang, and what to do."""


class Drain:
    """One drain, of the nodes that the mover avoids."""

    def __init__(self, mover: GangMover) -> None:
        self.mover = mover

    def leaving(self) -> list[Leaving]:
        """Return the gangs that have pods on the nodes, in order of their names."""
        return self.mover.leaving(self._on_nodes())

    async def run(self) -> None:
        """Close the nodes and empty them; raises :class:`DrainStopped` where a gang does not come back in time."""
        for name in sorted(self.mover.nodes):
            await self.mover.client.patch(NODE, name, {"spec": {"unschedulable": True}})
            self.mover.tell(f"node {name} cordoned")
        while leaving := self.leaving():
            try:
                await self.mover.move(leaving[0], partial(self._remaining, leaving[0]))
            except MoveStopped as error:
                raise DrainStopped(
                    f"{error}; the nodes stay cordoned and other gangs were not touched. See `spinney why`, then run "
                    "the drain again"
                ) from error

    def _remaining(self, leaving: Leaving) -> list[PodKey]:
        there = {record.uid for record in self._on_nodes()}
        return [record.key for record in leaving.pods if record.uid in there]

    def _on_nodes(self) -> Iterator[PodRecord]:
        """Return the pods that have to leave: not those that belong to their node, nor those that have ended."""
        for record in self.mover.cluster.pods():
            owner = record.pod.metadata.controller
            daemon = owner is not None and owner.kind == "DaemonSet"
            stays = daemon or _MIRROR in record.annotations or record.status not in ACTIVE_USED
            if record.node in self.mover.nodes and not stays and not self._is_lost(record):
                yield record

    def _is_lost(self, record: PodRecord) -> bool:
        """Tell whether a pod is terminating on a node that is silent: nobody can say when it is gone."""
        table = self.mover.cluster.table
        row = table.find(record.node)
        silent = row is not None and not table.ready[row]
        return silent and record.pod.metadata.deleting
