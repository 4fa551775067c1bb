"""The pod group of scheduler-plugins (``scheduling.x-k8s.io/v1alpha1 PodGroup``).

A pod belongs to it by the label ``scheduling.x-k8s.io/pod-group``, in its own namespace.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

from spinney.api.fields import Count, Int32, described, enum, schema
from spinney.api.grove_status import Conditions
from spinney.api.meta import Object
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.struct import Struct, counter

POD_GROUP: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", short_names=("pg", "pgs"))

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
UNKNOWN: Final = "Unknown"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"
SCHEDULED: Final = "PodGroupScheduled"
"""The condition that says whether a quorum was placed, and if not, why."""
# "PreScheduling" and "Scheduled" are phases that earlier releases wrote; objects with them must stay readable.
PHASES: Final = ("", PENDING, "PreScheduling", SCHEDULING, "Scheduled", RUNNING, UNKNOWN, FINISHED, FAILED)


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """How many pods, with how much between them, must be placeable before any is; and how long those placed wait."""

    min_member: Annotated[Int32, schema({"minimum": 1})]
    min_resources: Annotated[Mapping[str, RawQuantity], described("What the minimum needs in total.")] = {}
    schedule_timeout_seconds: (
        Annotated[
            Int32, schema({"minimum": 0}, "How long placed pods wait for the others; 0 is the scheduler's default.")
        ]
        | None
    ) = None


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """How far a group has come."""

    phase: Annotated[str, enum(*PHASES)] | None = None
    occupied_by: Annotated[str, described("UID of the workload that owns the pods; empty until known.")] | None = None
    scheduled: Count = counter()
    running: Count = counter()
    succeeded: Count = counter()
    failed: Count = counter()
    schedule_start_time: datetime | None = None
    conditions: Conditions = ()
    """Not among scheduler-plugins' fields: where its own CRD is installed, the API server drops them."""


class PodGroup(Object, of=POD_GROUP, frozen=True, kw_only=True):
    """Pods that are placed together or not at all."""

    spec: PodGroupSpec
    status: PodGroupStatus = PodGroupStatus()
