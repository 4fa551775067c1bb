"""What jobs of a replay claim, devices and volumes: a claim stays until neither its cluster nor a job has it any more.

A job may wait longer than it did, and be evicted and begin anew; so what becomes of its claims in the recording waits
until it has ended.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from spinney.api.resource_claims import ResourceClaim
from spinney.api.storage import PersistentVolumeClaim
from spinney.kube.keys import Key, key_of
from spinney.scheduler.framework.results import Binding
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.replay.trace import ClusterChange, Job
from spinney.sim.replay.volumes import PlayedVolumes
from spinney.sim.whatif.claims import give_up_devices

_Named = tuple[type[Any], Key]
CLAIMS: Final = (ResourceClaim, PersistentVolumeClaim)


class PlayedClaims:
    """The claims of a replay. Mutable."""

    def __init__(self, inventory: Inventory, volumes: PlayedVolumes) -> None:
        self._inventory = inventory
        self._volumes = volumes
        self._there: set[_Named] = set()
        self._users: Counter[_Named] = Counter()
        """How many jobs that have come and not ended name a claim."""
        self._later: dict[_Named, ClusterChange] = {}
        inventory.cluster.subscribe(partial(give_up_devices, inventory.claims))

    def change(self, change: ClusterChange) -> None:
        """Have a claim come, change or go; one that a job names stays as it is until that has ended.

        A claim that its cluster binds, and no pod, may become so at any time.
        """
        name = type(change.found), key_of(change.found)
        being_bound = isinstance(change.found, PersistentVolumeClaim) and change.found.bound and not change.gone
        if name in self._there and self._users[name] and not being_bound:
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

    def begin_anew(self, job: Job) -> None:
        """Have claims that were made for single pods of a job be made anew, too: with no volume."""
        recorded = job.recorded
        for pod in recorded.pods if recorded is not None else ():
            for use in pod.volumes:
                if use.ephemeral and recorded is not None:
                    self._volumes.give_back(Key(recorded.gang.namespace, use.name))

    def _carry_out(self, name: _Named, change: ClusterChange) -> None:
        self._later.pop(name, None)  # older than this
        if change.gone:
            self._there.discard(name)
        else:
            self._there.add(name)
        match change.found, change.gone:
            case PersistentVolumeClaim() as claim, False:
                self._volumes.put_claim(claim)
            case PersistentVolumeClaim() as claim, True:
                self._volumes.give_back(name[1])
                self._inventory.delete(claim)
            case found, False:
                self._inventory.apply(found)
            case found, True:
                self._inventory.delete(found)


def _names(job: Job) -> Iterator[_Named]:
    """Yield the claims of a job, each once."""
    recorded = job.recorded
    if recorded is not None:
        places = range(len(recorded.pods))
        yield from dict.fromkeys((ResourceClaim, key) for place in places for key in recorded.claims_of(place))
        yield from dict.fromkeys((PersistentVolumeClaim, key) for place in places for key in recorded.volumes_of(place))
