"""The devices that drivers publish, by node, and which of them match a request.

A pool counts with its newest generation, and only once all slices of that have arrived. Devices that belong to one node
are looked at. Partitions of a device draw from counters of their pool, and are offered with what each draws; devices
that need something that is not kept here (conditions to wait for at bind, counters nobody published) are offered to no
claim. The catalogue never changes; a new one is made when a slice or class does, so what matched is worked out once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from spinney.api.affinity import Toleration
from spinney.api.quantity import milli
from spinney.api.resource_claims import Device, DeviceClass, ResourceSlice
from spinney.api.struct import JSON
from spinney.cluster.dra.failures import UnmetDemands
from spinney.cluster.dra.requests import Option, is_class_of_gpus
from spinney.cluster.dra.selectors import UnusableSelector, compiled


class PublishedDevice(NamedTuple):
    """A device of a node, as its driver names it."""

    driver: str
    pool: str
    name: str


class CounterKey(NamedTuple):
    """A counter that devices of a pool draw from."""

    driver: str
    pool: str
    counter_set: str
    counter: str


class DeviceCatalogue:
    """Devices and classes at one moment."""

    def __init__(self, slices: Iterable[ResourceSlice] = (), classes: Mapping[str, DeviceClass] = {}) -> None:
        self._classes = dict(classes)
        self._facts: dict[PublishedDevice, Device] = {}
        self.by_node: dict[str, list[PublishedDevice]] = {}
        self._node_of: dict[tuple[str, str], str] = {}
        self.counters: dict[CounterKey, int] = {}
        """How much of each counter there is, in thousandths."""
        self.drawing: dict[PublishedDevice, dict[CounterKey, int]] = {}
        """What devices draw from counters when given out, in thousandths; absent for those that draw nothing."""
        for spec in (each.spec for each in _current(slices)):
            for each in spec.shared_counters:
                for name, counter in each.counters.items():
                    self.counters[CounterKey(spec.driver, spec.pool.name, each.name, name)] = milli(counter.value)
            if not spec.node_name:
                continue
            self._node_of[spec.driver, spec.pool.name] = spec.node_name
            mine = self.by_node.setdefault(spec.node_name, [])
            for device in spec.devices:
                published = PublishedDevice(spec.driver, spec.pool.name, device.name)
                self._facts[published] = device
                mine.append(published)
                if device.consumes_counters:
                    self.drawing[published] = _drawn(published, device)
        self._matching: dict[Option, frozenset[PublishedDevice]] = {}
        self.failures = UnmetDemands(len(self.by_node))

    def node_of(self, device: PublishedDevice) -> str:
        """Return the node of a device; a pool nobody publishes any more is taken to be named after its node."""
        return self._node_of.get((device.driver, device.pool), device.pool)

    def has_class(self, name: str) -> bool:
        """Tell whether a device class exists."""
        return name in self._classes

    @cached_property
    def gpus(self) -> Mapping[str, int]:
        """Return how many GPUs claims can get on each node that has some: devices that a class of GPUs selects."""
        classes = (Option("", name, 1) for name in self._classes if is_class_of_gpus(name))
        usable = [each for each in classes if not self.problem(each)]
        selectors = [[compiled(expression) for expression in self._expressions(each)] for each in usable]
        found: dict[str, int] = {}
        for node, devices in self.by_node.items():
            facts = [(device.driver, self._facts[device]) for device in devices]
            count = sum(any(all(matches(*each) for matches in group) for group in selectors) for each in facts)
            if count:
                found[node] = count
        return found

    def problem(self, option: Option) -> str:
        """Return why no device can ever meet an option, or nothing."""
        found = self._classes.get(option.device_class)
        if found is None:
            return f"device class {option.device_class} does not exist"
        if any(selector.cel is None for selector in found.spec.selectors):
            return f"device class {option.device_class} has selectors of a kind that is not known here"
        try:
            for expression in self._expressions(option):
                compiled(expression)
        except UnusableSelector as error:
            return str(error)
        return ""

    def offered(self, option: Option, node: str) -> Sequence[PublishedDevice]:
        """Return the devices of a node that match an option, in use or not, in slice and device order."""
        matching = self._matching.get(option)
        if matching is None:
            matching = self._matching[option] = frozenset(self._find(option))
        return [device for device in self.by_node.get(node, ()) if device in matching]

    def attribute(self, device: PublishedDevice, name: str) -> object:
        """Return an attribute of a device by its full name, or None."""
        facts = self._facts.get(device)
        if facts is None:
            return None
        domain, _, short = name.rpartition("/")
        return facts.attributes.get(name) or (facts.attributes.get(short) if domain == device.driver else None)

    def config(self, option: Option) -> list[JSON]:
        """Return what the class of an option tells the drivers of its devices."""
        found = self._classes.get(option.device_class)
        items = found.spec.config if found is not None else ()
        return [{"source": "FromClass", "requests": [option.request], **item} for item in items]

    def _find(self, option: Option) -> Iterable[PublishedDevice]:
        if self.problem(option):
            return
        selectors = [compiled(expression) for expression in self._expressions(option)]
        for published, device in self._facts.items():
            if (
                not (device.binding_conditions or device.binding_failure_conditions)
                and self.drawing.get(published, {}).keys() <= self.counters.keys()
                and _is_tolerated(device, option.tolerations)
                and all(matches(published.driver, device) for matches in selectors)
            ):
                yield published

    def _expressions(self, option: Option) -> list[str]:
        of_class = self._classes[option.device_class].spec.selectors
        return [*(each.cel.expression for each in of_class if each.cel is not None), *option.selectors]


def _current(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of each pool's newest generation, if all of them are there, in the order of their names."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda found: found.metadata.name):
        pools.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    found: list[ResourceSlice] = []
    for members in pools.values():
        newest = max(each.spec.pool.generation for each in members)
        current = [each for each in members if each.spec.pool.generation == newest]
        if len(current) >= current[0].spec.pool.resource_slice_count:
            found += current
    return sorted(found, key=lambda each: each.metadata.name)


def _drawn(published: PublishedDevice, device: Device) -> dict[CounterKey, int]:
    """Return what a device draws from each counter of its pool."""
    drawn: Counter[CounterKey] = Counter()
    for each in device.consumes_counters:
        for name, counter in each.counters.items():
            drawn[CounterKey(published.driver, published.pool, each.counter_set, name)] += milli(counter.value)
    return drawn


def _is_tolerated(device: Device, tolerations: Sequence[Toleration]) -> bool:
    repelling = (taint for taint in device.taints if taint.effect in {"NoSchedule", "NoExecute"})
    return all(any(each.tolerates(taint) for each in tolerations) for taint in repelling)
