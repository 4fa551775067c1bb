"""How the gangs of the session scheduler stand: what its last cycle said of them, and what their pods have."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spinney.api.labels import EVICTION_REQUEST
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PLACED, PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.membership import membership
from spinney.gangs.tree import GangKey
from spinney.reporting.controller import AnyStatusController
from spinney.reporting.verdicts import GangStanding, GangVerdict, verdict
from spinney.scheduler.framework.results import Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.scoring import placement_score


class Verdicts:
    """What is to be said of gangs; has those look who write it. Mutable: it remembers why gangs were refused."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._refusals: dict[GangKey, GangVerdict] = {}
        self._writers: list[AnyStatusController] = []

    def tell(self, writers: Iterable[AnyStatusController]) -> None:
        """Have writers follow what changes."""
        self._writers += writers
        self._inventory.cluster.subscribe(self._pod_changed)

    def refused(self, unschedulable: Iterable[Unschedulable], said: Mapping[GangKey, str]) -> None:
        """Note what the last cycle could not place, and why; gangs it no longer refuses are forgotten.

        ``said`` is what is to be said of those gangs of which there is more to tell than why they were refused.
        """
        before, self._refusals = self._refusals, {each.gang: each.verdict for each in unschedulable}
        for gang in self._refusals.keys() & said.keys():
            self._refusals[gang] = replace(self._refusals[gang], message=said[gang])
        for gang in {**before, **self._refusals}:
            if before.get(gang) != self._refusals.get(gang):
                self.look_at(gang)

    def look_at(self, gang: GangKey) -> None:
        """Have all writers look at a gang."""
        for writer in self._writers:
            writer.look_at(gang)

    def standing(self, gang: GangKey, having_nodes: frozenset[PodStatus]) -> GangStanding:
        """Return how a gang stands, or that of which it is part."""
        gang = self._inventory.shared.gangs.home(gang)
        members, refused = self._inventory.gangs.members(gang), self._refusals.get(gang)
        said = verdict(members, refused, having_nodes) if members is not None else None
        return GangStanding(said, refused, members)

    def parts(self, gang: GangKey) -> list[str]:
        """Return the names of the groups that a composite consists of."""
        members = self._inventory.gangs.members(gang)
        return list(members.gang.pod_sets) if members is not None else []

    def score(self, members: GangMembers) -> float:
        """Return how well a gang lies, by the levels of its topology that it was to share."""
        root = members.gang.root
        if root.topology is None and not root.divided:
            return 1.0  # most gangs are not, and their nodes need not be looked up
        table = self._inventory.cluster.table
        nodes: dict[str, list[Mapping[str, str]]] = {}
        for pod_set, record in members.pods.values():
            row = table.find(record.node) if record.status in PLACED else None
            if row is not None:
                nodes.setdefault(pod_set, []).append(table.labels.of_row(row))
        return placement_score(root, lambda pod_set: nodes.get(pod_set, ()), self._inventory.topologies)

    def _pod_changed(self, change: PodChange) -> None:
        old, new = change
        if old and new and _aspects(old) == _aspects(new):
            return  # nothing that is said of a gang depends on the rest
        following = [writer for writer in self._writers if writer.follows_pods]
        if not following:
            return
        served = self._inventory.scheduler_names
        gangs = dict.fromkeys(
            membership(record)[0]
            for record in (old, new)
            if record is not None and record.pod.spec.scheduler_name in served
        )
        for writer in following:
            for gang in gangs:
                writer.look_at(gang, gather=True)


def _aspects(record: PodRecord) -> tuple[object, ...]:
    return (record.status, record.node, record.labels, record.annotations.get(EVICTION_REQUEST))
