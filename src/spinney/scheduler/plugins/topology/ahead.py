"""Looking ahead: a gang is put where the gangs that come after it keep a domain as well.

A gang goes where it would go if no others waited, unless a gang that comes after it would go without for that, and need
not: then it goes where a plan has it. So, by turn, the first who fares otherwise than without plans fares better. What
a plan says is followed for as long as the books agree with it; nobody is refused anything because it is planned for
others, and a gang that fails where it was planned to go is tried everywhere else.

Plans are made of what is free now, where the pods may go, for gangs whose turns are certain
(:mod:`~spinney.scheduler.plugins.topology.company`), in the action that places gangs on what is free.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import first_of
from spinney.cluster.journal import Rows, distinct
from spinney.cluster.resources import Vector
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.filling import may_fill
from spinney.scheduler.plugins.topology.company import NOW, AlikePods, Company, Locate, first_task
from spinney.scheduler.topology.domains import Domains, Numbers, Sums, sum_by
from spinney.scheduler.topology.planning import DomainRoom, GangSize, SearchSteps, plan

_STEPS, _STEPS_EACH = 20_000, 5_000
"""How many choices all plans of a session look at, and for one gang, where gangs have to make room for each other."""


class PlaceTaken(NamedTuple):
    """Room for so many pods in a domain of a level, which is given as a depth."""

    depth: int
    domain: int
    pods: int


class Turn(NamedTuple):
    """A gang whose turn it is."""

    gang: GangKey
    wanted: GangSize
    task: PodInfo
    """The first of its pods; all are alike."""
    usual: int
    """The domain where it would be placed if no others waited."""
    starts: bool
    """Whether it would start there now; if not, it would be promised what is terminating."""


class Lookahead:
    """The plans of a session, by kind of pods. Mutable: they are followed and made anew."""

    def __init__(self, session: Session, most: int, locate: Locate) -> None:
        self._session = session
        self._most = most
        self._company = Company(session, locate)
        self._steps = SearchSteps(_STEPS, _STEPS_EACH)
        self._plans: dict[AlikePods, Plan] = {}
        self._last: tuple[tuple[GangKey, int], Rows | None] | None = None
        """The gang that was asked about last and when that was, and the answer."""

    def choose(
        self, job: PodGroupInfo, domains: Domains, request: RequestClass, wanted: GangSize, usual: Sequence[int]
    ) -> Rows | None:
        """Return the nodes to try first for a gang whose turn it is; ``None``: as if no others waited.

        ``usual`` are the domains in which it is tried then, in order.
        """
        if self._session.waiting is None or not self._company.has_several_sizes(domains, request):
            return None
        moment = (job.key, self._session.nodes.table.usage.position)
        if self._last is None or self._last[0] != moment:
            self._last = (moment, self._choose(job, wanted, usual))
        return self._last[1]

    def _choose(self, job: PodGroupInfo, wanted: GangSize, usual: Sequence[int]) -> Rows | None:
        found = self._company.kind_of(job)
        if found is None or found[1] != wanted:
            return None
        kind, task = found[0], first_task(job)
        room = self._company.room(kind, task)
        now, later = room.of_level(wanted.depth).T
        where = next((domain for domain in usual if later[domain] >= wanted.pods), None)
        if where is None:
            return None
        turn = Turn(job.key, wanted, task, where, bool(now[where] >= wanted.pods))
        kept = self._plans.get(kind)
        if kept is None or not kept.covers(turn, room):
            return self._plan_anew(kind, turn, room)
        if not kept.has(turn.gang):
            return None
        if turn.starts and kept.lets(turn.gang, self._taken_as_usual(kind.domains, turn, kept.finest, room)):
            return kind.domains.levels[wanted.depth].members(where)
        return kept.give(turn.gang, room) if kept.proven else self._plan_anew(kind, turn, room)

    def _plan_anew(self, kind: AlikePods, turn: Turn, room: Sums) -> Rows | None:
        """Plan with the gang where it would go anyway; or elsewhere, if others go without for that who need not."""
        self._plans.pop(kind, None)
        if not self._steps.number:
            return None  # nothing could be found any more
        following = self._company.following(kind, turn.wanted, room, self._most)
        if following is None:
            return None
        gangs = {turn.gang: turn.wanted, **following.gangs}
        as_usual = Plan(kind.domains, gangs, room)
        if turn.starts:
            as_usual.put(turn.gang, self._taken_as_usual(kind.domains, turn, as_usual.finest, room))
            as_usual.make(self._steps)
        if not as_usual.whole:
            other = Plan(kind.domains, gangs, room)
            other.make(self._steps)
            if other.is_better(as_usual, room) if following.ordered else other.whole:
                other.proven = True
                self._plans[kind] = other
                return other.give(turn.gang, room)
        if turn.starts and (following.ordered or as_usual.whole):
            as_usual.leave(turn.gang)
            self._plans[kind] = as_usual
            return kind.domains.levels[turn.wanted.depth].members(turn.usual)
        return None

    def _taken_as_usual(self, domains: Domains, turn: Turn, finest: int, room: Sums) -> Sequence[PlaceTaken]:
        """Return what a gang takes in its usual domain, by domain of the finest level if that can be foretold."""
        (depth, pods), node_rules = turn.wanted, self._session.ask.node_rules
        anywhere = [PlaceTaken(depth, turn.usual, pods)]
        rules = node_rules.rules(turn.task)
        if depth == finest or not may_fill(rules):
            return anywhere
        members = NodeSet(self._session.nodes, domains.levels[depth].members(turn.usual))
        rows, _, score = node_rules.candidates(turn.task, members, rules)
        rows = rows[np.argsort(-score, kind="stable")]
        taken = first_of(room.by_row[rows, NOW], pods)
        if taken.sum() < pods:
            return anywhere
        inside = sum_by(domains.levels[finest].of_row[rows], taken[:, None], len(domains.levels[finest]))[:, 0]
        return [PlaceTaken(finest, place, int(inside[place])) for place in inside.nonzero()[0].tolist()]


class Plan:
    """Where gangs are to go, in the order of their turns. Mutable: gangs leave it when they have had theirs."""

    def __init__(self, domains: Domains, gangs: Mapping[GangKey, GangSize], room: Sums) -> None:
        self._domains = domains
        self._gangs = gangs
        self.finest = max(wanted.depth for wanted in gangs.values())
        """The deepest level that one of them requires."""
        self.proven = False
        """Whether somebody goes without if it is not followed."""
        self._pods = _by_level(room, self.finest)
        self._room = DomainRoom(domains.levels[: self.finest + 1], self._pods)
        self._given: dict[GangKey, Sequence[PlaceTaken]] = {}
        self._open: frozenset[GangKey] = frozenset()
        """Gangs without a place that may have had one: the search for it was not finished."""

    def put(self, gang: GangKey, claims: Sequence[PlaceTaken]) -> None:
        """Give a gang certain places."""
        self._given[gang] = claims
        self._take(claims, 1)

    def make(self, steps: SearchSteps) -> None:
        """Give places to all who have none, as far as there is room."""
        left = [(gang, wanted) for gang, wanted in self._gangs.items() if gang not in self._given]
        planned = plan(self._room, [wanted for _, wanted in left], steps)
        for number, domain in planned.given.items():
            gang, (depth, pods) = left[number]
            self._given[gang] = [PlaceTaken(depth, domain, pods)]
        self._open = frozenset(left[number][0] for number in planned.open)

    @property
    def whole(self) -> bool:
        """Tell whether everybody has a place."""
        return len(self._given) == len(self._gangs)

    def is_better(self, other: "Plan", room: Sums) -> bool:
        """Tell whether the first who fares otherwise than in another plan for the same gangs has a place in this one.

        That is not certain if one before it has none in either, but may have had one, or may be promised what is
        terminating.
        """
        for gang, (depth, pods) in self._gangs.items():
            if self.has(gang) is not other.has(gang):
                return self.has(gang)
            if gang in self._open:
                return False
            now, later = room.of_level(depth).T
            if not self.has(gang) and later.max() >= pods and (later > now).any():
                return False
        return False

    def has(self, gang: GangKey) -> bool:
        """Tell whether a gang has a place."""
        return gang in self._given

    def covers(self, turn: Turn, room: Sums) -> bool:
        """Take in what changed; tell whether the plan is about the gang, and all places are still free."""
        if self._gangs.get(turn.gang) != turn.wanted:
            return False
        pods = _by_level(room, self.finest)
        for depth, (before, now) in enumerate(zip(self._pods, pods, strict=True)):
            self._room.left[depth] += now - before
        self._pods = pods
        return self._room.sound

    def lets(self, gang: GangKey, claims: Sequence[PlaceTaken]) -> bool:
        """Tell whether a gang may take other places than its own, so that all others keep theirs; then it leaves."""
        own = self.leave(gang)
        self._take(claims, 1)
        fits = self._room.sound
        self._take(claims, -1)
        if not fits:
            self.put(gang, own)
        return fits

    def leave(self, gang: GangKey) -> Sequence[PlaceTaken]:
        """Forget a gang, which has its turn; return its places."""
        claims = self._given.pop(gang)
        self._take(claims, -1)
        return claims

    def give(self, gang: GangKey, room: Sums) -> Rows:
        """Return the nodes that a gang may take, which has its turn: all have room now."""
        ((depth, domain, count),) = self.leave(gang)
        inside = self._domains.levels[depth].members(domain)
        members: Rows = inside[room.by_row[inside, NOW] > 0]
        if all(claim.depth <= depth for claims in self._given.values() for claim in claims):
            return members
        rows = self._spare(depth, members, room.by_row[:, NOW])
        return rows if room.by_row[rows, NOW].sum() >= count else members

    def _take(self, claims: Sequence[PlaceTaken], sign: int) -> None:
        for depth, domain, pods in claims:
            self._room.take(depth, domain, sign * pods)

    def _spare(self, depth: int, members: Rows, pods: Vector) -> Rows:
        """Return those nodes of a domain that leave the domains inside it what is planned there."""
        room = DomainRoom(self._domains.levels[: self.finest + 1], self._room.left)
        finest = self._domains.levels[self.finest]
        spare = np.zeros(len(pods), dtype=np.bool_)
        for place in distinct(finest.of_row[members]).tolist():
            rows = finest.members(place)
            taken = rows[np.cumsum(pods[rows]) <= room.within(self.finest, depth + 1)[place]]
            room.take(self.finest, place, int(pods[taken].sum()))
            spare[taken] = True
        return members[spare[members]]


def _by_level(room: Sums, deepest: int) -> list[Numbers]:
    return [room.of_level(depth)[:, NOW].copy() for depth in range(deepest + 1)]
