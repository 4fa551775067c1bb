"""What the operator reports about Grove's objects."""

from datetime import datetime
from typing import Annotated

from spinney.api.fields import Count, Int32, Int64, described, enum, list_map
from spinney.api.meta import Condition
from spinney.api.struct import Struct, counter

Conditions = Annotated[tuple[Condition, ...], list_map("type")]


class LastError(Struct, frozen=True, kw_only=True):
    """Something that went wrong in the latest reconcile."""

    code: str
    description: str
    observed_at: datetime


class PodGangSummary(Struct, frozen=True, kw_only=True):
    """A gang of the PodCliqueSet, in short."""

    name: str
    phase: Annotated[str, enum("Pending", "Starting", "Running", "Failed", "Succeeded")]
    conditions: Conditions = ()


class ReplicaUpdate(Struct, frozen=True, kw_only=True):
    """A replica that is being updated."""

    replica_index: Int32
    update_started_at: datetime
    update_ended_at: datetime | None = None


class PodCliqueSetUpdateProgress(Struct, frozen=True, kw_only=True):
    """How far a rolling update has come; standalone cliques are counted here, members on their scaling group."""

    update_started_at: datetime
    update_ended_at: datetime | None = None
    updated_pod_cliques_count: Count = counter()
    total_pod_cliques_count: Count = counter()
    updated_pod_clique_scaling_groups_count: Count = counter()
    total_pod_clique_scaling_groups_count: Count = counter()
    currently_updating: tuple[ReplicaUpdate, ...] = ()


class PodCliqueSetStatus(Struct, frozen=True, kw_only=True):
    """State of a PodCliqueSet."""

    observed_generation: Annotated[Int64, described("The generation last synced in full.")] | None = None
    conditions: Conditions = ()
    last_errors: tuple[LastError, ...] = ()
    replicas: Count = counter()
    updated_replicas: Count = counter()
    available_replicas: Count = counter()
    hpa_pod_selector: str | None = None
    pod_gang_statuses: Annotated[tuple[PodGangSummary, ...], list_map("name")] = ()
    current_generation_hash: str | None = None
    update_progress: PodCliqueSetUpdateProgress | None = None


class PodsSelectedToUpdate(Struct, frozen=True, kw_only=True):
    """The pod being replaced, and those already replaced."""

    current: str = ""
    completed: tuple[str, ...] = ()


class PodCliqueUpdateProgress(Struct, frozen=True, kw_only=True):
    """How far the update of a clique has come."""

    update_started_at: datetime
    update_ended_at: datetime | None = None
    pod_clique_set_generation_hash: str
    pod_template_hash: str
    ready_pods_selected_to_update: PodsSelectedToUpdate | None = None


class PodCliqueStatus(Struct, frozen=True, kw_only=True):
    """State of a PodClique."""

    observed_generation: Int64 | None = None
    last_errors: tuple[LastError, ...] = ()
    replicas: Count = counter()
    ready_replicas: Count = counter()
    updated_replicas: Count = counter()
    schedule_gated_replicas: Count = counter()
    scheduled_replicas: Count = counter()
    hpa_pod_selector: str | None = None
    conditions: Conditions = ()
    current_pod_clique_set_generation_hash: str | None = None
    current_pod_template_hash: str | None = None
    update_progress: PodCliqueUpdateProgress | None = None


class ReplicasSelectedToUpdate(Struct, frozen=True, kw_only=True):
    """The replica index being replaced, and those already replaced."""

    current: Int32 = 0
    completed: tuple[Int32, ...] = ()


class PodCliqueScalingGroupUpdateProgress(Struct, frozen=True, kw_only=True):
    """How far the update of a scaling group has come."""

    update_started_at: datetime
    update_ended_at: datetime | None = None
    pod_clique_set_generation_hash: str
    updated_pod_cliques_count: Count = counter()
    total_pod_cliques_count: Count = counter()
    ready_replica_indices_selected_to_update: ReplicasSelectedToUpdate | None = None


class PodCliqueScalingGroupStatus(Struct, frozen=True, kw_only=True):
    """State of a PodCliqueScalingGroup."""

    replicas: Count = counter()
    scheduled_replicas: Count = counter()
    available_replicas: Count = counter()
    updated_replicas: Count = counter()
    selector: str | None = None
    observed_generation: Int64 | None = None
    last_errors: tuple[LastError, ...] = ()
    conditions: Conditions = ()
    current_pod_clique_set_generation_hash: str | None = None
    update_progress: PodCliqueScalingGroupUpdateProgress | None = None
