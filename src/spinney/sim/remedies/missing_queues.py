"""The lever that creates a queue which a gang names, or which a parent of its queue is, and which does not exist."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from spinney.api import volcano
from spinney.api.kai import Queue, QueueResource, QueueResources, QueueSpec
from spinney.api.meta import ObjectMeta
from spinney.api.struct import to_json
from spinney.explain.amounts import counted
from spinney.sim.remedies.lever import Lever
from spinney.sim.remedies.situation import Situation

_UNLIMITED = -1


@dataclass(frozen=True)
class _NewQueue:
    """A queue as it could be created: without a limit, below another queue or at the top."""

    name: str
    parent: str | None
    quota: Mapping[str, int]

    @property
    def manifest(self) -> Queue:
        """Return the object to create."""
        shares = {
            resource: QueueResource(quota=quota, over_quota_weight=1, limit=_UNLIMITED)
            for resource, quota in self.quota.items()
        }
        spec = QueueSpec(parent_queue=self.parent, resources=QueueResources(**shares))
        return Queue(metadata=ObjectMeta(name=self.name), spec=spec)

    @property
    def text(self) -> str:
        """Return what to do."""
        below = f" below queue {self.parent}" if self.parent else ""
        quota = f"a quota of {counted(self.quota['gpu'], 'GPU')}" if any(self.quota.values()) else "no quota"
        return f"create queue {self.name}{below}, with {quota} and no limit"

    @property
    def command(self) -> str:
        """Return the command that does it."""
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
    seen: set[str] = set()
    while name and name not in seen:
        if name not in queues:
            return name
        seen.add(name)
        name = queues[name].spec.parent_queue or ""
    return None
