"""The search: pull levers on copies of the snapshot, keep what lets the gang start, make it as small as it can be."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from spinney.explain.reasons import Explanation
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.remedies.at_sources import at_sources, with_commands
from spinney.sim.remedies.change import Chosen, Lever, Pull, Remedy, RemedyPrice
from spinney.sim.remedies.node_groups import AddableNodes
from spinney.sim.remedies.nodes import added_node_levers, node_levers
from spinney.sim.remedies.others import end_lever, move_lever, wait_lever
from spinney.sim.remedies.queues import queue_levers
from spinney.sim.remedies.situation import Situation
from spinney.sim.remedies.trial import Fate, RemedyTrial
from spinney.sim.remedies.workloads import gang_levers, minimum_lever
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.simulation import Simulation

_PAIRS = 24
"""How many pairs of levers are tried where none is enough alone."""
_DROPS = 12
"""How often leaving out some elements of a set is tried."""
_MANY = 64
"""Of larger sets only halves and quarters are left out: one workload less of hundreds is no better advice."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the search found: remedies, the cheapest first."""

    remedies: tuple[Remedy, ...] = ()
    starts_anyway: bool = False
    """The gang starts without any change, once the schedulers have settled."""
    tried: int = 0
    """How many clusters were scheduled: the one as it is, and changed ones."""
    complete: bool = True
    """False: the search ended early, because its time was over."""


@dataclass(kw_only=True)
class _Search:
    """Counts trials and remembers what was tried. Mutable."""

    trial: RemedyTrial
    may_go_on: Callable[[float], bool] = lambda _: True
    say: Callable[[str], None] = lambda _: None
    base: Fate | None = None
    tried: int = 0
    longest: float = 0.0
    """Seconds that the longest attempt took."""
    complete: bool = True
    _known: dict[tuple[tuple[int, Chosen], ...], Fate | None] = field(default_factory=dict, init=False)

    def fate(self, pulled: Sequence[Pull]) -> Fate | None:
        """Return what becomes of the gang with these levers pulled; ``None`` once the time is over."""
        name = tuple((id(lever), chosen) for lever, chosen in pulled)
        if name not in self._known:
            if not self.may_go_on(self.longest):
                self.complete = False
                return None
            self.tried += 1
            began = self.trial.runtime.clock.monotonic()
            names = dict.fromkeys(lever.name for lever, _ in pulled)
            self.say(f"trying changes: {', and '.join(names) or 'none'} ({self.tried} tried)")
            restarted = [gang for pull in pulled for gang in pull.lever.restarts(pull.picked)]
            self._known[name] = self.trial.run(self.changed(pulled), restarted)
            self.longest = max(self.longest, self.trial.runtime.clock.monotonic() - began)
        return self._known[name]

    def changed(self, pulled: Sequence[Pull]) -> ClusterSnapshot:
        """Return the cluster with these levers pulled."""
        snapshot = self.trial.snapshot
        for pull in pulled:
            snapshot = pull.lever.apply(snapshot, pull.picked)
        return snapshot

    def holds(self, pulled: Sequence[Pull]) -> bool:
        """Tell whether the gang starts with these levers pulled."""
        found = self.fate(pulled)
        return found is not None and found.starts


def remedies(
    snapshot: ClusterSnapshot,
    gang: GangKey,
    config: SchedulerConfig | None,
    *,
    runtime: Runtime,
    registry: PluginRegistry | None = None,
    explanation: Explanation | None = None,
    base: Fate | None = None,
    node_groups: Sequence[AddableNodes] = (),
    best: int = 3,
    may_go_on: Callable[[float], bool] = lambda _: True,
    say: Callable[[str], None] = lambda _: None,
) -> Findings:
    """Return changes after which ``gang`` starts, each tried; ``may_go_on`` may end the search early.

    It is asked before each attempt, with the seconds that the longest took. ``base`` is what becomes of the gang
    without any change, where that is known, ``node_groups`` are the kinds of nodes that could be added, ``say`` is told
    what is being tried.
    """
    trial = RemedyTrial(gang=gang, snapshot=snapshot, config=config, runtime=runtime, registry=registry)
    search = _Search(trial=trial, may_go_on=may_go_on, say=say)
    if base is not None:
        search.base, search.tried = base, 1
    else:
        search.base = search.fate(())
    if search.base is not None and search.base.starts:
        if not search.base.waits:
            return Findings(starts_anyway=True, tried=search.tried)
        search = replace(search, trial=replace(trial, whole=True))
    levers = list(_levers(_situation(trial, explanation, node_groups)))
    found, not_enough = [], []
    for lever in levers:
        pulled = _enough(search, lever)
        if pulled is None:
            not_enough.append(lever)
        else:  # made small before the next is tried: one small change is better advice than two large ones
            found.append(_remedy(search, _smallest(search, [pulled])))
    if len(found) < best:
        found += _together(search, not_enough)
    ordered = sorted(found, key=lambda each: (len(each.changes), each.price.total))
    return Findings(remedies=tuple(_most_different(ordered, best)), tried=search.tried, complete=search.complete)


def _most_different(ordered: Sequence[Remedy], best: int) -> Sequence[Remedy]:
    """Return the ``best`` of all, each sort of change once before any comes again.

    To add one kind of node or another is one advice, and would leave no place for what needs no node.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    ranked = []
    for place, remedy in enumerate(ordered):
        sort = tuple(step.lever for step in remedy.changes)
        ranked.append((seen[sort], place))
        seen[sort] += 1
    return [ordered[place] for place in sorted(place for _, place in sorted(ranked)[:best])]


def nodes_to_add(
    snapshot: ClusterSnapshot,
    gang: GangKey,
    config: SchedulerConfig | None,
    node_groups: Sequence[AddableNodes],
    *,
    runtime: Runtime,
    registry: PluginRegistry | None = None,
    explanation: Explanation | None = None,
) -> Remedy | None:
    """Return the fewest nodes of one kind with which ``gang`` starts, tried; ``None`` if no kind has enough of them."""
    trial = RemedyTrial(gang=gang, snapshot=snapshot, config=config, runtime=runtime, registry=registry)
    search = _Search(trial=trial)
    levers = added_node_levers(_situation(trial, explanation, node_groups))
    enough = [pull for lever in levers if (pull := _enough(search, lever)) is not None]
    found = [_remedy(search, _smallest(search, [pulled])) for pulled in enough]
    return min(found, key=lambda each: each.price.total, default=None)


def _situation(trial: RemedyTrial, explanation: Explanation | None, node_groups: Sequence[AddableNodes]) -> Situation:
    simulation = Simulation(trial.snapshot, trial.config, runtime=trial.runtime, registry=trial.registry, tells=False)
    return Situation(
        simulation=simulation, key=trial.gang, explanation=explanation, node_groups=node_groups, snapshot=trial.snapshot
    )


def _levers(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield what could be done: what costs nobody anything first."""
    yield from node_levers(situation)
    yield from queue_levers(situation)
    yield from gang_levers(situation)
    yield from wait_lever(situation)
    yield from minimum_lever(situation)
    yield from added_node_levers(situation)
    yield from move_lever(situation)
    yield from end_lever(situation)


def _enough(search: _Search, lever: Lever[Any]) -> Pull | None:
    """Return how far to pull a lever so that the gang starts, not yet the least; ``None`` if no pull is enough."""
    for chosen in (lever.guess, lever.everything):
        if chosen is not None and search.holds([pull := Pull(lever, chosen)]):
            return pull
    return None


def _together(search: _Search, levers: Sequence[Lever[Any]]) -> list[Remedy]:
    """Return remedies of two levers; where no two are enough, one of as many as it takes."""
    if len(levers) < 2:
        return []
    found = []
    for pair in list(combinations(levers, 2))[:_PAIRS]:
        pulled = [Pull(lever, lever.everything) for lever in pair]
        if search.holds(pulled):
            found.append(_remedy(search, _smallest(search, pulled)))
    if found:
        return found
    pulled = [Pull(lever, lever.everything) for lever in levers]
    if not search.holds(pulled):
        return []
    for lever in levers:
        fewer = [each for each in pulled if each.lever is not lever]
        if search.holds(fewer):
            pulled = fewer
    return [_remedy(search, _smallest(search, pulled))]


def _smallest(search: _Search, pulled: list[Pull]) -> list[Pull]:
    """Return the same levers pulled as little as is enough, one lever after the other."""
    for position in range(len(pulled)):
        pulled[position] = _less(search, pulled, position)
    finer: list[Pull] = []
    for pull in pulled:
        refined = pull.lever.refine(pull.picked) if pull.lever.refine is not None else []
        finer += [Pull(each, each.everything) for each in refined] or [pull]
    if finer != pulled:
        guessed = [Pull(lever, lever.guess or chosen) for lever, chosen in finer]
        finer = guessed if search.holds(guessed) else finer
        if not search.holds(finer):
            return pulled  # the time is over, and this was tried
        for position in range(len(finer)):
            finer[position] = _less(search, finer, position)
    return finer


def _less(search: _Search, pulled: Sequence[Pull], position: int) -> Pull:
    """Return one of the levers pulled as little as is enough while the others stay."""
    lever, chosen = pulled[position]

    def enough(fewer: Chosen) -> bool:
        return search.holds([*pulled[:position], Pull(lever, fewer), *pulled[position + 1 :]])

    fewest = _prefix(chosen, enough, near=chosen == lever.guess)
    return Pull(lever, fewest if lever.ordered else _without_spares(fewest, enough))


def _prefix(chosen: Chosen, enough: Callable[[Chosen], bool], *, near: bool) -> Chosen:
    """Return the shortest beginning that is enough, found by halving: more is taken never to be less.

    ``near``: it is probably not much shorter than ``chosen``, so that steps back are taken first, each twice as long.
    """
    low, high, step = 1, len(chosen), 1
    while near and low < high:
        back = max(high - step, 1)
        if not enough(chosen[:back]):
            low, near = back + 1, False
        else:
            high, step = back, 2 * step
    while low < high:
        middle = (low + high) // 2
        if enough(chosen[:middle]):
            high = middle
        else:
            low = middle + 1
    return chosen[:high]


def _without_spares(chosen: Chosen, enough: Callable[[Chosen], bool]) -> Chosen:
    """Leave out elements that are not needed, in halves and then one by one."""
    size = len(chosen) // 2
    tries = 0
    least = max(len(chosen) // 4, 1) if len(chosen) > _MANY else 1
    while size >= least and tries < _DROPS:
        start = 0
        while start < len(chosen) and tries < _DROPS and len(chosen) > 1:
            fewer = chosen[:start] + chosen[start + size :]
            tries += 1
            if fewer and enough(fewer):
                chosen = fewer
            else:
                start += size
        size //= 2
    return chosen


def _remedy(search: _Search, pulled: Sequence[Pull]) -> Remedy:
    fate = search.fate(pulled)
    assert fate is not None, "it was tried before"
    prices = [pull.lever.price(pull.picked) for pull in pulled]
    before = search.base
    gained = set(fate.evicted) - set(before.evicted if before is not None else ())
    delayed = (before.started - fate.started) if before is not None else frozenset()
    price = RemedyPrice(
        nodes=sum(each.nodes for each in prices),
        gpus=sum(each.gpus for each in prices) + (fate.gpus if gained else 0),
        ended=tuple(name for each in prices for name in each.ended),
        moved=tuple(name for each in prices for name in each.moved),
        evicted=tuple(sorted(gained)),
        delayed=tuple(sorted(map(str, delayed))),
    )
    told = at_sources(search.trial.snapshot, search.changed([pull for pull in pulled if not pull.lever.waits]))
    steps = [pull.step for pull in pulled]
    return Remedy(
        changes=with_commands(steps, told.of_gangs, told.words),
        patches=told.of_gangs + told.others,
        price=price,
        smallest=search.complete,
    )
