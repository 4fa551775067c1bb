"""The scheduler backend interface: what the operator asks of a scheduler, and nothing else.

A backend turns a PodGang into whatever its scheduler reads (a PodGroup, a Workload, nothing) and prepares pods for it.
The operator does the rest: it creates gangs and gated pods, fills references, opens gates, writes status. The order is
fixed, and a backend may build on it::

    init  ->  validate_pod_clique_set  ->  sync_pod_gang  ->  prepare_pod ...  ->  sync_pod_gang (Initialized)
          ->  may_release ...  ->  sync_pod_gang (Scheduled)  ->  on_pod_gang_delete

The interface follows semantic versioning (:data:`INTERFACE_VERSION`). Within a major version methods are only added,
with a default; a backend written for another major version stops the operator with both versions named.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Protocol

import msgspec

from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.runtime import Clock

INTERFACE_VERSION = "1.1"

DEPRECATED: Final[Mapping[str, str]] = {}
"""Methods that are to go, and what to implement instead. Each stays for a minor version at least; there is none."""

PodManifest = JSON
"""The whole pod to be, as JSON: a backend may change anything in it before it is created."""


@dataclass(frozen=True)
class Capabilities:
    """What a backend can honour, as configured and on the cluster at hand. Read after ``init``."""

    gang_scheduling: bool = False
    """Places at least the minimum of every group, or nothing."""
    required_topology: bool = False
    """Keeps a gang within one domain of a required level."""
    preferred_topology: bool = False
    """Tries to keep a gang within one domain of a preferred level."""
    group_topology: bool = False
    """Honours constraints on parts of a gang: topology group configs and single pod groups."""
    queues: bool = False
    """Accounts gangs to queues."""
    writes_scheduled: bool = False
    """The scheduler writes the PodGang condition Scheduled itself; for others the operator derives it from pods."""
    every_pod_in_a_group: bool = False
    """A pod that names no group is not scheduled, so one that stands alone needs a gang of its own, too."""
    joins_at_creation: bool = False
    """A pod names its group only when it is made; one that exists can no longer join."""
    minimum_members_only: bool = False
    """Only the minimum of each group is in the scheduler's gang; scale-in takes the pods beyond it first."""
    waits_for_group: bool = False
    """A pod that names a group which does not exist yet waits for it, so the grouper may have pods name theirs when
    they are created."""

    def named(self) -> Mapping[str, bool]:
        """Return the capabilities by name, in the order of their declaration."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class Right:
    """What the operator must be allowed for a backend: verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; empty: all."""


@dataclass(frozen=True)
class Degradation:
    """Something a workload asks for that will not be honoured, though it may run."""

    capability: str
    message: str

    def __str__(self) -> str:
        return f"{self.capability}: {self.message}"


class Rejected(Exception):
    """The backend cannot run this PodCliqueSet correctly; ``path`` names the field that asks too much."""

    def __init__(self, message: str, *, path: str = "spec") -> None:
        super().__init__(message)
        self.path = path


class BackendUnavailable(RuntimeError):
    """``init`` found that the scheduler, or what it needs in the cluster, is missing; the message says what to do."""


class GangLookup(Protocol):
    """Read-only look-ups in the operator's caches."""

    def pod_gang(self, namespace: str, name: str) -> PodGang | None:
        """Return a gang as last seen."""

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        """Return the PodCliqueSet a gang belongs to; ``None`` once that is gone."""

    def topology_binding(self, name: str) -> ClusterTopologyBinding | None:
        """Return a topology binding by name."""


@dataclass(frozen=True)
class BackendContext:
    """What a backend is given to work with."""

    client: Client
    """Uncached; reads see every write that was acknowledged before."""
    events: EventRecorder
    clock: Clock
    lookup: GangLookup


class SchedulerBackend(ABC):
    """One scheduler. A subclass has a ``name``, ``capabilities`` and ``prepare_pod``; the rest has defaults."""

    name: ClassVar[str]
    """What pods carry as ``schedulerName`` unless configured otherwise, and the profile that enables this backend."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names the configuration may use for the profile."""
    interface_version: ClassVar[str] = INTERFACE_VERSION
    config_type: ClassVar[type[msgspec.Struct] | None] = None
    """``profile.config`` is decoded strictly into it. ``None``: the backend takes no configuration."""
    rights: ClassVar[tuple[Right, ...]] = ()
    """What the backend's calls need beyond the operator's own rights; ``spinney manifests`` grants it."""
    validates_before_init: ClassVar[bool] = False
    """Whether ``validate_pod_clique_set`` says the same before ``init`` as after it, so that it can be asked offline.

    A backend whose ``init`` only looks whether its scheduler is installed may say so; one that learns there what the
    cluster serves may not.
    """

    def __init__(self, context: BackendContext, config: Any = None) -> None:
        """Keep the context and the decoded configuration; no I/O here."""
        self.context = context
        self.config = config

    async def init(self) -> None:
        """Prepare the cluster and find out what it serves. Idempotent; runs on every replica before controllers start.

        Raising stops the operator with the reason; :class:`BackendUnavailable` says what to do about it.
        """
        return

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return what can be honoured here and now; asked after ``init``."""

    async def sync_pod_gang(self, gang: PodGang) -> None:
        """Make the scheduler's own objects agree with the gang, owned by it.

        Called when its spec changed and when Initialized or Scheduled flipped, and again after a restart and with each
        safety resync: writing what is already there must write nothing. Raising is retried with back-off and shown on
        the gang.
        """
        return

    async def on_pod_gang_delete(self, gang: PodGang) -> None:
        """Clean up what owner references do not. Overriding it makes the operator hold the gang by a finalizer.

        Called at least once before the finalizer goes, also after a restart; must be idempotent.
        """
        return

    @abstractmethod
    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        """Set what the scheduler wants on a pod before it is created: scheduler name, labels, a group reference."""

    def is_prepared_for(self, pod: Pod, gang: PodGang) -> bool:
        """Tell whether what ``prepare_pod`` set on a pod that has no node yet is still of use in this life of its gang.

        A pod for which it is not is deleted and made anew. New in 1.1.
        """
        return True

    def may_release(self, pod: Pod, gang: PodGang) -> bool:
        """Tell whether the gate of a pod may be opened, once the operator would."""
        return True

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        """Raise :class:`Rejected`, or return what the workload asks for and will not get."""
        return []

    @property
    def has_own_objects(self) -> bool:
        """Tell whether ``sync_pod_gang`` is implemented, so a gang is the scheduler's only after that call."""
        return type(self).sync_pod_gang is not SchedulerBackend.sync_pod_gang

    @property
    def has_delete_hook(self) -> bool:
        """Tell whether ``on_pod_gang_delete`` is implemented, so gangs need a finalizer."""
        return type(self).on_pod_gang_delete is not SchedulerBackend.on_pod_gang_delete


@dataclass(frozen=True)
class TopologyState:
    """How a scheduler's topology object compares with the binding that refers to it."""

    in_sync: bool
    message: str = ""
    observed_generation: int | None = None


class TopologyAware(ABC):
    """Mix-in of backends whose scheduler reads a topology object of its own."""

    @property
    @abstractmethod
    def topology_resource(self) -> Resource:
        """Return the kind of that object; the operator watches it where it is installed."""

    @abstractmethod
    def topology_name(self, binding: ClusterTopologyBinding) -> str:
        """Return the object a binding stands for: the one it refers to, else the one managed for it."""

    @abstractmethod
    async def sync_topology(self, binding: ClusterTopologyBinding) -> TopologyState:
        """Create or replace the object managed for a binding that refers to none."""

    @abstractmethod
    async def check_topology(self, binding: ClusterTopologyBinding, reference: str) -> TopologyState:
        """Compare the object a binding refers to, which is managed outside Spinney; never write to it."""


def is_compatible(version: str) -> bool:
    """Tell whether a backend written for ``version`` of this interface can be served."""
    return version.split(".", 1)[0] == INTERFACE_VERSION.split(".", 1)[0]


def deprecations(backend: type[SchedulerBackend], deprecated: Mapping[str, str] = DEPRECATED) -> list[str]:
    """Return what a backend implements that is to go, each with what to do instead."""
    return [
        f"{name} is deprecated: {instead}"
        for name, instead in deprecated.items()
        if getattr(backend, name, None) is not getattr(SchedulerBackend, name, None)
    ]
