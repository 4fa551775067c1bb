"""Which devices of a node meet requests, all of them together.

A depth-first search in the order of requests, options and devices, as kube-scheduler searches. Where devices are alike
the first try succeeds; constraints between devices, counters that partitions draw from, and requests that compete for
the same devices make it turn back. How much it looks at is bounded, on each node and on all nodes that are searched for
one pod (:class:`SearchBudget`): a node whose search is given up counts as one that cannot meet the requests. A search
that failed is not made again until devices of the node are taken or given back.

Requests that ask for the same, without constraints, are given devices in their order: what one could be given instead
of another, the other has been tried with.

A request with administrative access looks on: it is given devices also if they are in use, and takes them from no other
request.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from spinney.api.resource_claims import DeviceConstraint
from spinney.cluster.dra.catalogue import CounterKey, DeviceCatalogue, PublishedDevice
from spinney.cluster.dra.failures import UnmetDemand
from spinney.cluster.dra.requests import MOST_DEVICES, ClaimDemand, DeviceOptions, Option

STEPS: Final = 10_000
"""So many options, devices and constraints are looked at for one pod on one node."""
LEAST: Final = 1_000
"""So many may be looked at on every node; what goes beyond is :data:`STEPS` on all nodes together."""


class GivenDevice(NamedTuple):
    """A device and the request it was given to."""

    request: str
    driver: str
    pool: str
    name: str
    admin: bool = False
    """For administrative access, which takes the device from nobody."""

    @property
    def published(self) -> PublishedDevice:
        """Return the device."""
        return PublishedDevice(self.driver, self.pool, self.name)


class SearchBudget:
    """What may be looked at on the nodes for one pod beyond the least of each. Mutable: searches use it up."""

    def __init__(self) -> None:
        self._left = STEPS - LEAST
        self._failures: dict[str, UnmetDemand] | None = None

    def failures(self, catalogue: DeviceCatalogue, asks: Sequence[ClaimDemand]) -> dict[str, UnmetDemand]:
        """Return which nodes could not meet what the pod asks for."""
        if self._failures is None:
            self._failures = catalogue.failures.of(asks)
        return self._failures

    @property
    def steps(self) -> int:
        """Return how much may be looked at on the next node."""
        return LEAST + self._left

    def spend(self, steps: int) -> None:
        """Count what was looked at on a node."""
        self._left -= max(steps - LEAST, 0)


def allocate(
    catalogue: DeviceCatalogue,
    node: str,
    asks: Sequence[ClaimDemand],
    taken: Container[PublishedDevice],
    budget: SearchBudget | None = None,
) -> list[tuple[GivenDevice, ...]] | None:
    """Return the devices of a node for each of several claims, or None if they cannot all be met.

    Who asks about many nodes for one pod hands over the same ``budget`` for each of them.
    """
    budget = budget if budget is not None else SearchBudget()
    used = frozenset(device for device in catalogue.by_node.get(node, ()) if device in taken)
    failures, steps = budget.failures(catalogue, asks), budget.steps
    before = failures.get(node)
    if before is not None and before.taken == used and before.steps >= steps:
        return None
    search = _Search(catalogue, node, asks, used, steps)
    met = search.meet()
    budget.spend(steps - search.steps)
    if met:
        return [tuple(given) for given in search.given]
    failures[node] = UnmetDemand(catalogue.failures.shared(node, used), steps if search.steps <= 0 else inf)
    return None


def is_within_counters(
    catalogue: DeviceCatalogue, node: str, devices: Iterable[PublishedDevice], taken: Container[PublishedDevice]
) -> bool:
    """Tell whether the counters of a node still hold what ``devices`` draw beside those that are taken."""
    left = _left(catalogue, node, taken)
    for device in devices:
        _draw(left, catalogue, device)
    return all(amount >= 0 for amount in left.values())


class _Course(NamedTuple):
    """An option being met: for which request of which claim, and from which devices."""

    request: int
    claim: int
    option: Option
    devices: Sequence[PublishedDevice]


_Ways = Iterator["_Ways"]
"""Ways to go on, the preferred first, each of which leads to others. A device is taken while its way is followed."""
_MET: Final[_Ways] = iter(())
"""Where every request is met."""


class _Search:
    """One search. Mutable: it gives devices and takes them back."""

    def __init__(
        self,
        catalogue: DeviceCatalogue,
        node: str,
        asks: Sequence[ClaimDemand],
        taken: Container[PublishedDevice],
        steps: int,
    ) -> None:
        self.given: list[list[GivenDevice]] = [[] for _ in asks]
        """By claim."""
        self.steps = steps
        """What may still be looked at."""
        self._wanted = [(claim, request) for claim, ask in enumerate(asks) for request in ask.requests]
        self._like = _like_before([(asks[claim], request) for claim, request in self._wanted])
        self._first = [-1] * len(self._wanted)
        """The place of the first device each request is given."""
        self._catalogue = catalogue
        self._node = node
        self._asks = asks
        self._taken = taken
        self._offered: dict[Option, Sequence[PublishedDevice]] = {}
        self._mine: set[PublishedDevice] = set()
        self._left = _left(catalogue, node, taken)

    def meet(self) -> bool:
        """Give devices to every request; tell whether that was possible. It is as deep as there are devices to give."""
        path = [self._options(0)]
        while path and self.steps > 0:
            further = next(path[-1], None)
            if further is _MET:
                return True
            if further is None:
                path.pop()
            else:
                path.append(further)
        return False

    def _options(self, number: int) -> _Ways:
        """Return the ways to meet a request and those after it."""
        if number == len(self._wanted):
            yield _MET
            return
        claim, request = self._wanted[number]
        for option in request.options:
            self.steps -= 1
            devices = self._devices_for(option)
            count = len(devices) if option.count is None else option.count
            if devices and len(self.given[claim]) + count <= MOST_DEVICES:
                like = self._like[number]
                start = self._first[like] + 1 if like is not None else 0
                yield self._ways(_Course(number, claim, option, devices), count, start, first=True)

    def _devices_for(self, option: Option) -> Sequence[PublishedDevice]:
        """Return the devices that an option may be met with; all of them or none where it asks for all."""
        devices = self._offered.get(option)
        if devices is None:
            devices = self._catalogue.offered(option, self._node)
            if not option.admin:
                free = [device for device in devices if device not in self._taken]
                devices = free if option.count is not None or len(free) == len(devices) else ()
            self._offered[option] = devices
        if option.count is None and not option.admin and not self._mine.isdisjoint(devices):
            return ()
        return devices

    def _ways(self, course: _Course, missing: int, start: int = 0, *, first: bool = False) -> _Ways:
        """Return the ways to give ``missing`` more devices, from ``start`` on, and to meet the requests after it."""
        if missing == 0:
            yield self._options(course.request + 1)
            return
        given, admin = self.given[course.claim], course.option.admin
        for position in range(start, len(course.devices) - missing + 1):
            self.steps -= 1
            device = course.devices[position]
            if first:
                self._first[course.request] = position
            if self.steps <= 0 or not (admin or self._is_free(device)):
                continue
            given.append(GivenDevice(course.option.request, *device, admin=admin))
            if not admin:
                self._mine.add(device)
                _draw(self._left, self._catalogue, device)
            if self._holds(course.claim):
                yield self._ways(course, missing - 1, position + 1)
            given.pop()
            if not admin:
                self._mine.discard(device)
                _draw(self._left, self._catalogue, device, -1)

    def _is_free(self, device: PublishedDevice) -> bool:
        """Tell whether this search has not given a device away yet, and its counters still hold what it draws."""
        drawn = self._catalogue.drawing.get(device, {})
        return device not in self._mine and all(self._left[key] >= amount for key, amount in drawn.items())

    def _holds(self, claim: int) -> bool:
        """Tell whether the device given last agrees with those before it."""
        *others, newest = self.given[claim]
        return all(self._agrees(constraint, newest, others) for constraint in self._asks[claim].constraints)

    def _agrees(self, constraint: DeviceConstraint, newest: GivenDevice, others: Sequence[GivenDevice]) -> bool:
        self.steps -= 1
        if not _concerns(constraint, newest.request):
            return True
        name = constraint.match_attribute or constraint.distinct_attribute
        if not name:
            return False  # of a kind that is not known here, so nothing can be promised
        value = self._catalogue.attribute(newest.published, name)
        if value is None:
            return False
        self.steps -= len(others)
        concerned = (each.published for each in others if _concerns(constraint, each.request))
        values = (self._catalogue.attribute(each, name) for each in concerned)
        if constraint.match_attribute:
            return all(other == value for other in values)
        return value not in values


def _like_before(wanted: Sequence[tuple[ClaimDemand, DeviceOptions]]) -> list[int | None]:
    """Return for each request the last one before it that any device could be exchanged with."""
    last: dict[tuple[object, ...], int] = {}
    found: list[int | None] = []
    for number, (ask, request) in enumerate(wanted):
        option = request.options[0] if len(request.options) == 1 else None
        if ask.constraints or option is None or option.count is None or option.admin:
            found.append(None)
            continue
        sort = (option.device_class, option.count, option.selectors, option.tolerations)
        found.append(last.get(sort))
        last[sort] = number
    return found


def _left(catalogue: DeviceCatalogue, node: str, taken: Container[PublishedDevice]) -> dict[CounterKey, int]:
    """Return what is left of the counters that devices of a node draw from."""
    if not catalogue.drawing:
        return {}
    left = dict(catalogue.counters)
    for device in catalogue.by_node.get(node, ()):
        if device in taken:
            _draw(left, catalogue, device)
    return left


def _draw(left: dict[CounterKey, int], catalogue: DeviceCatalogue, device: PublishedDevice, times: int = 1) -> None:
    """Count what a device draws from counters."""
    for key, amount in catalogue.drawing.get(device, {}).items():
        left[key] = left.get(key, 0) - times * amount


def _concerns(constraint: DeviceConstraint, request: str) -> bool:
    named = constraint.requests
    return not named or request in named or request.partition("/")[0] in named
