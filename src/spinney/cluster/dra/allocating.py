"""Which devices of a node meet requests, all of them together.

A depth-first search in the order of requests, options and devices, as kube-scheduler searches. Where devices are alike
the first try succeeds; constraints between devices, counters that partitions draw from, and requests that compete for
the same devices make it turn back. A search that turns back too often gives up: the node then counts as one that cannot
meet the requests.

A request with administrative access looks on: it is given devices also if they are in use, and takes them from no other
request.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from spinney.api.resource_claims import DeviceConstraint
from spinney.cluster.dra.catalogue import CounterKey, DeviceCatalogue, PublishedDevice
from spinney.cluster.dra.requests import ClaimDemand, DeviceOptions, Option

STEPS = 10_000
"""So many devices are tried for one pod on one node."""


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


def allocate(
    catalogue: DeviceCatalogue, node: str, asks: Sequence[ClaimDemand], taken: Container[PublishedDevice]
) -> list[tuple[GivenDevice, ...]] | None:
    """Return the devices of a node for each of several claims, or None if they cannot all be met."""
    wanted = [(number, request) for number, ask in enumerate(asks) for request in ask.requests]
    search = _Search(catalogue, node, asks, taken)
    if not search.meet(wanted):
        return None
    return [tuple(given for number, given in search.given if number == position) for position in range(len(asks))]


def is_within_counters(
    catalogue: DeviceCatalogue, node: str, devices: Iterable[PublishedDevice], taken: Container[PublishedDevice]
) -> bool:
    """Tell whether the counters of a node still hold what ``devices`` draw beside those that are taken."""
    left = _left(catalogue, node, taken)
    for device in devices:
        _draw(left, catalogue, device)
    return all(amount >= 0 for amount in left.values())


class _Course(NamedTuple):
    """An option being met for a claim: from which devices, and what comes after."""

    claim: int
    option: Option
    devices: Sequence[PublishedDevice]
    then: Callable[[], bool]


class _Search:
    """One search. Mutable: it gives devices and takes them back."""

    def __init__(
        self, catalogue: DeviceCatalogue, node: str, asks: Sequence[ClaimDemand], taken: Container[PublishedDevice]
    ) -> None:
        self.given: list[tuple[int, GivenDevice]] = []
        self._catalogue = catalogue
        self._node = node
        self._asks = asks
        self._taken = taken
        self._mine: set[PublishedDevice] = set()
        self._left = _left(catalogue, node, taken)
        self._steps = STEPS

    def meet(self, wanted: Sequence[tuple[int, DeviceOptions]]) -> bool:
        if not wanted:
            return True
        (claim, request), rest = wanted[0], wanted[1:]
        return any(self._meet_option(claim, option, lambda: self.meet(rest)) for option in request.options)

    def _meet_option(self, claim: int, option: Option, then: Callable[[], bool]) -> bool:
        offered = self._catalogue.offered(option, self._node)
        if option.admin:
            count = len(offered) if option.count is None else option.count
            return bool(offered) and self._give(_Course(claim, option, offered, then), count)
        if option.count is None:
            # All of them or nothing: one that is held already rules the option out.
            if not offered or any(device in self._taken or device in self._mine for device in offered):
                return False
            return self._give(_Course(claim, option, offered, then), len(offered))
        free = [device for device in offered if device not in self._taken]
        return self._give(_Course(claim, option, free, then), option.count)

    def _give(self, course: "_Course", missing: int, start: int = 0) -> bool:
        """Give ``missing`` more devices, from ``start`` on, and go on."""
        if missing == 0:
            return course.then()
        for position in range(start, len(course.devices) - missing + 1):
            device, admin = course.devices[position], course.option.admin
            if self._steps <= 0 or not (admin or self._is_free(device)):
                continue
            self._steps -= 1
            self.given.append((course.claim, GivenDevice(course.option.request, *device, admin=admin)))
            if not admin:
                self._mine.add(device)
                _draw(self._left, self._catalogue, device)
            if self._holds(course.claim) and self._give(course, missing - 1, position + 1):
                return True
            self.given.pop()
            if not admin:
                self._mine.discard(device)
                _draw(self._left, self._catalogue, device, -1)
        return False

    def _is_free(self, device: PublishedDevice) -> bool:
        """Tell whether this search has not given a device away yet, and its counters still hold what it draws."""
        drawn = self._catalogue.drawing.get(device, {})
        return device not in self._mine and all(self._left[key] >= amount for key, amount in drawn.items())

    def _holds(self, claim: int) -> bool:
        """Tell whether the device given last agrees with those before it."""
        newest = self.given[-1][1]
        return all(self._agrees(claim, constraint, newest) for constraint in self._asks[claim].constraints)

    def _agrees(self, claim: int, constraint: DeviceConstraint, newest: GivenDevice) -> bool:
        if not _concerns(constraint, newest.request):
            return True
        name = constraint.match_attribute or constraint.distinct_attribute
        if not name:
            return False  # of a kind that is not known here, so nothing can be promised
        value = self._catalogue.attribute(newest.published, name)
        if value is None:
            return False
        others = [self._catalogue.attribute(each.published, name) for each in self._others(claim, constraint)]
        if constraint.match_attribute:
            return all(other == value for other in others)
        return value not in others

    def _others(self, claim: int, constraint: DeviceConstraint) -> Iterator[GivenDevice]:
        for number, given in self.given[:-1]:
            if number == claim and _concerns(constraint, given.request):
                yield given


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
