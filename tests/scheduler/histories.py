"""Random histories of a cluster: nodes, pods, quotas, claims and classes with any names of resources, in any order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from spinney.api.affinity import Taint, Toleration
from spinney.api.core import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from spinney.api.labels import COSCHEDULING_GROUP, KAI_POD_GROUP
from spinney.api.meta import Metadata
from spinney.api.resource_claims import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from spinney.gangs.tree import Gang
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo, Weights
from tests.scheduler.building import a_gang

NAMESPACE = "team"
MOST_NAMES = 200
EVENTS = 40
_AMOUNTS = ("0", "1", "2", "3", "500m", "1Gi", "9e18", "9223372036854775807", "100E", "0.1")
_SHARES = (
    {"gpu-fraction": "0.5"},
    {"gpu-memory": "9" * 30},
    {"gpu-fraction": "0.3", "gpu-fraction-num-devices": "2"},
)
_GANGS = ("a", "b", "c", "d")
_QUEUES = ("top", "one", "two", "other")


@dataclass(frozen=True)
class Gone:
    """An object that goes."""

    found: Any


@dataclass(frozen=True)
class Look:
    """The schedulers look at what there is."""


History = Iterator[Node | Pod | QueueInfo | Gang | ResourceClaim | ResourceSlice | DeviceClass | Gone | Look]


class Author:
    """Writes one history. Mutable: it knows what is there."""

    def __init__(self, seed: int, scheduler: str) -> None:
        self._random = Random(seed)
        self._scheduler = scheduler
        count = self._random.choice((3, 12, 40, MOST_NAMES))
        self._names = [f"example.com/r{number}" for number in range(count)]
        self._names += [
            "amd.com/gpu",
            "nvidia.com/gpu",
            "nvidia.com/mig-1g.5gb",
            "nvidia.com/mig-99g.1gb",
            "hugepages-2Mi",
        ]
        self._alive: dict[tuple[str, str], Any] = {}

    def write(self) -> History:
        """Return what happens."""
        makers: list[Callable[[], Any]] = [self._node] * 4 + [self._pod] * 8 + [self._queue, self._gang, self._gang]
        makers += [self._claim, self._claim, self._slice, self._class]
        for _ in range(EVENTS):
            if self._alive and self._random.random() < 0.15:
                key = self._random.choice(sorted(self._alive))
                yield Gone(self._alive.pop(key))
            else:
                found = self._random.choice(makers)()
                self._alive[type(found).__name__, _name(found)] = found
                yield found
            if self._random.random() < 0.2:
                yield Look()
        yield Look()

    def placed(self, pod: str, node: str) -> Pod | None:
        """Return a pod as it is once it runs on a node."""
        found: Pod | None = self._alive.get(("Pod", pod))
        if found is None:
            return None
        running = replace(found, spec=replace(found.spec, node_name=node), status=PodStatus(phase="Running"))
        self._alive["Pod", pod] = running
        return running

    def evicted(self, pod: str) -> Pod | None:
        """Return a pod that is no more."""
        found: Pod | None = self._alive.pop(("Pod", pod), None)
        return found

    # -- objects -----------------------------------------------------------------------------------------------------

    def _resources(self, most: int) -> dict[str, str]:
        names = self._random.sample(self._names, min(self._random.choice((0, 1, 2, most)), len(self._names)))
        return {name: self._random.choice(_AMOUNTS) for name in names}

    def _node(self) -> Node:
        name = f"n{self._random.randrange(6)}"
        offered = {"cpu": "64", "memory": "512Gi", "pods": "20", "nvidia.com/gpu": self._random.choice(("0", "1", "8"))}
        labels = {"pool": self._random.choice("xy"), "kubernetes.io/hostname": name}
        if self._random.random() < 0.3:
            labels |= {
                "nvidia.com/gpu.memory": self._random.choice(("81920", "9" * 40, "none")),
                "nvidia.com/gpu.count": "8",
            }
        taints = (Taint(key="t", value="v", effect="NoSchedule"),) if self._random.random() < 0.2 else ()
        return Node(
            metadata=Metadata(name=name, uid=f"{name}-{self._random.randrange(3)}", labels=labels),
            spec=NodeSpec(taints=taints, unschedulable=self._random.random() < 0.1),
            status=NodeStatus(allocatable={**offered, **self._resources(30)}),
        )

    def _pod(self) -> Pod:
        chance = self._random
        name, gang = f"p{chance.randrange(16)}", chance.choice(("", *_GANGS))
        annotations = {KAI_POD_GROUP: gang} if gang else {}
        requests = {"cpu": chance.choice(("1", "100m", "9e18")), **self._resources(30)}
        if chance.random() < 0.2:
            annotations |= chance.choice(
                (
                    {"gpu-fraction": "0.5"},
                    {"gpu-memory": "9" * 30},
                    {"gpu-fraction": "0.3", "gpu-fraction-num-devices": "2"},
                )
            )
        spec: dict[str, Any] = {}
        if chance.random() < 0.3:
            spec["node_selector"] = {"pool": chance.choice("xyz")}
        if chance.random() < 0.3:
            spec["tolerations"] = (Toleration(key="t", operator="Exists"),)
        if chance.random() < 0.2:
            claim = f"c{chance.randrange(4)}"
            spec["resource_claims"] = (PodResourceClaim(name="c", resource_claim_name=claim),)
        node = f"n{chance.randrange(6)}" if chance.random() < 0.2 else ""
        return Pod(
            metadata=Metadata(
                name=name,
                namespace=NAMESPACE,
                uid=f"{name}-{chance.randrange(4)}",
                labels={COSCHEDULING_GROUP: gang} if gang else {},
                annotations=annotations,
            ),
            spec=PodSpec(
                scheduler_name=self._scheduler,
                node_name=node,
                priority=chance.choice((0, 10, 100)),
                containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),),
                **spec,
            ),
            status=PodStatus(phase="Running" if node else "Pending"),
        )

    def _queue(self) -> QueueInfo:
        name = self._random.choice(_QUEUES)
        parent = self._random.choice(("", "top", "other"))
        quota = Amounts(-1, -1, self._random.choice((-1, 0, 2, 1 << 50)) * GPU)
        return QueueInfo(name=name, parent=parent if parent != name else "", quota=quota, weight=Weights(1, 1, 1))

    def _gang(self) -> Gang:
        name = self._random.choice(_GANGS)
        queue, minimum = self._random.choice((*_QUEUES, "default-queue")), self._random.choice((1, 2, 3, 1000))
        return a_gang(name, minimum=minimum, queue=queue, priority=self._random.choice((10, 50, 100)))

    def _claim(self) -> ResourceClaim:
        exactly = ExactDeviceRequest(
            device_class_name=f"class{self._random.randrange(2)}", count=self._random.choice((1, 3))
        )
        return ResourceClaim(
            metadata=Metadata(name=f"c{self._random.randrange(4)}", namespace=NAMESPACE),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="r", exactly=exactly),))),
        )

    def _slice(self) -> ResourceSlice:
        node = f"n{self._random.randrange(6)}"
        devices = tuple(Device(name=str(number)) for number in range(self._random.randrange(4)))
        spec = ResourceSliceSpec(driver="d", pool=ResourcePool(name=node), node_name=node, devices=devices)
        return ResourceSlice(metadata=Metadata(name=node), spec=spec)

    def _class(self) -> DeviceClass:
        return DeviceClass(metadata=Metadata(name=f"class{self._random.randrange(2)}"))


def _name(found: Any) -> str:
    if isinstance(found, QueueInfo):
        return found.name
    return found.key.name if isinstance(found, Gang) else found.metadata.name
