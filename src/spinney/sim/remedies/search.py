"""The search: pull levers on copies of the snapshot, keep what lets the gang start, make it as small as it can be."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from spinney.explain import Explanation
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.remedies.at_sources import at_sources
from spinney.sim.remedies.change import Remedy, RemedyPrice
from spinney.sim.remedies.commands import with_commands
from spinney.sim.remedies.lever import Chosen, Lever
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
    snapshot: ClusterSnapshot
    may_go_on: Callable[[float], bool]
    say: Callable[[str], None] = lambda _: None
    base: Fate | None = None
    tried: int = 0
    longest: float = 0.0
    """Seconds that the longest attempt took."""
    complete: bool = True
    _known: dict[tuple[tuple[int, Chosen], ...], Fate | None] = field(default_factory=dict, init=False)

    def fate(self, pulled: Sequence[tuple[Lever, Chosen]]) -> Fate | None:
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
            restarted = [gang for lever, chosen in pulled for gang in lever.restarts(chosen)]
            self._known[name] = self.trial.run(self.changed(pulled), restarted)
            self.longest = max(self.longest, self.trial.runtime.clock.monotonic() - began)
        return self._known[name]

    def changed(self, pulled: Sequence[tuple[Lever, Chosen]]) -> ClusterSnapshot:
        """Return the cluster with these levers pulled."""
        snapshot = self.snapshot
        for lever, chosen in pulled:
            snapshot = lever.apply(snapshot, chosen)
        return snapshot

    def holds(self, pulled: Sequence[tuple[Lever, Chosen]]) -> bool:
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
    search = _Search(trial=trial, snapshot=snapshot, may_go_on=may_go_on, say=say)
    if base is not None:
        search.base, search.tried = base, 1
    else:
        search.base = search.fate(())
    if search.base is not None and search.base.starts:
        if not search.base.waits:
            return Findings(starts_anyway=True, tried=search.tried)
        search = replace(search, trial=replace(trial, whole=True))
    situation = Situation(
        snapshot=snapshot,
        simulation=Simulation(snapshot, config, runtime=runtime, registry=registry),
        key=gang,
        explanation=explanation,
        node_groups=node_groups,
    )
    levers = list(_levers(situation))
    alone = [(lever, chosen) for lever in levers if (chosen := _enough(search, lever)) is not None]
    found = [_remedy(search, _smallest(search, [pulled])) for pulled in alone]
    if len(found) < best:
        enough = [lever for lever, _ in alone]
        found += _together(search, [lever for lever in levers if lever not in enough])
    ordered = sorted(found, key=lambda each: (len(each.changes), each.price.total))
    return Findings(remedies=tuple(ordered[:best]), tried=search.tried, complete=search.complete)


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
    situation = Situation(
        snapshot=snapshot,
        simulation=Simulation(snapshot, config, runtime=runtime, registry=registry),
        key=gang,
        explanation=explanation,
        node_groups=node_groups,
    )
    trial = RemedyTrial(gang=gang, snapshot=snapshot, config=config, runtime=runtime, registry=registry)
    search = _Search(trial=trial, snapshot=snapshot, may_go_on=lambda _: True)
    levers = list(added_node_levers(situation)) if node_groups else []
    enough = [(lever, chosen) for lever in levers if (chosen := _enough(search, lever)) is not None]
    found = [_remedy(search, _smallest(search, [pulled])) for pulled in enough]
    return min(found, key=lambda each: each.price.total, default=None)


def _levers(situation: Situation) -> Iterator[Lever]:
    """Yield what could be done: what costs nobody anything first."""
    yield from node_levers(situation)
    yield from queue_levers(situation)
    yield from gang_levers(situation)
    yield from wait_lever(situation)
    yield from minimum_lever(situation)
    yield from added_node_levers(situation)
    yield from move_lever(situation)
    yield from end_lever(situation)


def _enough(search: _Search, lever: Lever) -> Chosen | None:
    """Return how far to pull a lever so that the gang starts, not yet the least; ``None`` if no pull is enough."""
    for chosen in (lever.guess, lever.everything):
        if chosen is not None and search.holds([(lever, chosen)]):
            return chosen
    return None


def _together(search: _Search, levers: Sequence[Lever]) -> list[Remedy]:
    """Return remedies of two levers; where no two are enough, one of as many as it takes."""
    if len(levers) < 2:
        return []
    found = []
    for pair in list(combinations(levers, 2))[:_PAIRS]:
        pulled = [(lever, lever.everything) for lever in pair]
        if search.holds(pulled):
            found.append(_remedy(search, _smallest(search, pulled)))
    if found:
        return found
    pulled = [(lever, lever.everything) for lever in levers]
    if not search.holds(pulled):
        return []
    for lever in levers:
        fewer = [each for each in pulled if each[0] is not lever]
        if search.holds(fewer):
            pulled = fewer
    return [_remedy(search, _smallest(search, pulled))]


def _smallest(search: _Search, pulled: list[tuple[Lever, Chosen]]) -> list[tuple[Lever, Chosen]]:
    """Return the same levers pulled as little as is enough, one lever after the other."""
    for position in range(len(pulled)):
        pulled[position] = _less(search, pulled, position)
    finer: list[tuple[Lever, Chosen]] = []
    for lever, chosen in pulled:
        refined = lever.refine(chosen) if lever.refine is not None else []
        finer += [(each, each.everything) for each in refined] or [(lever, chosen)]
    if finer != pulled:
        guessed = [(lever, lever.guess or chosen) for lever, chosen in finer]
        finer = guessed if search.holds(guessed) else finer
        if not search.holds(finer):
            return pulled  # the time is over, and this was tried
        for position in range(len(finer)):
            finer[position] = _less(search, finer, position)
    return finer


def _less(search: _Search, pulled: Sequence[tuple[Lever, Chosen]], position: int) -> tuple[Lever, Chosen]:
    """Return one of the levers pulled as little as is enough while the others stay."""
    lever, chosen = pulled[position]

    def enough(fewer: Chosen) -> bool:
        return search.holds([*pulled[:position], (lever, fewer), *pulled[position + 1 :]])

    fewest = _prefix(chosen, enough, near=chosen == lever.guess)
    return lever, fewest if lever.ordered else _without_spares(fewest, enough)


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


def _remedy(search: _Search, pulled: Sequence[tuple[Lever, Chosen]]) -> Remedy:
    fate = search.fate(pulled)
    assert fate is not None, "it was tried before"
    prices = [lever.price(chosen) for lever, chosen in pulled]
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
    made = [(lever, chosen) for lever, chosen in pulled if not lever.waits]
    told = at_sources(search.snapshot, search.changed(made))
    steps = [lever.describe(chosen) for lever, chosen in pulled]
    return Remedy(
        changes=with_commands(steps, told.of_gangs, told.words), patches=told.of_gangs + told.others, price=price
    )
