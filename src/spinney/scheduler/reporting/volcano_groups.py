"""The status of Volcano's PodGroups whose pods are placed here: phase, conditions and counts.

Written when a cycle refused a group, when its pods were bound, and as they run and end. Groups whose pods ask for
another scheduler, Volcano's above all, are left to that one. A group that an operator made for a PodGang has that
gang's pods.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from spinney.api import volcano
from spinney.api.podgang import POD_GANG
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.membership import membership
from spinney.gangs.sources import podgang
from spinney.gangs.sources import volcano as source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.pod_gangs import UNSCHEDULABLE, GangVerdict
from spinney.reporting.volcano_groups import GroupStanding, status_patch
from spinney.scheduler.framework.results import Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.reporting.gang_conditions import verdict

_SOURCES: Final = (source.SOURCE, podgang.SOURCE)
_HAVE_NODES: Final = frozenset({PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED})


class VolcanoGroups:
    """Keeps the status of Volcano's groups. Mutable: it knows why groups were refused last."""

    def __init__(self, client: Client, inventory: Inventory) -> None:
        self._client = client
        self._inventory = inventory
        self._refusals: dict[GangKey, GangVerdict] = {}
        self._groups: WatchCache[volcano.PodGroup] | None = None
        self._controller: Controller | None = None

    def controller(self, manager: Manager) -> Controller:
        """Return the controller that writes; it has nothing to do until groups are followed."""
        self._controller = Controller(
            "volcano-groups", self._reconcile, runtime=manager.runtime, metrics=manager.metrics
        )
        self._inventory.cluster.subscribe(self._pod_changed)
        return self._controller

    def follow(self, groups: WatchCache[volcano.PodGroup]) -> None:
        """Begin to write, now or when the kind is installed later."""
        self._groups = groups

    def bound(self, gang: GangKey) -> None:
        """Look at a gang whose pods were bound."""
        self._look_at([gang])

    def refused(self, unschedulable: Iterable[Unschedulable]) -> None:
        """Note what the last cycle could not place, and why; only what is new is looked at."""
        before = self._refusals
        self._refusals = {each.gang: each.verdict for each in unschedulable if each.gang.source in _SOURCES}
        self._look_at(gang for gang, said in self._refusals.items() if before.get(gang) != said)

    def _pod_changed(self, change: PodChange) -> None:
        old, new = change
        record = new if new is not None else old
        if self._groups is None or record is None or (old is not None and new is not None and old.status is new.status):
            return
        if record.pod.spec.scheduler_name in self._inventory.scheduler_names:
            self._look_at([membership(record)[0]])

    def _look_at(self, gangs: Iterable[GangKey]) -> None:
        if self._controller is None or self._groups is None:
            return
        for gang in gangs:
            key = Key(gang.namespace, gang.name)
            if gang.source in _SOURCES and self._groups.get(key) is not None:
                self._controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Requeue | None:
        group = self._groups.get(key) if self._groups is not None else None
        members = self._members(group) if group is not None else None
        if group is None or members is None or not self._is_ours(members):
            return None
        runtime = self._client.runtime
        standing = _standing(members, self._refusals.get(members.gang.key))
        patch = status_patch(group, standing, transition=runtime.uid(), now=runtime.clock.now())
        try:
            if patch:
                await self._client.patch(volcano.POD_GROUP, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        except Conflict:
            return Requeue()
        return None

    def _members(self, group: volcano.PodGroup) -> GangMembers | None:
        """Return the pods of a group, if it has any; those of one made for a PodGang are known as the PodGang's."""
        key = source.key_of(group)
        maker = group.metadata.controller
        if maker is not None and maker.kind == POD_GANG.kind:
            key = GangKey(podgang.SOURCE, key.namespace, maker.name)
        members = self._inventory.gangs.members(key)
        return members if members is not None and members.pods else None

    def _is_ours(self, members: GangMembers) -> bool:
        names = self._inventory.scheduler_names
        return all(record.pod.spec.scheduler_name in names for _, record in members.pods.values())


def _standing(members: GangMembers, refused: GangVerdict | None) -> GroupStanding:
    said = verdict(members, refused, having_nodes=_HAVE_NODES)
    phases = Counter(record.status for _, record in members.pods.values())
    return GroupStanding(
        scheduled=said.scheduled,
        refusal=refused.message if refused is not None else "",
        reason=refused.reason if refused is not None else UNSCHEDULABLE,
        message=said.message,
        pods=len(members.pods),
        running=phases[PodStatus.RUNNING],
        succeeded=phases[PodStatus.SUCCEEDED],
        failed=phases[PodStatus.FAILED],
    )
