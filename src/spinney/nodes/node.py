"""One simulated node: what it has, which pods it runs, and the Node object that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from ipaddress import IPv4Address

from spinney.api.affinity import Taint
from spinney.api.pod_requests import Amounts, amounts_of
from spinney.api.quantity import Quantity
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.kube.keys import Key
from spinney.nodes.lifecycle import PodRun
from spinney.nodes.spec import NodeSpec
from spinney.nodes.startup import Parent

SIMULATED_LABEL = "spinney.dev/simulated"
"""On every Node object made here, so that simulated nodes are told from real ones."""

_FIRST_NODE_IP = IPv4Address("10.0.0.1")
_FIRST_POD_IP = IPv4Address("10.128.0.1")
_POD_IPS = 1 << 23  # 10.128.0.0/9

_UNREACHABLE = "node.kubernetes.io/unreachable"
_NOT_READY = "node.kubernetes.io/not-ready"


class Health(Enum):
    """How a node fares; the value is the status of its Ready condition."""

    READY = "True"
    NOT_READY = "False"  # the kubelet answers, and says that it cannot run pods
    UNREACHABLE = "Unknown"  # nothing is heard of it


@dataclass(slots=True)
class Tenant:
    """A pod on a node. Mutable: the run moves on."""

    requests: Amounts
    run: PodRun
    reported: tuple[object, ...] | None = None  # the appearance last written
    waits: tuple[Parent, ...] = ()  # whose readiness the pod waits for


@dataclass(slots=True)
class SimulatedNode:
    """A node and its pods. Mutable; owned by the fleet."""

    spec: NodeSpec
    ip: str
    health: Health = Health.READY
    since: datetime | None = None  # since when the health is this
    tenants: dict[Key, Tenant] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """As its Node object had them when last looked at; at first as the node was described."""

    def __post_init__(self) -> None:
        self.labels = self.labels or self.spec.labels

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.spec.name

    @property
    def allocatable(self) -> Amounts:
        """Return what pods may use, in whole numbers."""
        return amounts_of(self.spec.allocatable)

    def take(self, key: Key, tenant: Tenant) -> None:
        """Count a pod as running here."""
        self.tenants[key] = tenant
        for name, amount in tenant.requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def release(self, key: Key) -> Tenant | None:
        """Give back what a pod used and return what was known of it; None if it is not here."""
        tenant = self.tenants.pop(key, None)
        if tenant is not None:
            for name, amount in tenant.requests.items():
                self.used[name] -= amount
        return tenant


class Addresses:
    """Hands out pod addresses, each once in eight million. Mutable."""

    def __init__(self) -> None:
        self._next = 0

    def pod(self) -> str:
        """Return the next pod address."""
        address = _FIRST_POD_IP + self._next
        self._next = (self._next + 1) % (_POD_IPS - 2)
        return str(address)

    def skip_past(self, taken: str) -> None:
        """Hand out no address up to ``taken``, which a pod from before still has."""
        offset = int(IPv4Address(taken)) - int(_FIRST_POD_IP)
        if 0 <= offset < _POD_IPS:
            self._next = max(self._next, offset + 1)


def node_ip(number: int) -> str:
    """Return the address of the ``number``-th node of a fleet."""
    return str(_FIRST_NODE_IP + number)


def node_manifest(node: SimulatedNode, *, now: datetime) -> JSON:
    """Return the Node object to register."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        SIMULATED_LABEL: "true",
        **node.spec.labels,
    }
    return {
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": node_taints(node, [], now=now)},
        "status": node_status(node, now=now),
    }


def node_status(node: SimulatedNode, *, now: datetime) -> JSON:
    """Return the whole status of the Node object."""
    return {
        "capacity": {name: str(Quantity.parse(raw)) for name, raw in node.spec.capacity.items()},
        "allocatable": {name: str(Quantity.parse(raw)) for name, raw in node.spec.allocatable.items()},
        "addresses": [{"type": "InternalIP", "address": node.ip}, {"type": "Hostname", "address": node.name}],
        "conditions": node_conditions(node, now=now),
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kubeletVersion": "v1.37.0-spinney",
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "spinney://simulated",
            "kernelVersion": "simulated",
            "osImage": "simulated",
            "bootID": "",
            "machineID": "",
            "systemUUID": "",
        },
    }


def node_conditions(node: SimulatedNode, *, now: datetime) -> list[JSON]:
    """Return the conditions of the Node object; its health is in Ready, and there is never any pressure."""
    times = {"lastHeartbeatTime": timestamp(now), "lastTransitionTime": timestamp(node.since or now)}
    reason, message = _READY_REASONS[node.health]
    ready = {"type": "Ready", "status": node.health.value, "reason": reason, "message": message, **times}
    silent = node.health is Health.UNREACHABLE
    status = "Unknown" if silent else "False"
    pressures = [
        {
            "type": kind,
            "status": status,
            "reason": "NodeStatusUnknown" if silent else f"KubeletHas{enough}",
            "message": "",
            **times,
        }
        for kind, enough in _PRESSURES
    ]
    return [*pressures, ready]


def node_taints(node: SimulatedNode, present: list[JSON], *, now: datetime) -> list[JSON]:
    """Return the taints the Node object should have: those it has, its own, and those of its health."""
    own: list[JSON] = [
        {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        for taint in node.spec.taints
    ]
    foreign = [taint for taint in present if taint["key"] not in {_UNREACHABLE, _NOT_READY} and taint not in own]
    failure = failure_taint(node)
    if failure is None:
        return [*own, *foreign]
    no_execute = {"key": failure.key, "effect": failure.effect, "timeAdded": timestamp(node.since or now)}
    return [*own, *foreign, {"key": failure.key, "effect": "NoSchedule"}, no_execute]


def failure_taint(node: SimulatedNode) -> Taint | None:
    """Return the taint by which pods are driven off a failed node, if it has failed."""
    if node.health is Health.READY:
        return None
    return Taint(key=_UNREACHABLE if node.health is Health.UNREACHABLE else _NOT_READY, effect="NoExecute")


_READY_REASONS = {
    Health.READY: ("KubeletReady", "kubelet is posting ready status"),
    Health.NOT_READY: ("KubeletNotReady", "the simulated node was told to fail"),
    Health.UNREACHABLE: ("NodeStatusUnknown", "Kubelet stopped posting node status."),
}

_PRESSURES = (
    ("MemoryPressure", "SufficientMemory"),
    ("DiskPressure", "NoDiskPressure"),
    ("PIDPressure", "SufficientPID"),
)
