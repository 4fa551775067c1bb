"""topology: a gang, or a part of one, goes to nodes that are near each other.

Divides the nodes for every group that carries a topology constraint, and scores nodes so that a group which must spread
over several domains of its preferred level starts in the one with most room.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
import numpy as np

from spinney.extensions.arguments import read_arguments
from spinney.gangs.tree import GroupSet, Member, TopologyConstraintInfo
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Constraint, Plugin
from spinney.scheduler.framework.results import TOPOLOGY_CONSTRAINT, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.staying import rows_to_stay_with
from spinney.scheduler.plugins.topology.ahead import Lookahead
from spinney.scheduler.plugins.topology.demand import GroupDemand
from spinney.scheduler.plugins.topology.subsetting import (
    DomainSets,
    InvalidConstraint,
    LevelScores,
    Subsetting,
    TopologyRefusal,
)
from spinney.scheduler.topology.domains import Domains


class Foresight(msgspec.Struct, frozen=True, rename="camel"):
    """How far to look ahead."""

    plan_ahead: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    """For how many waiting gangs room is planned before one is placed; 0: none, a gang takes the tightest domain."""


class TopologyPlugin(Plugin):
    """Divides and scores nodes by topology."""

    name = "topology"
    arguments_type = Foresight
    honours = frozenset({Constraint.TOPOLOGY})
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        self._session = session
        self._domains: dict[tuple[str, str, tuple[str, ...]], Domains] = {}
        self._demands: dict[tuple[tuple[int, int], ...], GroupDemand] = {}
        most = read_arguments(Foresight, self.arguments).plan_ahead
        self._ahead = Lookahead(session, most, self._required) if most else None
        self._job: PodGroupInfo | None = None
        """The job that is being placed; what is below is about it."""
        self._steps: dict[str, LevelScores | None] = {}
        """By group; ``None`` while a set is tried in which all nodes score the same."""
        self._parents: dict[str, str] = {}
        session.add_victim_invariant_pre_predicate_fn(self._missing)
        session.add_subset_nodes_fn(self._subset, applies_to=lambda group: group.topology is not None)
        session.add_node_order_columns(
            self._score,
            stateful=True,
            monotone=True,
            applies_to=lambda task: task.job is self._job and self._steps_for(task) is not None,
        )

    def _subset(
        self, job: PodGroupInfo, group: Member, tasks: Sequence[PodInfo], node_set: NodeSet
    ) -> Sequence[NodeSet] | None:
        constraint = group.topology
        if constraint is None:
            return None
        session = self._session
        if job is not self._job:
            self._job = job
            self._steps.clear()
            self._parents = _parents(job.root)
        domains = self._find(constraint)
        if domains is None:
            session.record_fit_error(job, FitError("TopologyNotFound", _not_there(group, constraint)))
            return ()
        try:
            subsetting = Subsetting(session.nodes, domains, constraint, self._demand(job, tasks), node_set)
        except InvalidConstraint as error:
            session.record_fit_error(job, FitError("InvalidTopologyConstraint", str(error)))
            return ()
        occupied = rows_to_stay_with(session, job, group)
        division = subsetting.divide(occupied)
        if division.refusal is not None:
            refusal = division.refusal
            for line, message in enumerate(refusal.messages(job.name)):
                rewrite = partial(_line, refusal, line)
                session.record_fit_error(job, FitError(TOPOLOGY_CONSTRAINT, message, refusal, rewrite))
        if not isinstance(division.sets, DomainSets):
            return division.sets
        if self._ahead is not None and group is job.root and len(occupied) == 0:
            division.sets.planned = subsetting.chosen_by(self._ahead, job, division.sets)
        label, level_scores = _label(group), division.level_scores
        if level_scores is not None:
            preferred = subsetting.preferred

            def try_level(depth: int) -> None:
                self._steps[label] = level_scores() if depth < preferred else None

            division.sets.try_level = try_level
        return division.sets

    def _demand(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> GroupDemand:
        """Return what tasks ask for together; gangs that ask for the same share one answer."""
        asked = job.requests_of(tasks)
        key = tuple([(request.number, count) for request, count in asked.items()])
        known = self._demands.get(key)
        if known is None:
            known = self._demands[key] = GroupDemand.of(asked, self._session.nodes.table.axis.width)
        return known

    def _score(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        found = self._steps_for(task)
        if found is None:
            return np.zeros(len(nodes))
        of_row, steps = found
        domain = of_row[nodes.rows]
        return np.where(domain >= 0, steps[domain], 0.0) * scores.TOPOLOGY

    def _steps_for(self, task: PodInfo) -> LevelScores | None:
        """Return the steps of the nearest group around a task that has some."""
        label = task.pod_set.name
        while label not in self._steps:
            above = self._parents.get(label)
            if above is None:
                return None
            label = above
        return self._steps[label]

    def _missing(self, task: PodInfo) -> str | None:
        """Return which topology that a job, or a part of it, requires does not exist: nobody who leaves makes it."""
        for part in task.job.root.parts():
            if part.topology is not None and self._session.topologies.resolve(part.topology) is None:
                return _not_there(part, part.topology)
        return None

    def _find(self, constraint: TopologyConstraintInfo) -> Domains | None:
        """Return the domains of the topology a constraint means, if it exists."""
        topology = self._session.topologies.resolve(constraint)
        if topology is None:
            return None
        key = (topology.kind, topology.name, topology.levels)
        found = self._domains.get(key)
        if found is None:
            table = self._session.nodes.table
            found = self._domains[key] = Domains(self._session.snapshot.domain_trees.tree(topology, table), table)
        return found

    def _required(self, constraint: TopologyConstraintInfo) -> tuple[Domains, int] | None:
        """Return the domains and the depth of the level that a constraint requires."""
        domains = self._find(constraint) if constraint.required else None
        depth = domains.topology.depth(constraint.required) if domains is not None else None
        return (domains, depth) if domains is not None and depth is not None else None


def _line(refusal: TopologyRefusal, line: int, job: PodGroupInfo) -> str:
    return refusal.messages(job.name)[line]


def _label(group: Member) -> str:
    """Return what a group is called here; group sets and pod sets may share names."""
    return f"/{group.name}" if isinstance(group, GroupSet) else group.name


def _parents(group: GroupSet) -> dict[str, str]:
    """Return the label of the group around each part of a tree."""
    groups = (part for part in group.parts() if isinstance(part, GroupSet))
    return {_label(member): _label(each) for each in groups for member in each.members}


def _not_there(group: Member, constraint: TopologyConstraintInfo) -> str:
    return f"topology {constraint.topology} that {group.name or 'the job'} requires does not exist"
