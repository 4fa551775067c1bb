"""What jobs of a replay claim: each claim is there from when it came until neither its cluster nor a job has it.

A job may wait longer than it did, and be evicted and begin anew; so what becomes of its claims in the recording waits
until it has ended.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from spinney.api.resource_claims import ResourceClaim
from spinney.kube.keys import Key, key_of
from spinney.scheduler.framework.results import Binding
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.replay.trace import ClusterChange, Job
from spinney.sim.whatif.claims import give_up_devices

_Named = tuple[type[Any], Key]
CLAIMS: Final = (ResourceClaim,)


class PlayedClaims:
    """The claims of a replay. Mutable."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._there: set[_Named] = set()
        self._users: Counter[_Named] = Counter()
        """How many jobs that have come and not ended name a claim."""
        self._later: dict[_Named, ClusterChange] = {}
        inventory.cluster.subscribe(partial(give_up_devices, inventory.claims))

    def change(self, change: ClusterChange) -> None:
        """Have a claim come, change or go; one that a job names stays as it is until that has ended."""
        name = type(change.found), key_of(change.found)
        if name in self._there and self._users[name]:
            self._later[name] = change
        else:
            self._carry_out(name, change)

    def enter(self, job: Job) -> None:
        """Count a job that comes."""
        self._users.update(_names(job))

    def leave(self, job: Job) -> None:
        """Count a job that has ended, whose pods are gone."""
        for name in _names(job):
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                if (change := self._later.pop(name, None)) is not None:
                    self._carry_out(name, change)

    def bind(self, bind: Binding, uid: str) -> None:
        """Give a pod the devices it was bound with."""
        for key, devices in bind.claims.items():
            self._inventory.claims.assign(key, bind.node, devices, uid)

    def _carry_out(self, name: _Named, change: ClusterChange) -> None:
        if change.gone:
            self._there.discard(name)
            self._inventory.delete(change.found)
        else:
            self._there.add(name)
            self._inventory.apply(change.found)


def _names(job: Job) -> Iterator[_Named]:
    """Yield the claims of a job, each once."""
    recorded = job.recorded
    if recorded is not None:
        keys = (key for place in range(len(recorded.pods)) for key in recorded.claims_of(place))
        yield from dict.fromkeys((ResourceClaim, key) for key in keys)
