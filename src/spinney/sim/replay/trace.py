"""What a cluster was asked for, in one form for every kind of trace: machines, jobs, outages and the shares of queues.

A reader of another format is one function that returns a :class:`Trace`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from spinney.api.core import Namespace, Node, Pod
from spinney.api.kai import Topology
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.filters.storage import ClaimUse
from spinney.gangs.tree import Gang
from spinney.kube.keys import Key
from spinney.scheduler.fairshare.queues import QueueInfo

WHOLE: Final = 1000
"""Thousandths of a GPU."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: millicores, MiB and whole GPUs of one model; ``others`` are further resources by name."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str = ""
    pool: str = ""
    """Jobs that name a pool run only on its machines."""
    labels: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """What one pod asks for."""

    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """MiB."""
    gpus: int = 0
    milli: int = WHOLE
    """Thousandths of each GPU."""
    models: frozenset[str] = frozenset()
    """GPU models that will do; none named: any."""
    pool: str = ""
    others: tuple[tuple[str, int], ...] = ()
    most_per_node: int = 0
    """How many pods of the same application one node may hold; 0: any number."""

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of GPUs taken."""
        return self.gpus * self.milli


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod of a job as its cluster had it."""

    pod: Pod
    """Without what only one cluster and one run know: its name, its node, its status. Pods that are alike share it."""
    ask: Ask
    pod_set: str
    """The leaf of its gang's tree that it is in."""
    node: str = ""
    """Where it runs when the trace begins; empty: nowhere yet."""
    gpu_groups: tuple[str, ...] = ()
    """The devices that it shares there."""
    claims: tuple[str, ...] = ()
    """The device claims it uses, in its namespace."""
    volumes: tuple[ClaimUse, ...] = ()
    """The claims of volumes it uses."""


@dataclass(frozen=True, slots=True)
class RecordedGang:
    """The gang of a job as its cluster had it: priority, what it may do to others, its tree with all pods required."""

    gang: Gang
    pods: tuple[RecordedPod, ...]
    anchor: str = ""
    """The job whose pods decide the domain of a required constraint both have."""

    def claims_of(self, place: int) -> tuple[Key, ...]:
        """Return the device claims that a pod uses."""
        return tuple(Key(self.gang.namespace, name) for name in self.pods[place].claims)

    def volumes_of(self, place: int) -> tuple[Key, ...]:
        """Return the claims of volumes that a pod uses."""
        return tuple(Key(self.gang.namespace, use.name) for use in self.pods[place].volumes)

    @property
    def runs_from_the_beginning(self) -> bool:
        """Tell whether all pods have a node when the trace begins."""
        return all(each.node for each in self.pods)


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """An object beside jobs that came or changed at a moment, or went."""

    at: float
    found: (
        Node
        | QueueInfo
        | Topology
        | ClusterTopologyBinding
        | Namespace
        | PodDisruptionBudget
        | ResourceClaim
        | ResourceSlice
        | DeviceClass
        | PersistentVolumeClaim
        | PersistentVolume
        | StorageClass
    )
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """Pods that start together or not at all, and run for ``duration`` from then on."""

    name: str
    submitted: float
    """Seconds since the trace began."""
    ask: Ask
    pods: int = 1
    duration: float | None = None
    """Seconds; ``None``: it never ends."""
    ends: float | None = None
    """When it is over, wherever it is by then, if the trace says so; ``duration`` counts from the start."""
    queue: str = "default"
    kind: str = ""
    """What reports put it under."""
    application: str = ""
    stated: float | None = None
    """How many seconds it says it will run; ``None``: it says nothing."""
    counted: bool = True
    """Whether waits of it are part of the report."""
    topology: str = ""
    """The node label whose value all pods must share; empty: none."""
    recorded: RecordedGang | None = None
    """The pods one by one, if they are known; ``ask`` is then the most that one asks for."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Return what each pod asks for."""
        return tuple(each.ask for each in self.recorded.pods) if self.recorded is not None else (self.ask,) * self.pods

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of GPUs of all pods."""
        if self.recorded is not None:
            return sum(each.ask.gpu_milli for each in self.recorded.pods)
        return self.pods * self.ask.gpu_milli


@dataclass(frozen=True, slots=True)
class Outage:
    """A machine that is gone for a while, or closed."""

    machine: str
    begins: float
    ends: float | None = None

    def covers(self, moment: float) -> bool:
        """Tell whether a moment is in it."""
        return self.begins <= moment and (self.ends is None or moment < self.ends)


def united(outages: Iterable[Outage]) -> list[Outage]:
    """Return the same stretches of time without overlaps: a machine is back when the last outage of it is over."""
    found: list[Outage] = []
    lasting = (each for each in outages if each.ends is None or each.ends > each.begins)
    for each in sorted(lasting, key=lambda each: (each.machine, each.begins)):
        before = found[-1] if found and found[-1].machine == each.machine else None
        if before is None or (before.ends is not None and before.ends < each.begins):
            found.append(each)
        elif before.ends is not None:
            ends = max(before.ends, each.ends) if each.ends is not None else None
            found[-1] = replace(before, ends=ends)
    return found


@dataclass(frozen=True)
class Trace:
    """A cluster and what it was asked for, jobs in the order of their submission."""

    name: str
    machines: tuple[Machine, ...]
    jobs: tuple[Job, ...]
    outages: tuple[Outage, ...] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Guaranteed GPUs by queue; without any, nothing is divided."""
    levels: tuple[str, ...] = ()
    """Node labels that make up the topology, coarse to fine, where jobs look at one."""
    offered_once: bool = False
    """A job that does not fit when it is submitted is forgotten."""
    window: tuple[float, float] | None = None
    """The stretch of time whose use is reported; the whole replay without one."""
    demand: tuple[tuple[Ask, int], ...] = ()
    """What is typical to ask for, with how often, where the trace defines that; else its jobs are."""
    notes: tuple[str, ...] = ()
    """What was left out or decided in reading."""
    closures: tuple[Outage, ...] = ()
    """When machines take no new pods; those on them run on."""
    changes: tuple[ClusterChange, ...] = ()
    """Objects beside jobs as they were, oldest first; a machine of which nothing is here is as it says."""
    holding: Mapping[Key, tuple[GivenDevice, ...]] = field(default_factory=dict)
    """The devices that claims have when the trace begins."""
    reach: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By storage class, the node labels whose values a volume shares with the node it was provisioned for."""

    @property
    def gpus(self) -> int:
        """Return the GPUs of all machines."""
        return sum(machine.gpus for machine in self.machines)

    def with_jobs(self, jobs: tuple[Job, ...]) -> "Trace":
        """Return the trace with other jobs."""
        return replace(self, jobs=jobs)
