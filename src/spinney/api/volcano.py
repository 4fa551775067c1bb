"""Volcano's pod groups and queues (``scheduling.volcano.sh/v1beta1``)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from spinney.api.fields import Count, Int32, OpenObject, described, enum, schema
from spinney.api.meta import ConditionStatus, Object
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.selectors import LabelSelector
from spinney.api.struct import Struct, counter

POD_GROUP: Final = Resource(
    "scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", short_names=("pg", "podgroup-v1beta1")
)
QUEUE: Final = Resource(
    "scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False, short_names=("q", "queue-v1beta1")
)

DEFAULT_QUEUE: Final = "default"
PHASES: Final = ("Pending", "Running", "Unknown", "Inqueue", "Completed")


class NetworkTopology(Struct, frozen=True, kw_only=True):
    """How close pods must lie in the network, as the highest tier of HyperNode they may span."""

    mode: Annotated[str, enum("hard", "soft", default="hard")] | None = None
    highest_tier_allowed: Annotated[int, schema({"minimum": 0})] | None = None
    highest_tier_name: str | None = None


class SubGroupPolicy(Struct, frozen=True, kw_only=True):
    """Pods that form smaller gangs inside the group."""

    name: str
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    sub_group_size: Annotated[Int32, schema({"minimum": 1})] | None = None
    min_sub_groups: Annotated[Int32, schema({"minimum": 0})] | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """What the group needs before any of it starts."""

    min_member: Int32 | None = None
    min_task_member: Annotated[Mapping[str, Int32], described("Minimum by task name.")] = {}
    queue: Annotated[str, schema({"default": DEFAULT_QUEUE})] | None = None
    priority_class_name: str | None = None
    min_resources: Mapping[str, RawQuantity] = {}
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupCondition(Struct, frozen=True, kw_only=True):
    """One aspect of a group's state."""

    type: str = ""
    status: ConditionStatus | None = None
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """How far a group has come."""

    phase: Annotated[str, enum(*PHASES, "")] | None = None
    conditions: tuple[PodGroupCondition, ...] = ()
    running: Count = counter()
    succeeded: Count = counter()
    failed: Count = counter()


class PodGroup(Object, of=POD_GROUP, frozen=True, kw_only=True):
    """Pods that Volcano starts together."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class QueueSpec(Struct, frozen=True, kw_only=True):
    """A queue's share and place in the tree."""

    weight: Annotated[Int32, schema({"minimum": 1, "maximum": 65535, "default": 1})] | None = None
    capability: Mapping[str, RawQuantity] = {}
    deserved: Mapping[str, RawQuantity] = {}
    guarantee: OpenObject | None = None
    reclaimable: bool | None = None
    parent: str | None = None
    priority: Int32 | None = None
    type: str | None = None
    affinity: OpenObject | None = None
    extend_clusters: tuple[OpenObject, ...] = ()
    dequeue_strategy: Annotated[str, enum("fifo", "traverse")] | None = None


class QueueStatus(Struct, frozen=True, kw_only=True):
    """Whether a queue takes work, and how much of which kind it has."""

    state: Annotated[str, enum("Open", "Closed", "Closing", "Unknown", "")] | None = None
    unknown: Count = counter()
    pending: Count = counter()
    running: Count = counter()
    inqueue: Count = counter()
    completed: Count = counter()
    allocated: Mapping[str, RawQuantity] = {}
    reservation: OpenObject | None = None


class Queue(Object, of=QUEUE, frozen=True, kw_only=True):
    """A share of the cluster."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
