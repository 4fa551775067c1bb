"""Which pods would have to go for a pod to fit, node by node, and on which node that hurts least.

On a node all pods of lower priority are taken away; if the pod then fits, they are given back one by one, those first
whose loss would break a disruption budget and then the most important, as long as the pod still fits. What could not
be given back are the victims. A group among them goes down to its minimum or goes whole, wherever its pods are: what
would be left of it below that could do nothing but hold its nodes. One that is only disrupted as a whole always does;
one within the minimum runtime it asks for only loses what it can do without.
Nodes are compared as kube-scheduler does: fewest broken budgets, least important top victim, smallest sum of
priorities, fewest victims, the top victim that started last; then by name. A gang that checkpoints counts as started
when it last did: what it has saved is not lost.

For a pod that only lacks room this is arithmetic on one row of the ledger; for others every rule is asked again.
"""

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import numpy as np

from spinney.api.interruption import checkpoints_on_sigterm
from spinney.api.labels import LAST_CHECKPOINT
from spinney.binding.repair import started_at
from spinney.cluster.filters import FilterResult
from spinney.cluster.ledger import fits_on
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import holding_of
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.cluster.table import Mask
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.feasibility.rows import TableRows
from spinney.coscheduling.feasibility.trial import TrialState
from spinney.coscheduling.framework import CycleState, Services
from spinney.gangs.checkpoints import min_runtime_of, saved_until
from spinney.gangs.sources import bare
from spinney.gangs.sources.context import timestamp_of
from spinney.gangs.tree import GangKey, is_satisfied
from spinney.kube.keys import Key

ROOM: Final = "NodeResourcesFit"
_FEWEST_CANDIDATES: Final = 100
_PRIORITY_SPAN: Final = 1 << 31
NOT_STARTED: Final = datetime.max.replace(tzinfo=UTC)


class UnsavedWork:
    """Since when pods have done work that is not saved, at one moment. Mutable: it remembers what gangs say."""

    def __init__(self, services: Services) -> None:
        self._groups = services.groups
        self._checkpoints: dict[GangKey, datetime | None] = {}

    def since(self, record: PodRecord) -> datetime:
        """Return since when a pod has unsaved work; one that has none, or has not started, counts as the latest."""
        begun = record.pod.status.start_time or NOT_STARTED
        saved = self._saved_until(record)
        return begun if saved is None else max(begun, saved)

    def _saved_until(self, record: PodRecord) -> datetime | None:
        key = self._groups.gang_key(record)
        if key.source == bare.SOURCE:
            said = record.annotations
            return NOT_STARTED if checkpoints_on_sigterm(said) else timestamp_of(said, LAST_CHECKPOINT)
        if key not in self._checkpoints:
            self._checkpoints[key] = saved_until(self._groups.gang_members(record), NOT_STARTED)
        return self._checkpoints[key]


class OwnRuntimes:
    """Which gangs have not run for as long as they ask for, at one moment: such a gang loses only what it can spare.

    Mutable: it remembers its answers.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[GangKey, bool] = {}

    def protects(self, record: PodRecord) -> bool:
        """Tell whether the gang of a pod is not to be disturbed yet; pods that wait are tried again when it may be."""
        if self._services.longest_min_runtime <= timedelta(0):
            return False
        key = self._services.groups.gang_key(record)
        if key.source == bare.SOURCE:
            return self._is_within(record)
        if key not in self._known:
            self._known[key] = self._is_within(record)
        return self._known[key]

    def _is_within(self, record: PodRecord) -> bool:
        members = self._services.groups.gang_members(record)
        asked, started = min_runtime_of(members), started_at(members)
        if asked is None or started is None:
            return False
        end = started + min(asked, self._services.longest_min_runtime)
        if self._services.runtime.clock.now() >= end:
            return False
        self._services.try_again_at(end)
        return True


@dataclass(frozen=True, slots=True)
class Sacrifice:
    """The pods to take from one node so that another fits there, the most important first."""

    row: int
    node: str
    victims: tuple[PodRecord, ...]
    violations: int = 0
    unsaved_since: datetime = NOT_STARTED
    """Since when the most important of the victims have done work that they would lose."""

    def cost(self) -> tuple[int, int, int, int, float, str]:
        """Return what nodes are compared by; the smallest is chosen."""
        if not self.victims:
            return (0, -_PRIORITY_SPAN, 0, 0, 0.0, self.node)
        top = self.victims[0].pod.priority
        return (
            self.violations,
            top,
            sum(victim.pod.priority + _PRIORITY_SPAN for victim in self.victims),
            len(self.victims),
            -self.unsaved_since.timestamp() if self.unsaved_since is not NOT_STARTED else float("-inf"),
            self.node,
        )


class VictimSearch:
    """Looks for the cheapest sacrifice on a trial, which it leaves as it was."""

    def __init__(self, ranking: NodeRanking, trial: TrialState, services: Services) -> None:
        self._ranking = ranking
        self._trial = trial
        self._budgets = services.budgets
        self._groups = services.groups
        self._runtimes = OwnRuntimes(services)
        self._work = UnsavedWork(services)

    def cheapest(
        self, state: CycleState, record: PodRecord, priority: int, found: FilterResult, within: Mask | None = None
    ) -> Sacrifice | None:
        """Return the best node, ``within`` some, to make room on for ``record``, which ``found`` says fits nowhere."""
        table = self._trial.view.table
        hopeful = table.alive & ~found.unresolvable() & ~found.mask
        if within is not None:
            hopeful &= within
        only_room = _refused_only_for_room(found)
        enough = max(_FEWEST_CANDIDATES, len(table) // 10)
        by_amounts = self._ranking.stands_alone(record) and not self._ranking.changes_with_room(state, record)
        sacrifices: list[Sacrifice] = []
        for row in table.rows()[hopeful[table.rows()]].tolist():
            if by_amounts and only_room[row]:
                place: _TrialNode = _Amounts(self._trial, record, row)
            else:
                place = _Rules(self._trial, self._ranking, state, record, row)
            sacrifice = self._on(place, row, priority, newcomer=record)
            if sacrifice is not None:
                sacrifices.append(sacrifice)
                if len(sacrifices) >= enough or not sacrifice.victims:
                    break
        return min(sacrifices, key=Sacrifice.cost, default=None)

    def _on(self, place: "_TrialNode", row: int, priority: int, *, newcomer: PodRecord) -> Sacrifice | None:
        lower = [each for each in self._trial.pods_on(row).values() if each.pod.priority < priority]
        own = self._groups.of(newcomer.key)  # a group is not served by the loss of its own members
        lower = sorted(
            (each for each in lower if own is None or self._groups.of(each.key) is not own), key=self._importance
        )
        lower = self._disturbable(lower)
        while lower:
            victims = self._fewest(place, lower)
            if victims is None:
                return None
            whole = self._with_groups(victims)
            spared = {id(self._groups.of(each.key)) for each in whole.values() if each.pod.priority >= priority}
            if not spared:
                return self._sacrifice(place, row, victims, whole)
            # A group that cannot go whole, for some of it is more important, gives nothing.
            lower = [each for each in lower if id(self._groups.of(each.key)) not in spared]
        return None

    def _disturbable(self, lower: list[PodRecord]) -> list[PodRecord]:
        """Leave out the pods of gangs that have not run as long as they ask for, but those they can do without."""
        given: set[Key] = set()
        for each in reversed(lower):  # the least important first
            if not self._runtimes.protects(each) or self._is_spare(each, given):
                given.add(each.key)
        return [each for each in lower if each.key in given]

    def _fewest(self, place: "_TrialNode", lower: list[PodRecord]) -> list[PodRecord] | None:
        """Return those of ``lower`` that must go, as few and unimportant as can be; ``None`` if all are not enough."""
        for each in lower:
            place.evict(each)
        if not place.fits():
            for each in lower:
                place.restore(each)
            return None
        violating = self._budgets.violated_by(lower)
        protected = [each for each, violates in zip(lower, violating, strict=True) if violates]
        others = [each for each, violates in zip(lower, violating, strict=True) if not violates]
        victims = _not_given_back(place, (*protected, *others))
        for each in victims:
            place.restore(each)
        return victims

    def _sacrifice(
        self, place: "_TrialNode", row: int, victims: list[PodRecord], whole: dict[Key, PodRecord]
    ) -> Sacrifice:
        """Return what is taken; where groups go whole, others may be given back for it."""
        name = self._trial.view.table.names[row]
        if len(whole) > len(victims):
            here = [each for each in whole.values() if each.node == name]
            for each in here:
                place.evict(each)
            single = [each for each in victims if not self._breaks(each, whole)]
            kept = {each.key for each in _not_given_back(place, sorted(single, key=self._importance))}
            given_back = {each.key for each in single} - kept
            for each in here:
                if each.key not in given_back:
                    place.restore(each)
            whole = {key: each for key, each in whole.items() if key not in given_back}
        taken = sorted(whole.values(), key=self._importance)
        top = [self._work.since(each) for each in taken if each.pod.priority == taken[0].pod.priority]
        violations = sum(self._budgets.violated_by(taken))
        return Sacrifice(row, name, tuple(taken), violations, min(top, default=NOT_STARTED))

    def _with_groups(self, victims: list[PodRecord]) -> dict[Key, PodRecord]:
        """Return victims together with the pods that go where they go: those of groups that cannot do without them."""
        found = {victim.key: victim for victim in victims}
        for victim in victims:
            group = self._groups.of(victim.key)
            if group is not None and self._breaks(victim, found):
                found |= {each.key: each for each in group.members if self._is_there(each)}
        return found

    def _breaks(self, victim: PodRecord, gone: Container[Key]) -> bool:
        """Tell whether a victim's group cannot go on without those that are ``gone``, or is never taken in part."""
        group = self._groups.of(victim.key)
        if group is None or group.gang is None:
            return False
        left = Counter(
            group.part_of(each.key)
            for each in group.members
            if each.key not in gone and each.status in ACTIVE_ALLOCATED and self._is_there(each)
        )
        return group.terms.disrupted_whole or not is_satisfied(group.gang.root, lambda part: left[part.name])

    def _is_spare(self, record: PodRecord, gone: set[Key]) -> bool:
        """Tell whether a group can do without a member when others are ``gone`` already."""
        return self._groups.of(record.key) is not None and not self._breaks(record, gone | {record.key})

    def _importance(self, record: PodRecord) -> tuple[int, datetime, str]:
        """Sort pods, the most important first: higher priority, then more work to lose, then by name."""
        return -record.pod.priority, self._work.since(record), str(record.key)

    def _is_there(self, record: PodRecord) -> bool:
        row = self._trial.view.table.find(record.node) if record.node else None
        return row is not None and record.key in self._trial.pods_on(row)


def _not_given_back(place: "_TrialNode", evicted: Iterable[PodRecord]) -> list[PodRecord]:
    """Give pods back one by one as long as the newcomer still fits; return those that must go."""
    victims = []
    for each in evicted:
        place.restore(each)
        if not place.fits():
            place.evict(each)
            victims.append(each)
    return victims


class _TrialNode(Protocol):
    """One node, from which pods can be taken to see whether another fits."""

    def evict(self, record: PodRecord) -> None: ...
    def restore(self, record: PodRecord) -> None: ...
    def fits(self) -> bool: ...


class _Amounts:
    """A node where only amounts matter."""

    def __init__(self, trial: TrialState, record: PodRecord, row: int) -> None:
        self._row = TableRows(trial.view.table, np.array([row], dtype=np.intp))
        self._wanted = record.request

    def evict(self, record: PodRecord) -> None:
        self._row.subtract(0, holding_of(record.status), record.request.requests)

    def restore(self, record: PodRecord) -> None:
        self._row.add(0, holding_of(record.status), record.request.requests)

    def fits(self) -> bool:
        return fits_on(self._row, 0, self._wanted)


class _Rules:
    """A node where every filter is asked."""

    def __init__(self, trial: TrialState, ranking: NodeRanking, state: CycleState, record: PodRecord, row: int) -> None:
        self._trial = trial
        self._ranking = ranking
        self._state = state
        self._record = record
        self._index = row
        self.evict, self.restore = trial.evict, trial.restore

    def fits(self) -> bool:
        return self._ranking.fits_on(self._state, self._record, self._trial.view, self._index)


def _refused_only_for_room(found: FilterResult) -> Mask:
    only = ~found.mask
    for refusal in found.refusals:
        if refusal.filter != ROOM:
            only &= ~refusal.nodes
    return only
