"""Whether jobs of a replay have the devices they claim, and nobody else has them: from the trace and what happened.

Looked at are how many devices each request got, that a driver publishes them on that node then, and that no two claims
hold one. Whether a device is of the kind that was asked for (selectors, attributes, counters) is not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from spinney.api.resource_claims import ALL_DEVICES, ResourceClaim, ResourceSlice
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.dra.catalogue import PublishedDevice
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.trace import ClusterChange, Job


class ClaimRules:
    """Devices and claims as they are at a moment. Mutable: it is moved on through the changes of a trace."""

    def __init__(self, changes: Sequence[ClusterChange]) -> None:
        self._changes = [each for each in changes if isinstance(each.found, ResourceClaim | ResourceSlice)]
        self._passed = 0
        self._asked: dict[Key, ResourceClaim] = {}
        """Claims as they came last; one that a job names stays as it is until that has ended."""
        self._named: Counter[Key] = Counter()
        """How many jobs that have come and not ended name a claim."""
        self._later: dict[Key, ClusterChange] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._on: dict[PublishedDevice, dict[str, str]] = {}
        """The node of each device that is published, by the slices that have it: an old one may still be there."""
        self._holder: dict[PublishedDevice, Key] = {}
        self._held: dict[Key, set[PublishedDevice]] = {}
        """The same the other way round."""
        self._users: dict[Key, set[int]] = {}

    def see(self, job: Job, event: JobHappening) -> None:
        """Take in that a job comes or ends, if it does."""
        recorded = job.recorded
        if recorded is None or not any(pod.claims for pod in recorded.pods):
            return
        self._move_to(event.at)
        named = {key for place in range(len(recorded.pods)) for key in recorded.claims_of(place)}
        if event.what == "submitted":
            self._named.update(named)
        elif event.what in {"ended", "forgotten"}:
            self._named.subtract(named)
            for key in [key for key in named if key in self._later and self._named[key] <= 0]:
                self._change(key, self._later.pop(key))

    def started(self, job: Job, event: JobHappening, *, there_before: bool) -> Iterator[str]:
        """Take in that a job starts, and yield what is wrong with its devices; it may have been ``there_before``."""
        if job.recorded is None:
            return
        self._move_to(event.at)
        for place, node in enumerate(event.nodes[: job.pods]):
            given = event.claims[place] if event.claims else {}
            for key in job.recorded.claims_of(place):
                devices = given.get(key, ())
                shared = bool(self._users.get(key))
                self._users.setdefault(key, set()).add(event.job)
                if not there_before and not shared:
                    yield from self._unmet(key, devices)
                    yield from self._elsewhere(key, devices, node)
                for device in (each.published for each in devices if not each.admin):
                    holder = self._holder.setdefault(device, key)
                    if holder == key:
                        self._held.setdefault(key, set()).add(device)
                    else:
                        yield f"claim {key} has device {device.name} of {device.pool}, which claim {holder} has"

    def left(self, job: Job, event: JobHappening) -> None:
        """Take in that a job gives up what it has; the last one gives up the devices of a claim."""
        if job.recorded is None:
            return
        for key in (key for place in range(job.pods) for key in job.recorded.claims_of(place)):
            users = self._users.get(key, set())
            users.discard(event.job)
            if not users:
                self._users.pop(key, None)
                for device in self._held.pop(key, ()):
                    del self._holder[device]

    def _unmet(self, key: Key, devices: Sequence[GivenDevice]) -> Iterator[str]:
        claim = self._asked.get(key)
        for request in claim.spec.devices.requests if claim is not None else ():
            got = sum(each.request.partition("/")[0] == request.name for each in devices)
            exactly = request.exactly
            if exactly is not None and exactly.allocation_mode != ALL_DEVICES:
                if got != (wanted := exactly.count or 1):
                    yield f"claim {key} has {got} devices for request {request.name}, which asks for {wanted}"
            elif not got:
                yield f"claim {key} has no devices for request {request.name}"

    def _elsewhere(self, key: Key, devices: Sequence[GivenDevice], node: str) -> Iterator[str]:
        for each in devices:
            if node not in self._on.get(each.published, {}).values():
                yield f"claim {key} has device {each.name} of {each.pool}, which {node} does not offer then"

    def _move_to(self, moment: float) -> None:
        while self._passed < len(self._changes) and self._changes[self._passed].at <= moment:
            change = self._changes[self._passed]
            self._passed += 1
            if isinstance(change.found, ResourceClaim):
                self._change(key_of(change.found), change)
            elif isinstance(change.found, ResourceSlice):
                self._publish(change.found, gone=change.gone)

    def _change(self, key: Key, change: ClusterChange) -> None:
        if key in self._asked and self._named[key] > 0:
            self._later[key] = change
        elif change.gone:
            self._asked.pop(key, None)
        elif isinstance(change.found, ResourceClaim):
            self._asked[key] = change.found

    def _publish(self, found: ResourceSlice, *, gone: bool) -> None:
        name = found.metadata.name
        before = self._slices.pop(name, None)
        for device in _devices_of(before) if before is not None else ():
            self._on[device].pop(name, None)
        if not gone:
            self._slices[name] = found
            for device in _devices_of(found):
                self._on.setdefault(device, {})[name] = found.spec.node_name or ""


def _devices_of(found: ResourceSlice) -> Iterator[PublishedDevice]:
    spec = found.spec
    return (PublishedDevice(spec.driver, spec.pool.name, device.name) for device in spec.devices)
