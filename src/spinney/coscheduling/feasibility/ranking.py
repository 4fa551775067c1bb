"""Where a pod can go, and where best: the filters and scores of a profile, computed no more often than needed.

Pods that ask for the same under the same constraints have the same answer until a node changes. Per such *signature*
one vector is kept, ``order[node]``: the score with the node's place among names below it, or -1 where the pod does not
fit; the best node is its maximum, ties by name. When pods come and go, the ledger's journal names the rows, and only
those are judged again (:mod:`spinney.coscheduling.feasibility.rows`). This holds for pods about which other pods have
no say. For spreading, affinity to pods, host ports, volumes and preferences that are weighed against one another, and
while room is kept for a nominated pod, everything is computed anew.
"""

from collections.abc import Hashable
from functools import partial
from typing import Final

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.dra.book import ClaimBook, claims_of
from spinney.cluster.filters import Candidate, ClusterView, FilterFramework, FilterResult, Refusal
from spinney.cluster.journal import Rows
from spinney.cluster.pods import PodRecord
from spinney.cluster.scores import ScoreFramework, Scores
from spinney.cluster.state import ClusterState
from spinney.cluster.table import Mask
from spinney.coscheduling.feasibility.nominations import Nominations
from spinney.coscheduling.feasibility.rows import cut_out
from spinney.coscheduling.feasibility.trial import TrialState
from spinney.coscheduling.framework import CycleState, Profile
from spinney.coscheduling.framework.faults import a_status, a_truth
from spinney.coscheduling.framework.faults import refusals as read_refusals
from spinney.coscheduling.framework.faults import scores as read_scores
from spinney.coscheduling.framework.points import ASKED_ABOUT, FILTER_FAILED
from spinney.coscheduling.framework.status import FrameworkPluginFailed

_BY_ROW: Final = frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})
"""Filters and scores that look at the amounts of one node and nothing else."""
_OF_NODES: Final = frozenset({"NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity"})
"""Filters that look at the node alone, not at the pods on it."""
_NAMES: Final = 1 << 24
"""More than the nodes of any cluster: a score times this leaves room for the place among names."""
_KEEP: Final = 256
_KNOWN: Final = 4096
_FEW: Final = 8
"""Up to that many rows are looked up one by one; more are judged at once."""

Signature = tuple[int, tuple[str, ...]]


class _Standing:
    """What is known about one signature. Mutable."""

    __slots__ = ("base", "candidate", "known", "open", "order", "static", "usage")

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.known: dict[bytes, int] = {}
        """Scores of nodes by what they offer and what is taken: nodes that are alike are judged once."""
        self.static = -1
        self.usage = -1
        self.open: Mask
        self.base: Scores
        self.order: Scores


class NodeRanking:
    """Filters and scores of one profile over the live cluster. Mutable: it remembers answers."""

    def __init__(self, profile: Profile, cluster: ClusterState, claims: ClaimBook, nominations: Nominations) -> None:
        self._profile = profile
        self._cluster = cluster
        self._claims = claims
        self._nominations = nominations
        self.filters = FilterFramework(profile.filter_rules)
        self._scores = ScoreFramework(profile.score_rules)
        self._row_filters = FilterFramework([rule for rule in profile.filter_rules if rule.name in _BY_ROW])
        self._node_filters = FilterFramework([rule for rule in profile.filter_rules if rule.name not in _BY_ROW])
        self._row_scores = ScoreFramework([rule for rule in profile.score_rules if rule.name in _BY_ROW])
        self._node_scores = ScoreFramework([rule for rule in profile.score_rules if rule.name not in _BY_ROW])
        self._tells_apart = not all(plugin.alike for plugin in profile.filters)
        self._standings: dict[Signature, _Standing] = {}
        self._explained: tuple[object, FilterResult] | None = None
        self._taint_lists = 0
        self._soft_taints = False

    # -- the question of a scheduling cycle --------------------------------------------------------------------------

    def best(self, state: CycleState, record: PodRecord) -> int | None:
        """Return the row of the best node for a pod, its nominated node above all; ``None`` if it fits nowhere."""
        if not self.stands_alone(record) or self._nominations.binding_on(record):
            return self._best_afresh(state, record)
        standing = self._standing(record)
        order = standing.order
        for refusal in self._refused_by_plugins(state, record, self._cluster.view):
            order = np.where(refusal.nodes, -1, order)
        nominated = self._nominated_row(record)
        if nominated is not None and order[nominated] >= 0:
            return nominated
        if self._profile.scores:
            order = np.where(order >= 0, order + _NAMES * self._plugin_scores(state, record, order >= 0), -1)
        row = int(order.argmax())
        return row if order[row] >= 0 else None

    def explain(self, state: CycleState, record: PodRecord) -> FilterResult:
        """Return why a pod fits nowhere: what each filter refused."""
        table = self._cluster.table
        if self._is_concerned(state, record) or not self.stands_alone(record):
            return self._judged(state, record)
        moment = (
            _signature(record),
            record.pod.spec.priority,
            table.static.position,
            table.usage.position,
            self._nominations.version,
        )
        if self._explained is None or self._explained[0] != moment:
            self._explained = (moment, self._judged(state, record))
        return self._explained[1]

    def _is_concerned(self, state: CycleState, record: PodRecord) -> bool:
        """Tell whether a filter of a plugin has something to say about a pod; one that fails does."""
        for plugin in self._profile.filters:
            try:
                if self._profile.faults.ask(
                    plugin.name, "filter", partial(plugin.concerns, state, record.pod), a_truth
                ):
                    return True
            except FrameworkPluginFailed:
                return True
        return False

    def stands_alone(self, record: PodRecord) -> bool:
        """Tell whether other pods have no say about where this one may go, except by what they take."""
        if not _is_alone(record.request) or self._has_soft_taints():
            return False
        return not self._cluster.has_rules_about(record)

    def kind(self, record: PodRecord) -> Hashable:
        """Return what the answer about a pod depends on; pods of one kind, in one part of a group, are answered alike.

        A filter that does not promise otherwise may tell any two pods apart.
        """
        if self._tells_apart:
            return record.key
        labels = frozenset(record.labels.items()) if self._cluster.rule_carriers else None
        held: tuple[str, ...] = ()
        if record.pod.spec.resource_claims:
            claims = map(self._claims.claims.get, claims_of(record.pod))
            held = tuple(claim.node for claim in claims if claim is not None)
        return record.request.number, labels, held

    def begin(self, record: PodRecord, like: CycleState) -> CycleState | None:
        """Return the state in which filters are asked about a member of a group while another one has its cycle.

        ``None`` if a pre-filter refuses it.
        """
        state = like.for_another()
        for plugin in self._profile.pre_filter:
            if plugin.decides_for_group:
                continue
            try:
                ask = partial(plugin.pre_filter, state, record.pod)
                if not self._profile.faults.ask(plugin.name, "preFilter", ask, a_status).ok:
                    return None
            except FrameworkPluginFailed:
                return None
        return state

    def changes_with_room(self, state: CycleState, record: PodRecord) -> bool:
        """Tell whether a filter of a plugin may answer otherwise about a node that pods have left."""
        return self._tells_apart and self._is_concerned(state, record)

    # -- questions about other views ---------------------------------------------------------------------------------

    def open_nodes(self, record: PodRecord) -> Mask:
        """Return the nodes that would take the pod if they had room, ``[node]``."""
        return self._node_filters.feasible(self._cluster.view, candidate_of(record)).mask

    def objection(self, record: PodRecord, row: int) -> Refusal | None:
        """Return what speaks against a node apart from room: for a pod that already holds room there."""
        rules = FilterFramework([rule for rule in self._profile.filter_rules if rule.name in _OF_NODES])
        found = rules.feasible(self._cluster.view, candidate_of(record), self._cluster.table.mask([row]))
        return found.refusals[0] if found.refusals else None

    def feasible(
        self, state: CycleState, record: PodRecord, view: ClusterView, within: Mask | None = None
    ) -> FilterResult:
        """Return where a pod fits on any view, filters of plugins included."""
        found = self.filters.feasible(view, candidate_of(record), within)
        if not found.feasible:
            return found
        if within is None:
            refusals = self._refused_by_plugins(state, record, view)
        else:
            with state.lending(ASKED_ABOUT, within):
                refusals = self._refused_by_plugins(state, record, view)
        if not refusals:
            return found
        mask = found.mask & ~np.logical_or.reduce([refusal.nodes for refusal in refusals])
        return FilterResult(mask, (*found.refusals, *refusals))

    def fits_on(self, state: CycleState, record: PodRecord, view: ClusterView, row: int) -> bool:
        """Tell whether a pod fits on one node of a view."""
        return bool(self.feasible(state, record, view, view.table.mask([row])).mask[row])

    def preferred(self, record: PodRecord, view: ClusterView, mask: Mask) -> int:
        """Return the best row of ``mask`` on any view."""
        return int(self._scores.ranking(view, candidate_of(record), mask)[0])

    # -- remembered answers ------------------------------------------------------------------------------------------

    def _standing(self, record: PodRecord) -> _Standing:
        signature = _signature(record)
        standing = self._standings.pop(signature, None)
        if standing is None:
            standing = _Standing(candidate_of(record))
        # Put back last: the first is then the one unused for longest.
        self._standings[signature] = standing
        if len(self._standings) > _KEEP:
            del self._standings[next(iter(self._standings))]
        self._bring_up_to_date(standing)
        return standing

    def _bring_up_to_date(self, standing: _Standing) -> None:
        table = self._cluster.table
        position = table.usage.position
        if standing.static != table.static.position:
            standing.static = table.static.position
            view, candidate = self._cluster.view, standing.candidate
            standing.open = self._node_filters.feasible(view, candidate).mask
            standing.base = self._node_scores.score(view, candidate, standing.open) * _NAMES + (_NAMES - 1 - table.rank)
            standing.order = np.full(table.capacity, -1, dtype=np.int64)
            self._judge_rows(standing, np.flatnonzero(standing.open))
        elif standing.usage != position:
            rows = table.usage.since(standing.usage)
            self._judge_rows(standing, np.flatnonzero(standing.open) if rows is None else rows)
        standing.usage = position

    def _judge_rows(self, standing: _Standing, rows: Rows) -> None:
        if len(rows) <= _FEW:
            for row in rows.tolist():
                standing.order[row] = self._judge_alike(standing, row) if standing.open[row] else -1
            return
        worth = self._worth(standing, rows)
        standing.order[rows] = np.where(standing.open[rows] & (worth >= 0), worth * _NAMES + standing.base[rows], -1)

    def _judge_alike(self, standing: _Standing, row: int) -> int:
        """Judge one row, unless a node just like it was judged before."""
        view = self._cluster.view
        table = view.table
        state = b"".join(
            (
                table.allocatable[row].tobytes(),
                table.used[row].tobytes(),
                table.idle[row].tobytes(),
                view.pods.nonzero_requested(table.capacity)[row].tobytes(),
            )
        )
        worth = standing.known.get(state)
        if worth is None:
            if len(standing.known) >= _KNOWN:
                standing.known.clear()
            worth = int(self._worth(standing, np.array([row], dtype=np.intp))[0])
            standing.known[state] = worth
        return worth * _NAMES + int(standing.base[row]) if worth >= 0 else -1

    def _worth(self, standing: _Standing, rows: Rows) -> Scores:
        """Return the scores that depend on amounts, ``[row]``, -1 where there is no room."""
        view = cut_out(self._cluster.view, rows)
        fits = self._row_filters.feasible(view, standing.candidate).mask
        if not fits.any():
            return np.full(len(rows), -1, dtype=np.int64)
        return np.where(fits, self._row_scores.score(view, standing.candidate, fits), -1)

    def _has_soft_taints(self) -> bool:
        """Tell whether some node has, or had, a taint that is weighed among the nodes that remain."""
        lists = self._cluster.table.taints.lists()
        for taints in lists[self._taint_lists :]:
            self._soft_taints |= any(taint.effect == "PreferNoSchedule" for taint in taints)
        self._taint_lists = len(lists)
        return self._soft_taints

    # -- computing anew ----------------------------------------------------------------------------------------------

    def _best_afresh(self, state: CycleState, record: PodRecord) -> int | None:
        found = self._judged(state, record)
        if not found.feasible:
            return None
        nominated = self._nominated_row(record)
        if nominated is not None and found.mask[nominated]:
            return nominated
        view = self._cluster.view
        totals = self._scores.score(view, candidate_of(record), found.mask)
        if self._profile.scores:
            totals = totals + self._plugin_scores(state, record, found.mask)
        order = np.where(found.mask, totals * _NAMES + (_NAMES - 1 - view.table.rank), np.iinfo(np.int64).min)
        return int(order.argmax())

    def _judged(self, state: CycleState, record: PodRecord) -> FilterResult:
        view = self._cluster.view
        found = self.feasible(state, record, view)
        nominated = self._nominations.binding_on(record) if found.feasible else []
        if not nominated:
            return found
        # As kube-scheduler does, a node must pass with the nominated pods on it and without them: they may be what
        # satisfies an affinity, and may never come.
        trial = TrialState(self._cluster, self._claims, nominated)
        with trial.asked(state):
            again = self.feasible(state, record, trial.view)
        kept = tuple(
            Refusal(each.filter, each.reason, each.nodes & found.mask, each.unresolvable & found.mask)
            for each in again.refusals
        )
        return FilterResult(found.mask & again.mask, (*found.refusals, *kept))

    def _refused_by_plugins(self, state: CycleState, record: PodRecord, view: ClusterView) -> tuple[Refusal, ...]:
        refusals: list[Refusal] = []
        faults = self._profile.faults
        table = view.table.read_only() if self._profile.filters else view.table
        for plugin in self._profile.filters:
            try:
                if faults.ask(plugin.name, "filter", partial(plugin.concerns, state, record.pod), a_truth):
                    ask = partial(plugin.refusals, state, record.pod, table)
                    refusals += faults.ask(plugin.name, "filter", ask, partial(read_refusals, table=table))
            except FrameworkPluginFailed as error:
                state.write(FILTER_FAILED, error)
                refusals.append(Refusal.final(plugin.name, str(error), view.table.alive.copy()))
        return tuple(refusals)

    def _plugin_scores(self, state: CycleState, record: PodRecord, mask: Mask) -> Scores:
        table = self._cluster.table.read_only()
        mask = mask.copy()
        mask.setflags(write=False)
        total = np.zeros(table.capacity, dtype=np.int64)
        for plugin, weight in self._profile.scores:
            ask = partial(plugin.score, state, record.pod, table, mask)
            total += weight * self._profile.faults.ask(plugin.name, "score", ask, partial(read_scores, table=table))
        return total

    def _nominated_row(self, record: PodRecord) -> int | None:
        node = self._nominations.node_of(record.key)
        return self._cluster.table.find(node) if node else None


def candidate_of(record: PodRecord) -> Candidate:
    """Return a pod as filters and scores take it."""
    return Candidate(record.pod, record.request.requests)


def _signature(record: PodRecord) -> Signature:
    # Images are no constraint, so not part of the request class, but they draw pods to nodes that have them.
    spec = record.pod.spec
    return record.request.number, tuple([container.image for container in (*spec.init_containers, *spec.containers)])


def _is_alone(request: RequestClass) -> bool:
    constraints = request.constraints
    if constraints.looks_at_pods or constraints.volumes or constraints.claims or constraints.node_name:
        return False
    preferences = constraints.affinity.node_affinity if constraints.affinity is not None else None
    return preferences is None or not preferences.preferred_during_scheduling_ignored_during_execution
