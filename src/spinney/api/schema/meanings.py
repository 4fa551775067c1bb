"""What the fields of our own kinds mean, in a sentence each, for ``kubectl explain`` and the reference.

The types stay readable as types; the prose is here, by type and field. A meaning goes before the text of the field's
type, which can only say what it is everywhere. What other schedulers' kinds mean is in
:mod:`spinney.api.schema.foreign_meanings`. A test fails for a field without a meaning.
"""

from collections.abc import Mapping
from typing import Final

from spinney.api import grove, grove_status, podgang, topology_binding
from spinney.api.meta import Condition
from spinney.api.schema.foreign_meanings import CONDITION, CONDITIONS, FOREIGN

Meanings = Mapping[str, str]

_LAST_ERRORS: Final = "What went wrong in the latest reconcile; empty when nothing did."
_SELECTOR: Final = "Labels of the pods, as text: what an autoscaler measures."
_UPDATE_BEGAN: Final = "When the update began."
_UPDATE_ENDED: Final = "When it was done; absent while it goes on."
_ADOPTED: Final = "Hash of the templates that are, or are being, rolled out."
_SHARING: Final = "Resource claims that pods of this level share."
_REQUIRED_KEY: Final = "Label key of the level of which one domain must hold all pods."
_PREFERRED_KEY: Final = "Label key of the level of which one domain should hold all pods."
_PODS: Final = "How many pods of the clique are wanted; 1 when absent."
_STARTS_AFTER: Final = "Cliques whose pods must be ready before these start; only with cliqueStartupType Explicit."
_COPIES: Final = "How many copies of the cliques are wanted. Those beyond minAvailable are gangs of their own."
_FEWEST_COPIES: Final = "How many copies belong to the base gang: without them nothing starts."
_TOGETHER: Final = "The cliques that scale together."

_GROVE: Final[Mapping[type, Meanings]] = {
    grove.PodCliqueSetSpec: {
        "replicas": "How many copies of the whole template are wanted; each is placed as gangs of its own.",
    },
    grove.UpdateStrategy: {
        "type": "RollingRecreate replaces pods replica by replica; OnDelete changes only pods that a user deletes.",
    },
    grove.PodCliqueSetTemplateSpec: {
        "cliques": "The roles of the workload: each a template of pods.",
        "clique_startup_type": "When cliques start: all at once, in the order written, or as startsAfter says.",
        "priority_class_name": "PriorityClass of the gangs, and of pods that name none.",
        "topology_constraint": "How close all pods of a replica must lie.",
        "termination_delay": (
            "How long a gang may lack its minimum before it is deleted and made anew; a duration, 4h when absent."
        ),
        "resource_claim_templates": "Templates of resource claims that resourceSharing may name.",
        "resource_sharing": _SHARING,
        "pod_clique_scaling_groups": "Cliques that scale together: a leader with its workers.",
    },
    grove.PodCliqueTemplateSpec: {
        "name": "What the clique is called; unique in the set, and part of the names of its pods.",
        "labels": "Labels of the clique's pods.",
        "annotations": "Annotations of the clique's pods.",
        "topology_constraint": "How close the pods of the clique must lie.",
        "resource_sharing": _SHARING,
    },
    grove.PodCliqueSpec: {
        "role_name": "The role of the pods, for people and dashboards.",
        "pod_spec": "The pods, as in any workload. schedulerName decides which scheduler places the gang.",
        "replicas": _PODS,
        "starts_after": _STARTS_AFTER,
    },
    grove.PodCliqueScalingGroupConfig: {
        "name": "What the group is called; unique in the set.",
        "clique_names": _TOGETHER,
        "annotations": "Annotations of the scaling group.",
        "replicas": _COPIES,
        "min_available": _FEWEST_COPIES,
        "topology_constraint": "How close the pods of one copy must lie.",
        "resource_sharing": _SHARING,
    },
    grove.AutoScalingConfig: {
        "max_replicas": "Upper bound.",
        "metrics": "What to scale by, as in a HorizontalPodAutoscaler (autoscaling/v2).",
    },
    grove.HeadlessServiceConfig: {
        "publish_not_ready_addresses": "Whether pods have their DNS name before they are ready.",
    },
    grove.ResourceClaimTemplateConfig: {
        "name": "What resourceSharing calls it.",
        "template_spec": "Spec of the ResourceClaims made from it.",
    },
    grove.ResourceSharing: {
        "namespace": "Where the ResourceClaimTemplate is; the workload's namespace when absent.",
        "scope": "One claim for all replicas of the level, or one for each.",
    },
    grove.ResourceSharingFilter: {
        "child_clique_names": "The cliques that use the claim.",
        "child_scaling_group_names": "The scaling groups that use the claim.",
    },
    grove.PodCliqueScalingGroupSpec: {
        "replicas": _COPIES,
        "min_available": _FEWEST_COPIES,
        "clique_names": _TOGETHER,
    },
    grove_status.LastError: {
        "code": "Which step failed.",
        "description": "The error as it was met.",
        "observed_at": "When.",
    },
    grove_status.PodGangSummary: {
        "name": "The PodGang.",
        "phase": "How far it has come.",
        "conditions": CONDITIONS,
    },
    grove_status.ReplicaUpdate: {
        "replica_index": "Which replica.",
        "update_started_at": _UPDATE_BEGAN,
        "update_ended_at": _UPDATE_ENDED,
    },
    grove_status.PodCliqueSetUpdateProgress: {
        "update_started_at": _UPDATE_BEGAN,
        "update_ended_at": _UPDATE_ENDED,
        "updated_pod_cliques_count": "Standalone cliques that have the new template.",
        "total_pod_cliques_count": "Standalone cliques there are.",
        "updated_pod_clique_scaling_groups_count": "Scaling groups that have the new templates.",
        "total_pod_clique_scaling_groups_count": "Scaling groups there are.",
        "currently_updating": "The replicas whose pods are being replaced.",
    },
    grove_status.PodCliqueSetStatus: {
        "conditions": CONDITIONS,
        "last_errors": _LAST_ERRORS,
        "replicas": "Replicas there are.",
        "updated_replicas": "Replicas that have the newest template.",
        "available_replicas": "Replicas of which every gang has its minimum ready.",
        "hpa_pod_selector": _SELECTOR,
        "pod_gang_statuses": "The gangs, in short.",
        "current_generation_hash": _ADOPTED,
    },
    grove_status.PodsSelectedToUpdate: {
        "current": "The pod that is being replaced.",
        "completed": "Pods that have been.",
    },
    grove_status.PodCliqueUpdateProgress: {
        "update_started_at": _UPDATE_BEGAN,
        "update_ended_at": _UPDATE_ENDED,
        "pod_clique_set_generation_hash": _ADOPTED,
        "pod_template_hash": "Hash of the pod template that is being rolled out.",
    },
    grove_status.PodCliqueStatus: {
        "observed_generation": "The generation last acted on.",
        "last_errors": _LAST_ERRORS,
        "replicas": "Pods there are, without those that are terminating.",
        "ready_replicas": "Pods that are ready.",
        "updated_replicas": "Pods that have the newest template.",
        "schedule_gated_replicas": "Pods that are held back until their gang is complete.",
        "scheduled_replicas": "Pods that have a node.",
        "hpa_pod_selector": _SELECTOR,
        "conditions": CONDITIONS,
        "current_pod_clique_set_generation_hash": _ADOPTED,
        "current_pod_template_hash": "Hash of the pod template that all pods have.",
    },
    grove_status.ReplicasSelectedToUpdate: {
        "current": "Index of the copy that is being replaced.",
        "completed": "Indices of copies that have been.",
    },
    grove_status.PodCliqueScalingGroupUpdateProgress: {
        "update_started_at": _UPDATE_BEGAN,
        "update_ended_at": _UPDATE_ENDED,
        "pod_clique_set_generation_hash": _ADOPTED,
        "updated_pod_cliques_count": "Cliques that have the new template.",
        "total_pod_cliques_count": "Cliques there are.",
    },
    grove_status.PodCliqueScalingGroupStatus: {
        "replicas": "Copies there are.",
        "scheduled_replicas": "Copies of which every clique has its minimum placed.",
        "available_replicas": "Copies of which every clique has its minimum ready.",
        "updated_replicas": "Copies that have the newest templates.",
        "selector": _SELECTOR,
        "observed_generation": "The generation last acted on.",
        "last_errors": _LAST_ERRORS,
        "conditions": CONDITIONS,
        "current_pod_clique_set_generation_hash": _ADOPTED,
    },
}

_TOPOLOGY: Final[Mapping[type, Meanings]] = {
    topology_binding.TopologyLevel: {
        "domain": "What workloads call the level: block, rack, host.",
        "key": "The node label whose values are the domains of the level.",
    },
    topology_binding.SchedulerTopologyBinding: {
        "scheduler_name": "The scheduler backend.",
        "topology_reference": "Name of the topology object it reads.",
    },
    topology_binding.ClusterTopologyBindingSpec: {
        "levels": "The levels, broad to narrow.",
        "scheduler_topology_bindings": "Topology objects of schedulers that are kept outside Spinney; only compared.",
    },
    topology_binding.SchedulerTopologyStatus: {
        "scheduler_name": "The scheduler backend.",
        "topology_reference": "Name of the topology object it reads.",
        "in_sync": "Whether that object has the levels of this one.",
        "message": "How it differs.",
    },
    topology_binding.ClusterTopologyBindingStatus: {
        "observed_generation": "The generation last acted on.",
        "conditions": CONDITIONS,
        "scheduler_topology_statuses": "Per scheduler, whether its own topology object agrees.",
    },
}

_POD_GANG: Final[Mapping[type, Meanings]] = {
    podgang.NamespacedName: {"namespace": "The object's namespace.", "name": "The object's name."},
    podgang.TopologyPackConstraint: {"required": _REQUIRED_KEY, "preferred": _PREFERRED_KEY},
    podgang.PodGroup: {
        "name": "The PodClique whose pods these are.",
        "pod_references": "The pods.",
        "min_replicas": "How many of them must be placed for the gang to count as placed.",
        "topology_constraint": "How close the pods of the group must lie.",
    },
    podgang.TopologyConstraintGroupConfig: {
        "name": "The scaling group replica.",
        "pod_group_names": "The groups that the constraint binds together.",
        "topology_constraint": "How close their pods must lie.",
    },
    podgang.PodGangSpec: {
        "pod_groups": "The groups of like pods; the gang is placed when each has its minimum.",
        "topology_constraint": "How close all pods of the gang must lie.",
        "topology_constraint_group_configs": "Constraints that hold for some of the groups together.",
        "priority_class_name": "PriorityClass of the gang.",
        "reuse_reservation_ref": "A gang whose place this one should take; a wish, which no scheduler here reads.",
    },
    podgang.PodGangStatus: {
        "phase": "Pending: not placed; Starting: placed; Running: its minimum is ready.",
        "conditions": "Initialized, BackendReady, Scheduled, Ready, Unhealthy, DisruptionTarget.",
    },
}

_SHARED: Final[Mapping[type, Meanings]] = {
    Condition: {**CONDITION, "observed_generation": "The generation of the object it was judged by."},
}

MEANINGS: Final[Mapping[type, Meanings]] = {**_GROVE, **_TOPOLOGY, **_POD_GANG, **_SHARED, **FOREIGN}
"""By type, then by field: what the field means."""
