"""The YAML that describes a simulated cluster: groups of nodes, their topology, and how pods behave on them.

::

    nodes:
      - name: gpu-{index:04d}            # {index} counts from 0 inside the group
        count: 64
        capacity: {cpu: 64, memory: 512Gi, pods: 110, nvidia.com/gpu: 8}
        labels: {accelerator: h100}
        taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
        topology:                        # outermost first; size counts the nodes of one domain
          - {label: topology.kubernetes.io/block, size: 32}
          - {label: topology.kubernetes.io/rack, size: 8, value: "rack-{index}"}
    pods: {start: 1s..3s, ready: 500ms}  # latencies; by default everything is immediate
    heartbeats: {lease: 10s, status: 5m}

Decoding is strict: an unknown or misspelt field, a wrong type, or a value that makes no sense is an
:class:`InvalidClusterSpec` that names the field.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.api.durations import DurationTooLong, InvalidDuration, parse_duration
from spinney.api.labels import HOSTNAME
from spinney.api.names import dns_subdomain_faults, label_value_faults, qualified_name_faults
from spinney.api.quantity import InvalidQuantity, Quantity, RawQuantity

_EXPONENTIAL = re.compile(r"exp\((?P<mean>[^()]+)\)")


class InvalidLatency(ValueError):
    """A text that is not a latency."""

    def __init__(self, text: str, fault: str = "") -> None:
        expected = "is not a latency; expected 2s, a range such as 1s..3s, or exp(2s) with a mean"
        super().__init__(fault or f"{text!r} {expected}")


class Distribution(Enum):
    """How drawn values lie between or around the two numbers of a latency."""

    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of seconds: uniform from ``low`` to ``high``, or exponential with mean ``high``.

    In YAML it is text: ``2s`` is always two seconds, ``1s..3s`` is uniform, ``exp(2s)`` is exponential with that mean.
    """

    low: float
    high: float
    shape: Distribution = Distribution.UNIFORM

    @classmethod
    def parse(cls, text: str) -> "Latency":
        """Return the latency that ``text`` denotes; raises :class:`InvalidLatency`."""
        try:
            if match := _EXPONENTIAL.fullmatch(text.strip()):
                return cls(0.0, _seconds(match["mean"]), Distribution.EXPONENTIAL)
            low, dots, high = text.partition("..")
            latency = cls(_seconds(low), _seconds(high if dots else low))
        except DurationTooLong as fault:
            raise InvalidLatency(text, str(fault)) from fault
        except InvalidDuration as fault:
            raise InvalidLatency(text) from fault
        if latency.low < 0 or latency.high < latency.low:
            raise InvalidLatency(text)
        return latency

    def draw(self, random: Random) -> timedelta:
        """Return one value. A fixed latency draws nothing, so that adding one changes no other draw of a seed."""
        if self.shape is Distribution.EXPONENTIAL:
            return timedelta(seconds=random.expovariate(1 / self.high) if self.high else 0.0)
        return timedelta(seconds=self.low if self.low == self.high else random.uniform(self.low, self.high))


def _seconds(text: str) -> float:
    return parse_duration(text.strip()).total_seconds()


MOST_NODES: Final = 100_000
"""As many nodes as a group may have: every one of them is an object in memory."""


class InvalidClusterSpec(ValueError):
    """A cluster description that cannot be used; the message names the field."""


class _Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of the parts of a cluster description: an unknown field is an error."""


class TopologyLevel(_Strict, frozen=True, kw_only=True):
    """One level of the topology: every ``size`` consecutive nodes of the group share a label value."""

    label: str
    """The node label of the level, such as topology.kubernetes.io/rack."""
    size: int
    """How many consecutive nodes of the group share a value."""
    value: str = ""  # pattern with {index}; default: the last part of the label key, "-" and the index

    def domain(self, node_index: int) -> str:
        """Return the label value of the ``node_index``-th node of the group."""
        pattern = self.value or f"{self.label.rpartition('/')[2]}-{{index}}"
        return pattern.format(index=node_index // self.size)


class NodeTaint(_Strict, frozen=True, kw_only=True):
    """A mark that repels pods."""

    key: str
    """The taint's key; pods need a toleration for it."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods without one."""
    value: str = ""
    """The taint's value."""


class NodeSpec(_Strict, frozen=True, kw_only=True):
    """One node: what it has and how it is marked."""

    name: str
    capacity: Mapping[str, RawQuantity]
    allocatable: Mapping[str, RawQuantity]
    labels: Mapping[str, str] = {}
    taints: tuple[NodeTaint, ...] = ()


class NodeGroup(_Strict, frozen=True, kw_only=True):
    """Nodes of one kind."""

    name: str
    """What the nodes are called; with more than one a pattern with {index}, such as gpu-{index:03}."""
    count: int = 1
    """How many nodes."""
    capacity: Mapping[str, RawQuantity] = {}
    """What each node has: cpu, memory, nvidia.com/gpu, ...; 110 pods unless it says otherwise."""
    allocatable: Mapping[str, RawQuantity] = {}  # what is not named here is wholly allocatable
    labels: Mapping[str, str] = {}
    """Labels of every node of the group."""
    taints: tuple[NodeTaint, ...] = ()
    """Taints of every node of the group."""
    topology: tuple[TopologyLevel, ...] = ()
    """Labels that consecutive nodes share, level by level."""

    def nodes(self) -> Iterator[NodeSpec]:
        """Yield the nodes of this group in order of their index."""
        capacity = {"pods": 110, **self.capacity}
        allocatable = capacity | dict(self.allocatable)
        for index in range(self.count):
            name = self.name.format(index=index)
            domains = {level.label: level.domain(index) for level in self.topology}
            labels = {HOSTNAME: name, **domains, **self.labels}
            yield NodeSpec(name=name, capacity=capacity, allocatable=allocatable, labels=labels, taints=self.taints)


class PodTimes(_Strict, frozen=True, kw_only=True):
    """How long the steps of a pod's life take; an annotation on a pod overrides each of them for that pod."""

    start: str = "0s"  # from binding to the first container
    init: str = "0s"  # each init container
    ready: str = "0s"  # from running to ready
    stop: str = "0s"  # from deletion to gone, never longer than the grace period
    restart_back_off: str = "10s"  # doubles with each restart, up to five minutes; the first restart is immediate


class Heartbeats(_Strict, frozen=True, kw_only=True):
    """How often nodes say that they are alive; ``lease: 0s`` is never."""

    lease: str = "10s"
    """How often a node renews its lease; 0s is never."""
    status: str = "5m"
    """How often a node writes its status when nothing changed; 0s is never."""

    @property
    def lease_seconds(self) -> float:
        """Return the seconds between two renewals of a node's lease; 0 is never."""
        return parse_duration(self.lease).total_seconds()

    @property
    def status_seconds(self) -> float:
        """Return the seconds between two writes of a node's status; 0 is never."""
        return parse_duration(self.status).total_seconds()


class ClusterSpec(_Strict, frozen=True, kw_only=True):
    """A simulated cluster."""

    nodes: tuple[NodeGroup, ...] = ()
    """Groups of nodes of one kind."""
    pods: PodTimes = PodTimes()
    heartbeats: Heartbeats = Heartbeats()

    @classmethod
    def parse(cls, text: str, *, source: str = "cluster") -> "ClusterSpec":
        """Decode and check YAML text; ``source`` names it in errors."""
        try:
            document = yaml_text.load(text)
        except yaml.YAMLError as fault:
            raise InvalidClusterSpec(f"{source}: not YAML: {fault}") from fault
        return cls.from_document(document if document is not None else {}, source=source)

    @classmethod
    def load(cls, path: Path) -> "ClusterSpec":
        """Read, decode and check a file."""
        return cls.parse(path.read_text(), source=str(path))

    @classmethod
    def from_document(cls, document: Any, *, source: str = "cluster") -> "ClusterSpec":
        """Decode and check plain values, as YAML or JSON give them."""
        try:
            spec = msgspec.convert(document, type=cls)
        except msgspec.ValidationError as fault:
            raise InvalidClusterSpec(f"{source}: {str(fault).replace('`$.', '`').replace('`$`', 'the top')}") from fault
        spec.check(source=source)
        return spec

    def check(self, *, source: str = "cluster") -> None:
        """Raise :class:`InvalidClusterSpec` for the first value that makes no sense."""
        names: dict[str, int] = {}
        for number, group in enumerate(self.nodes):
            _check_group(group, f"{source}: nodes[{number}]")
            for node in group.nodes():
                if node.name in names:
                    raise InvalidClusterSpec(
                        f"{source}: nodes[{number}].name: the node {node.name!r} is already in "
                        f"nodes[{names[node.name]}]; put {{index}} into the name, or choose another"
                    )
                names[node.name] = number
        for field in PodTimes.__struct_fields__:
            _check_text(Latency.parse, getattr(self.pods, field), f"{source}: pods.{_camel(field)}")
        for field in Heartbeats.__struct_fields__:
            _check_text(parse_duration, getattr(self.heartbeats, field), f"{source}: heartbeats.{_camel(field)}")

    def expanded(self) -> list[NodeSpec]:
        """Return every node of every group, in order."""
        return [node for group in self.nodes for node in group.nodes()]


def _check_group(group: NodeGroup, field: str) -> None:
    if not 0 <= group.count <= MOST_NODES:
        raise InvalidClusterSpec(f"{field}.count: found {group.count}, expected 0 to {MOST_NODES}")
    name = _formatted(group.name, f"{field}.name")
    if faults := dns_subdomain_faults(name):
        raise InvalidClusterSpec(f"{field}.name: {group.name!r} gives {name!r}, which {faults[0]}")
    for resources, where in ((group.capacity, "capacity"), (group.allocatable, "allocatable")):
        for resource, amount in resources.items():
            _check_text(Quantity.parse, amount, f"{field}.{where}[{resource}]")
            if Quantity.parse(amount).nano < 0:
                raise InvalidClusterSpec(f"{field}.{where}[{resource}]: found {amount}, expected 0 or more")
    for key, value in group.labels.items():
        _check_label(key, value, f"{field}.labels[{key}]")
    outer: TopologyLevel | None = None
    for number, level in enumerate(group.topology):
        _check_level(level, outer, f"{field}.topology[{number}]")
        outer = level


def _check_level(level: TopologyLevel, outer: TopologyLevel | None, field: str) -> None:
    if level.size < 1:
        raise InvalidClusterSpec(f"{field}.size: found {level.size}, expected 1 or more nodes")
    if outer is not None and outer.size % level.size:
        raise InvalidClusterSpec(
            f"{field}.size: a domain of {level.size} nodes would straddle two of {outer.label} ({outer.size} nodes); "
            f"expected a divisor of {outer.size}"
        )
    _formatted(level.value, f"{field}.value")
    _check_label(level.label, level.domain(0), f"{field}.label")


def _check_label(key: str, value: str, field: str) -> None:
    if faults := qualified_name_faults(key):
        raise InvalidClusterSpec(f"{field}: the key {key!r} {faults[0]}")
    if faults := label_value_faults(value):
        raise InvalidClusterSpec(f"{field}: the value {value!r} {faults[0]}")


def _formatted(pattern: str, field: str) -> str:
    try:
        return pattern.format(index=0)
    except (IndexError, KeyError, ValueError, AttributeError) as fault:
        raise InvalidClusterSpec(f"{field}: {pattern!r} is not a pattern; only {{index}} can be filled in") from fault


def _check_text(parse: Any, text: Any, field: str) -> None:
    try:
        parse(text)
    except (InvalidLatency, InvalidDuration, InvalidQuantity) as fault:
        raise InvalidClusterSpec(f"{field}: {fault}") from fault


def _camel(field: str) -> str:
    head, *tail = field.split("_")
    return head + "".join(part.title() for part in tail)
