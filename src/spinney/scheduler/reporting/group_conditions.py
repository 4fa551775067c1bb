"""The scheduled condition of Kubernetes' own PodGroups and of scheduler-plugins', for the groups placed here.

Written when a cycle refused a group and when its pods were bound; groups whose pods ask for another scheduler are left
to that one. KAI's PodGroups have conditions of another kind (:mod:`.pod_group_conditions`), Volcano's
(:mod:`.volcano_groups`) and PodGangs (:mod:`.gang_conditions`) too.
"""

from collections.abc import Iterable
from typing import Any, Final

from spinney.api import workload_v1beta1
from spinney.api.resource import Resource
from spinney.cluster.statuses import PodStatus
from spinney.gangs import composites
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.pod_gangs import GangVerdict
from spinney.reporting.pod_groups import GROUP_KINDS, scheduled_patch
from spinney.scheduler.framework.results import Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.reporting.gang_conditions import WAITING, verdict

_HAVE_NODES: Final = frozenset({PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})


class GroupConditions:
    """Keeps the scheduled condition of one kind of group. Mutable: it knows why groups were refused last."""

    def __init__(self, client: Client, inventory: Inventory, resource: Resource) -> None:
        self._client = client
        self._inventory = inventory
        self._resource = resource
        self._kind = GROUP_KINDS[resource]
        self._sources = {self._kind.source} | ({composites.SOURCE} if resource == workload_v1beta1.POD_GROUP else set())
        self._refusals: dict[GangKey, GangVerdict] = {}
        self._groups: WatchCache[Any] | None = None
        self._controller: Controller | None = None

    def controller(self, manager: Manager) -> Controller:
        """Return the controller that writes; it has nothing to do until groups are followed."""
        name = f"scheduled condition of {self._resource.plural}.{self._resource.group}"
        self._controller = Controller(name, self._reconcile, runtime=manager.runtime, metrics=manager.metrics)
        return self._controller

    def follow(self, groups: WatchCache[Any]) -> None:
        """Begin to write, now or when the kind is installed later."""
        self._groups = groups

    def bound(self, gang: GangKey) -> None:
        """Look at a gang whose pods were bound."""
        self._look_at([gang])

    def refused(self, unschedulable: Iterable[Unschedulable]) -> None:
        """Note what the last cycle could not place, and why; only what is new is looked at."""
        before = self._refusals
        self._refusals = {each.gang: each.verdict for each in unschedulable if each.gang.source in self._sources}
        self._look_at(gang for gang, said in self._refusals.items() if before.get(gang) != said)

    def _look_at(self, gangs: Iterable[GangKey]) -> None:
        if self._controller is not None and self._groups is not None:
            for key in [key for gang in gangs if gang.source in self._sources for key in self._objects(gang)]:
                self._controller.enqueue(key)

    def _objects(self, gang: GangKey) -> list[Key]:
        """Return the PodGroups of a gang: its own, or those of the parts of a composite."""
        if gang.source == self._kind.source:
            return [Key(gang.namespace, gang.name)]
        members = self._inventory.gangs.members(gang)
        return [Key(gang.namespace, name) for name in members.gang.pod_sets] if members is not None else []

    async def _reconcile(self, key: Key) -> Requeue | None:
        gang = self._inventory.gangs.home(GangKey(self._kind.source, *key))
        group = self._groups.get(key) if self._groups is not None else None
        members = self._inventory.gangs.members(gang)
        if group is None or members is None or not self._is_ours(members):
            return None
        said = verdict(members, self._refusals.get(gang), having_nodes=_HAVE_NODES)
        if said.reason == WAITING:
            return None
        patch = scheduled_patch(
            self._kind,
            group,
            scheduled=said.scheduled,
            reason=said.reason,
            message=said.message,
            now=self._client.runtime.clock.now(),
        )
        try:
            if patch:
                await self._client.patch(self._resource, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        except Conflict:
            return Requeue()
        return None

    def _is_ours(self, members: GangMembers) -> bool:
        names = self._inventory.scheduler_names
        return all(record.pod.spec.scheduler_name in names for _, record in members.pods.values())
