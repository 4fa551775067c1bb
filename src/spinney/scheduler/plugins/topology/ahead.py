"""Looking ahead: a gang is put where the gangs that wait beside it keep a domain as well.

A plan is made when the first of several gangs that ask for the same kind of pods has its turn, and is followed for as
long as the books agree with it; then it is made anew, with the gang whose turn it is before all others. It says where
to try first, no more: a gang that fails there is tried everywhere else, and nothing is refused to anybody because it is
planned for others. Nothing is planned for gangs that would like to be closer together than they must.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.journal import Rows, distinct
from spinney.cluster.resources import Vector
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey, TopologyConstraintInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.topology.domains import Domains, Numbers, Sums
from spinney.scheduler.topology.planning import DomainRoom, GangSize, SearchSteps, plan

_STEPS: Final = 10_000
"""How many choices all plans of a session look at when gangs have to make room for each other: a tenth of a second."""

Locate = Callable[[TopologyConstraintInfo], tuple[Domains, int] | None]
"""Finds the domains and the depth of the level that a gang requires; ``None`` if nothing is planned for it."""


class Lookahead:
    """The plans of a session, by topology and request. Mutable: they are followed and made anew."""

    def __init__(self, session: Session, most: int, locate: Locate) -> None:
        self._session = session
        self._most = most
        self._locate = locate
        self._steps = SearchSteps(_STEPS)
        self._waiting: dict[tuple[Domains, int], dict[GangKey, GangSize]] | None = None
        self._plans: dict[tuple[Domains, int], Plan] = {}
        self._had_turn: set[GangKey] = set()
        self._last: tuple[tuple[GangKey, int], Rows | None] | None = None
        """The gang that was asked about last and when that was, and the answer."""

    def choose(
        self, gang: GangKey, domains: Domains, request: RequestClass, wanted: GangSize, pods: Sums
    ) -> Rows | None:
        """Return the nodes to try first for a gang whose turn it is; ``None``: as if no others waited.

        That is so for a gang that comes a second time, too, after some were chosen to make room for it. ``pods`` has
        how many of its pods each domain has room for, in its first column.
        """
        moment = (gang, self._session.nodes.table.usage.position)
        if self._last is None or self._last[0] != moment:
            found = None if gang in self._had_turn else self._choose(gang, domains, request, wanted, pods)
            self._had_turn.add(gang)
            self._last = (moment, found)
        return self._last[1]

    def _choose(
        self, gang: GangKey, domains: Domains, request: RequestClass, wanted: GangSize, pods: Sums
    ) -> Rows | None:
        if self._waiting is None:
            self._waiting = self._find_waiting()
        others = self._waiting.get((domains, request.number), {})
        others.pop(gang, None)
        if not others:
            return None
        kept = self._plans.get((domains, request.number))
        if kept is None or not kept.holds(gang, wanted, pods):
            gangs = {gang: wanted, **dict(islice(others.items(), self._most))}
            kept = self._plans[domains, request.number] = Plan(domains, gangs, pods, self._steps)
        return kept.give(gang, pods)

    def _find_waiting(self) -> dict[tuple[Domains, int], dict[GangKey, GangSize]]:
        """Return the gangs of which all pods wait, and ask for the same, in the order of jobs.

        Those of one size are left out: they do not spoil each other's places.
        """
        session, found = self._session, dict[tuple[Domains, int], dict[GangKey, GangSize]]()
        for key in session.snapshot.gangs.pending:
            members = session.snapshot.gangs.gangs[key]
            constraint = members.gang.root.topology
            where = self._locate(constraint) if constraint is not None else None
            request = _only_request(members) if where is not None else None
            if where is not None and request is not None:
                found.setdefault((where[0], request.number), {})[key] = GangSize(where[1], len(members.pods))
        return {
            kind: dict(sorted(gangs.items(), key=lambda each: session.ask.job_key(session.job(each[0]))))
            for kind, gangs in found.items()
            if len(set(gangs.values())) > 1
        }


class Plan:
    """Where gangs are to go. Mutable: gangs leave it when they have their turn."""

    def __init__(self, domains: Domains, gangs: dict[GangKey, GangSize], pods: Sums, steps: SearchSteps) -> None:
        self._domains = domains
        self._deepest = max(wanted.depth for wanted in gangs.values())
        self._pods = _by_level(pods, self._deepest)
        self._room = DomainRoom(domains.levels[: self._deepest + 1], self._pods)
        order = list(gangs.items())
        given = plan(self._room, [wanted for _, wanted in order], steps)
        self._given = {order[number][0]: (order[number][1], domain) for number, domain in given.items()}

    def holds(self, gang: GangKey, wanted: GangSize, pods: Sums) -> bool:
        """Take in what changed; tell whether a place for the gang is planned, and all places are still free."""
        known = self._given.get(gang)
        if known is None or known[0] != wanted:
            return False
        now = _by_level(pods, self._deepest)
        for depth, (at_last, here) in enumerate(zip(self._pods, now, strict=True)):
            self._room.left[depth] += here - at_last
        self._pods = now
        return all(left.min() >= 0 for left in self._room.left)

    def give(self, gang: GangKey, pods: Sums) -> Rows | None:
        """Return the nodes that a gang may take, which has its turn; ``None`` if it has no place."""
        if gang not in self._given:
            return None
        (depth, count), domain = self._given.pop(gang)
        self._room.take(depth, domain, -count)
        members = self._domains.levels[depth].members(domain)
        if all(wanted.depth <= depth for wanted, _ in self._given.values()):
            return members
        rows = self._spare(depth, members, pods.by_row[:, 0])
        return rows if pods.by_row[rows, 0].sum() >= count else members

    def _spare(self, depth: int, members: Rows, pods: Vector) -> Rows:
        """Return those nodes of a domain that leave the domains inside it what is planned there."""
        room = DomainRoom(self._domains.levels[: self._deepest + 1], self._room.left)
        finest = self._domains.levels[self._deepest]
        spare = np.zeros(len(pods), dtype=np.bool_)
        for place in distinct(finest.of_row[members]).tolist():
            rows = finest.members(place)
            taken = rows[np.cumsum(pods[rows]) <= room.within(self._deepest, depth + 1)[place]]
            room.take(self._deepest, place, int(pods[taken].sum()))
            spare[taken] = True
        return members[spare[members]]


def _by_level(pods: Sums, deepest: int) -> list[Numbers]:
    return [pods.of_level(depth)[:, 0].copy() for depth in range(deepest + 1)]


def _only_request(members: GangMembers) -> RequestClass | None:
    """Return what all pods of a gang ask for, if all wait and have to start together; ``None`` if not."""
    needed = sum(pod_set.min_member for pod_set in members.gang.root.pod_sets())
    if members.pending != len(members.pods) or needed != len(members.pods) or members.gang.anchor is not None:
        return None
    asked = {record.request.number: record.request for _, record in members.pods.values()}
    return next(iter(asked.values())) if len(asked) == 1 else None
