"""The scheduler's part of the status of PodGangs that it places: Scheduled, DisruptionTarget, the placement score.

A small controller: when a gang, its pods or what the last cycle said about it change, the status is worked out again
and written if it differs. Gangs of other schedulers are left to the operator, which derives the condition from pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spinney.api.conditions import find_condition
from spinney.api.labels import POD_GANG as POD_GANG_LABEL
from spinney.api.labels import SCHEDULER_NAME
from spinney.api.podgang import SCHEDULED, PodGang
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.membership import membership
from spinney.gangs.sources import podgang
from spinney.gangs.tree import GangKey, PodSet, satisfied
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Controller, Requeue
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.pod_gangs import GangVerdict, Reporter
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.scoring import is_constrained, placement_score

BACKEND = "spinney-scheduler"
WAITING = "Waiting"
_PLACED = frozenset({PodStatus.BOUND, PodStatus.RUNNING})


class GangConditions:
    """Keeps the Scheduled condition of gangs true. Mutable: it remembers why gangs were refused."""

    def __init__(self, inventory: Inventory, reporter: Reporter) -> None:
        self._inventory = inventory
        self._reporter = reporter
        self._refusals: dict[GangKey, GangVerdict] = {}
        self._disruptions: dict[GangKey, str] = {}
        self._gangs: WatchCache[PodGang] | None = None
        self._controller: Controller | None = None

    def controller(self, manager: Manager) -> Controller:
        """Return the controller that writes; it has nothing to do until gangs are followed."""
        self._controller = Controller(
            "gang-conditions", self._reconcile, runtime=manager.runtime, metrics=manager.metrics
        )
        self._inventory.cluster.subscribe(self._pod_changed)
        if self._gangs is not None:
            self._controller.watch(self._gangs)
        return self._controller

    def follow(self, gangs: WatchCache[PodGang]) -> None:
        """Begin to follow gangs, now or when the kind is installed later."""
        self._gangs = gangs
        if self._controller is not None:
            self._controller.watch(gangs)

    def refused(self, refusals: Mapping[GangKey, GangVerdict]) -> None:
        """Note what the last cycle said about gangs it could not place; gangs it no longer refuses are forgotten."""
        before, self._refusals = self._refusals, dict(refusals)
        self._look_at(key for key in {**before, **refusals} if before.get(key) != refusals.get(key))

    def disrupted(self, gang: GangKey, message: str) -> None:
        """Note that pods of a gang were evicted, and why; forgotten when the gang has all it needs again."""
        if gang.source == podgang.SOURCE:
            self._disruptions[gang] = message
            self._look_at([gang])

    def _pod_changed(self, change: PodChange) -> None:
        self._look_at(
            membership(record)[0]
            for record in (change.old, change.new)
            if record is not None
            and POD_GANG_LABEL in record.labels
            and record.pod.spec.scheduler_name in self._inventory.scheduler_names
        )

    def _look_at(self, keys: Iterable[GangKey]) -> None:
        if self._controller is not None and self._gangs is not None:
            for key in keys:
                if key.source == podgang.SOURCE:
                    self._controller.enqueue(Key(key.namespace, key.name))

    async def _reconcile(self, key: Key) -> Requeue | None:
        assert self._gangs is not None, "nothing is enqueued before gangs are followed"
        gang = self._gangs.get(key)
        if gang is None:
            self._disruptions.pop(GangKey(podgang.SOURCE, *key), None)
        if gang is None or gang.metadata.labels.get(SCHEDULER_NAME, BACKEND) != BACKEND:
            return None
        found = self._inventory.gangs.members(podgang.key_of(gang))
        if found is not None:
            said = verdict(found, self._refusals.get(found.gang.key))
            if said.scheduled:
                self._disruptions.pop(found.gang.key, None)
                said = replace(said, placement_score=self._score(found))
            elif found.gang.key in self._disruptions:
                said = replace(said, disruption=self._disruptions[found.gang.key])
            # An absent condition means False: a gang that has only just come needs no word.
            if said.reason != WAITING or find_condition(gang.status.conditions, SCHEDULED) is not None:
                await self._reporter.gang(gang, said)
        return None

    def _score(self, members: GangMembers) -> float:
        if not is_constrained(members.gang.root):
            return 1.0  # most gangs are not, and their nodes need not be looked up
        table = self._inventory.cluster.table
        nodes: dict[str, list[Mapping[str, str]]] = {}
        for pod_set, record in members.pods.values():
            row = table.find(record.node) if record.status in _PLACED else None
            if row is not None:
                nodes.setdefault(pod_set, []).append(table.labels.of_row(row))
        return placement_score(members.gang.root, lambda pod_set: nodes.get(pod_set, ()), self._inventory.topologies)


def verdict(
    members: GangMembers, refused: GangVerdict | None, *, having_nodes: frozenset[PodStatus] = _PLACED
) -> GangVerdict:
    """Return whether a gang has what it needs on nodes, and what it waits for if not."""
    placed: dict[str, int] = {}
    for pod_set, record in members.pods.values():
        placed[pod_set] = placed.get(pod_set, 0) + (record.status in having_nodes)

    def count(pod_set: PodSet) -> int:
        return placed.get(pod_set.name, 0)

    placed_of_all = f"{sum(placed.values())} of {len(members.pods)} pods are placed"
    if satisfied(members.gang.root, count):
        return GangVerdict(scheduled=True, reason=SCHEDULED, message=placed_of_all)
    if refused is not None:
        return refused
    return GangVerdict(scheduled=False, reason=WAITING, message=placed_of_all)
