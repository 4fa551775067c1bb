"""Levers over queues: create one, raise limits or quotas of the gang's queue and its parents, or use another queue."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Final, Literal, NamedTuple

from spinney.api import kai, volcano
from spinney.api.kai import QUEUE, Queue, QueueResource, QueueResources, QueueSpec
from spinney.api.labels import GROUPED, KAI_QUEUE
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON, changed, to_json
from spinney.cluster.statuses import ACTIVE_ALLOCATED, WAITING, PodStatus
from spinney.explain.amounts import counted, listed
from spinney.gangs.sources.volcano import SOURCE as VOLCANO
from spinney.gangs.tree import GangKey
from spinney.sim.remedies.change import Lever
from spinney.sim.remedies.situation import Situation
from spinney.sim.snapshots.snapshot import ClusterSnapshot

BoundName = Literal["limit", "quota"]
_RESOURCES: Final = ("gpu", "cpu", "memory")
_WORDS: Final = {"gpu": "GPUs", "cpu": "millicores of CPU", "memory": "MB of memory"}
_STEPS: Final = 64
"""Into how many steps the most that could be needed is divided; up to that many GPUs are counted singly."""
_OTHERS: Final = 3
"""How many other queues are tried."""


@dataclass(frozen=True)
class _Bound:
    """A finite bound of one queue, and by how much it could have to be raised."""

    queue: str
    resource: str
    which: BoundName
    amount: float
    most: float
    missing: float
    """By how much it is too low, by arithmetic: what its queue holds and the gang asks for, less the bound."""

    @property
    def steps(self) -> list[float]:
        """Return by how much it may be raised, in whole units, least first."""
        evenly = {float(-(-self.most * part // _STEPS)) for part in range(1, _STEPS + 1)}
        return sorted(evenly | {float(-(-self.missing // 1))} if self.missing > 0 else evenly)

    def on(self, queue: Queue, more: float) -> Queue:
        """Return ``queue``, with the bound raised by ``more`` if it is its own."""
        if queue.metadata.name != self.queue:
            return queue
        resources = queue.spec.resources or QueueResources()
        raised: JSON = {self.which: self.amount + more}
        return changed(queue, spec={"resources": changed(resources, **{self.resource: raised})})

    def patch(self, more: float) -> JSON:
        """Return the merge patch that raises the bound by ``more``."""
        raised = self.amount + more
        return {"spec": {"resources": {self.resource: {self.which: int(raised) if raised.is_integer() else raised}}}}


class _Raise(NamedTuple):
    """A bound, and by how much it is raised."""

    bound: _Bound
    more: float


_UNLIMITED = -1


@dataclass(frozen=True)
class _NewQueue:
    """A queue as it could be created: without a limit, below another queue or at the top."""

    name: str
    parent: str | None
    quota: Mapping[str, int]

    @property
    def manifest(self) -> Queue:
        shares = {
            resource: QueueResource(quota=quota, over_quota_weight=1, limit=_UNLIMITED)
            for resource, quota in self.quota.items()
        }
        spec = QueueSpec(parent_queue=self.parent, resources=QueueResources(**shares))
        return Queue(metadata=ObjectMeta(name=self.name), spec=spec)

    @property
    def text(self) -> str:
        below = f" below queue {self.parent}" if self.parent else ""
        quota = f"a quota of {counted(self.quota['gpu'], 'GPU')}" if any(self.quota.values()) else "no quota"
        return f"create queue {self.name}{below}, with {quota} and no limit"

    @property
    def command(self) -> str:
        return f"echo '{json.dumps(to_json(self.manifest), separators=(',', ':'))}' | kubectl apply -f -"


def missing_queue_lever(
    situation: Situation, queues: Mapping[str, Queue], named: str, asked: Mapping[str, float]
) -> Iterator[Lever[_NewQueue]]:
    """Yield the lever that creates the queue that is missing, if one is; ``asked`` is what the gang asks for.

    The least is a queue without a quota where most queues are; then one with a quota for the gang; then at the top.
    """
    name = _missing(queues, named)
    if name is None or isinstance(situation.definition, volcano.PodGroup):
        return
    none, enough = dict.fromkeys(asked, 0), {resource: ceil(amount) for resource, amount in asked.items()}
    parents = Counter(each.spec.parent_queue for each in queues.values() if each.spec.parent_queue in queues)
    usual = max(sorted(filter(None, parents)), key=lambda each: parents[each], default=None)
    options = [_NewQueue(name, usual, none), _NewQueue(name, usual, enough)]
    if usual is not None:
        options.append(_NewQueue(name, None, enough))
    yield Lever(
        name="create queue",
        elements=options,
        apply=lambda snapshot, picked: snapshot.with_objects([picked[-1].manifest]),
        text=lambda picked: picked[-1].text,
        command=lambda picked: picked[-1].command,
        ordered=True,
        likely=1,
    )


def _missing(queues: Mapping[str, Queue], name: str) -> str | None:
    """Return the first of a queue and its parents that does not exist; ``None`` if all do."""
    chain = list(_chain(queues, name))
    last = chain[-1].spec.parent_queue if chain else name
    return last if last and last not in queues else None


def queue_levers(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield the levers over queues that could matter to the gang."""
    queues = {each.metadata.name: each for each in situation.snapshot.of(QUEUE, Queue)}
    gang = situation.gang
    if not queues or gang is None:
        return
    asked = _total(situation, WAITING, {gang.queue}, only=situation.key)
    yield from missing_queue_lever(situation, queues, gang.queue, asked)
    chain = list(_chain(queues, gang.queue))
    for which in ("limit", "quota"):
        yield from _raising(situation, which, chain, asked)
    yield from _elsewhere(situation, queues, gang.queue)


def _raising(
    situation: Situation, which: BoundName, chain: Sequence[Queue], own: Mapping[str, float]
) -> Iterator[Lever[_Raise]]:
    """Yield the lever that raises bounds of the chain: those that are needed, by as much as is needed."""
    gang = situation.gang
    if gang is None or not chain:
        return
    most = _total(situation, WAITING, {gang.queue})
    bounds = []
    for depth, queue in enumerate(chain):
        held = _total(situation, ACTIVE_ALLOCATED, {each.metadata.name for each in chain[: depth + 1]})
        bounds += [
            _Bound(
                queue.metadata.name, resource, which, amount, most[resource], held[resource] + own[resource] - amount
            )
            for resource in _RESOURCES
            if most[resource] and (amount := _amount(queue, resource, which)) >= 0
        ]
    if not bounds:
        return

    yield Lever(
        name=which,
        elements=[_Raise(bound, bound.most) for bound in bounds],
        apply=_raised,
        text=_described,
        command=_commands,
        refine=lambda picked: [_amount_lever(each.bound) for each in picked],
    )


def _amount_lever(bound: _Bound) -> Lever[_Raise]:
    """Return the lever that raises one bound step by step."""
    steps = bound.steps
    return Lever(
        name=bound.which,
        elements=[_Raise(bound, more) for more in steps],
        apply=lambda snapshot, picked: _raised(snapshot, picked[-1:]),
        text=lambda picked: _described(picked[-1:]),
        command=lambda picked: _commands(picked[-1:]),
        ordered=True,
        likely=bisect_left(steps, bound.missing) + 1 if bound.missing > 0 else 1,
    )


def _raised(snapshot: ClusterSnapshot, bounds: Sequence[_Raise]) -> ClusterSnapshot:
    raised = []
    for queue in snapshot.of(QUEUE, Queue):
        higher = queue
        for bound, more in bounds:
            higher = bound.on(higher, more)
        if higher is not queue:
            raised.append(higher)
    return snapshot.with_objects(raised)


def _described(bounds: Sequence[_Raise]) -> str:
    parts = [
        f"queue {bound.queue} from {bound.amount:g} to {bound.amount + more:g} {_WORDS[bound.resource]}"
        for bound, more in bounds
    ]
    return f"raise the {bounds[0].bound.which} of {listed(parts)}"


def _commands(bounds: Sequence[_Raise]) -> str:
    return "\n".join(
        f"kubectl patch queue.v2.scheduling.run.ai {bound.queue} --type merge -p "
        f"'{json.dumps(bound.patch(more), separators=(',', ':'))}'"
        for bound, more in bounds
    )


def _elsewhere(situation: Situation, queues: dict[str, Queue], current: str) -> Iterator[Lever[str]]:
    gang = situation.pod_gang
    if gang is not None and GROUPED in gang.metadata.labels and any(record.node for record in situation.members):
        return  # the grouper keeps a gang in the queue where it has begun
    parents = {each.spec.parent_queue for each in queues.values()}
    for name in [each for each in sorted(queues) if each not in parents and each != current][:_OTHERS]:
        yield Lever(
            name="queue",
            elements=[name],
            apply=partial(_moved, situation),
            text=lambda picked: f"submit it to queue {picked[0]}",
        )


def _moved(situation: Situation, snapshot: ClusterSnapshot, queues: Sequence[str]) -> ClusterSnapshot:
    (name,) = queues

    def moved(found: Any) -> Any:
        if isinstance(found, PodGang) and situation.key.source == VOLCANO:
            return found  # Volcano's queue is named by an annotation
        if isinstance(found, kai.PodGroup | volcano.PodGroup):
            return changed(found, spec={"queue": name})
        return changed(found, metadata={"labels": {**found.metadata.labels, KAI_QUEUE: name}})

    if situation.definition is None:
        return snapshot.with_objects(moved(record.pod) for record in situation.members)
    return situation.redefined(snapshot, moved)


def _chain(queues: Mapping[str, Queue], name: str) -> Iterator[Queue]:
    """Yield a queue and its parents."""
    seen: set[str] = set()
    while name in queues and name not in seen:
        seen.add(name)
        yield queues[name]
        name = queues[name].spec.parent_queue or ""


def _amount(queue: Queue, resource: str, which: BoundName) -> float:
    resources = queue.spec.resources or QueueResources()
    found = getattr(getattr(resources, resource), which)
    return 0.0 if found is None else float(found)


def _total(
    situation: Situation, statuses: Collection[PodStatus], queues: Collection[str], only: GangKey | None = None
) -> dict[str, float]:
    """Return what pods of some statuses in some queues, or of one gang there, ask for, in the units of queues."""
    simulation = situation.simulation
    names = list(simulation.inventory.cluster.ledger.table.axis)
    total = dict.fromkeys(_RESOURCES, 0.0)
    for record in simulation.inventory.cluster.pods():
        key = simulation.gang_of(record) if record.status in statuses else None
        owner = simulation.gang(key) if key is not None and only in (None, key) else None
        if owner is None or owner.queue not in queues:
            continue
        amounts = dict(zip(names, record.request.requests.tolist(), strict=False))
        total["gpu"] += record.request.gpus
        total["cpu"] += amounts.get("cpu", 0)
        total["memory"] += amounts.get("memory", 0) / 10**6
    return total
