"""What the fields of kinds mean that belong to other schedulers: KAI's, scheduler-plugins', Volcano's.

In our words, and as far as Spinney reads or writes them; see :mod:`spinney.api.schema.meanings`.
"""

from collections.abc import Mapping
from typing import Final

from spinney.api import coscheduling, kai, selectors, volcano

CONDITIONS: Final = "What is known about the object, one entry per type."
CONDITION: Final = {
    "type": "What the condition is about.",
    "status": "Whether it holds.",
    "reason": "Why, in one word for programs.",
    "message": "Why, in a sentence for people.",
    "last_transition_time": "When status last changed.",
}
_HELD: Final = "What its pods hold, by resource."
_HELD_FOR_GOOD: Final = "The part of it that may not be taken away."
_ASKED: Final = "What its pods hold and wait for, by resource."
_COUNTER: Final = "A counter: higher was written later."
_FEWEST_CHILDREN: Final = "How many sub-groups must be satisfied; all when absent."

_KAI: Final[Mapping[type, Mapping[str, str]]] = {
    kai.QueueResources: {
        "gpu": "Share of GPUs, in devices.",
        "cpu": "Share of CPU, in millicores.",
        "memory": "Share of memory, in megabytes (10^6 bytes).",
    },
    kai.QueueSpec: {
        "display_name": "What people call it.",
        "parent_queue": "The queue it is part of; absent for the root of a tree.",
        "preempt_min_runtime": "How long a gang runs before others of its queue may take its place; a duration.",
        "reclaim_min_runtime": "How long a gang runs before other queues may take its place; a duration.",
    },
    kai.QueueCondition: CONDITION,
    kai.QueueStatus: {
        "conditions": CONDITIONS,
        "child_queues": "The queues that name it as their parent.",
        "allocated": _HELD,
        "allocated_non_preemptible": _HELD_FOR_GOOD,
        "requested": _ASKED,
    },
    kai.GroupTopologyConstraint: {
        "topology": "The Topology object that defines the levels.",
        "required_topology_level": "The level of which one domain must hold all pods.",
        "preferred_topology_level": "The level of which one domain should hold all pods.",
    },
    kai.SubGroup: {
        "name": "What pods call it in their label kai.scheduler/subgroup-name.",
        "parent": "The sub-group it is part of; absent: the group itself.",
        "min_member": "How many of its pods must be placed.",
        "min_sub_group": _FEWEST_CHILDREN,
        "topology_constraint": "How close its pods must lie.",
    },
    kai.PodGroupSpec: {
        "queue": "The queue it is charged to.",
        "min_member": "How many of its pods must be placed for any to be.",
        "min_sub_group": _FEWEST_CHILDREN,
        "priority_class_name": "PriorityClass of the group.",
        "preemptibility": "Whether others may take its place; absent: the priority class decides.",
        "topology_constraint": "How close all its pods must lie.",
        "sub_groups": "Smaller groups inside it, each with a minimum of its own.",
        "preemption_delay": "How long it waits before others have to go for it; a duration.",
    },
    kai.QueueDetails: {
        "name": "The queue.",
        "queue_requested": "What the queue holds and waits for.",
        "queue_deserved": "Its quota.",
        "queue_allocated": "What it holds.",
        "queue_allocated_non_preemptible": _HELD_FOR_GOOD,
        "queue_resource_limits": "Its limit.",
        "pod_group_requested": "What the group asks for.",
        "pod_group_requested_non_preemptible": "What it asks for that could not be taken away again.",
    },
    kai.UnschedulableReason: {
        "reason": "In one word, for programs.",
        "message": "In a sentence, for people.",
    },
    kai.SchedulingCondition: {
        **CONDITION,
        "node_pool": "The pool of nodes in which it was tried.",
        "reasons": "Every reason by itself.",
        "transition_id": _COUNTER,
    },
    kai.PodGroupResources: {
        "allocated": _HELD,
        "allocated_non_preemptible": _HELD_FOR_GOOD,
        "requested": _ASKED,
    },
    kai.PodGroupStatus: {
        "conditions": CONDITIONS,
        "scheduling_conditions": "Why it does not run, by node pool.",
    },
    kai.ReceivedGpu: {
        "count": "How many devices.",
        "portion": "The part of each, as a decimal text such as 0.50.",
    },
    kai.ResourceClaimAllocation: {
        "name": "The claim, as the pod calls it.",
        "allocation": "The devices chosen for it.",
    },
    kai.BindRequestSpec: {
        "pod_name": "The pod to bind.",
        "selected_node": "The node to bind it to.",
        "received_resource_type": "Whole devices, a part of one, or a MIG slice.",
        "selected_gpu_groups": "The shared devices it takes part in.",
        "resource_claim_allocations": "Devices for the pod's claims.",
        "extended_resource_claim_allocation": "Devices for resources that are asked for as extended resources.",
        "predicted_numa_zones": "Where on the node it is expected to land.",
        "backoff_limit": "How many attempts the binder makes.",
    },
    kai.BindRequestStatus: {
        "phase": "Whether it is done.",
        "reason": "Why it failed.",
        "failed_attempts": "How often it failed so far.",
    },
    kai.TopologyLevel: {
        "node_label": "The node label whose values are the domains of the level.",
        "alias": "Another name that constraints may use.",
    },
    kai.TopologySpec: {"levels": "The levels, broad to narrow."},
}

_COSCHEDULING: Final[Mapping[type, Mapping[str, str]]] = {
    coscheduling.PodGroupSpec: {
        "min_member": "How many pods must be placeable before any is bound.",
    },
    coscheduling.PodGroupStatus: {
        "phase": "How far it has come.",
        "scheduled": "Pods that have a node.",
        "running": "Pods that run.",
        "succeeded": "Pods that ended well.",
        "failed": "Pods that failed.",
        "schedule_start_time": "When the first pod found a node and began to wait for the others.",
        "conditions": "Spinney's addition: PodGroupScheduled says whether a quorum was placed, and if not, why.",
    },
}

_VOLCANO: Final[Mapping[type, Mapping[str, str]]] = {
    volcano.NetworkTopology: {
        "mode": "hard: pods wait for a place that is close enough; soft: they prefer one.",
        "highest_tier_allowed": "The highest tier of HyperNode that may span them, as a number.",
        "highest_tier_name": "The same by name.",
    },
    volcano.SubGroupPolicy: {
        "name": "What the policy is called.",
        "label_selector": "The pods it is about.",
        "match_label_keys": "Pods with equal values of these labels form one sub-group.",
        "sub_group_size": "How many pods a sub-group has.",
        "min_sub_groups": "How many sub-groups must be placed.",
        "network_topology": "How close the pods of one sub-group must lie.",
    },
    volcano.PodGroupSpec: {
        "min_member": "How many pods must be placeable before any starts.",
        "queue": "The queue it is charged to.",
        "priority_class_name": "PriorityClass of the group.",
        "min_resources": "What the minimum needs in total; checked before pods are created.",
        "sub_group_policy": "Smaller gangs inside the group.",
    },
    volcano.PodGroupCondition: {**CONDITION, "transition_id": "The cycle that wrote it."},
    volcano.PodGroupStatus: {
        "phase": "How far it has come; Inqueue: its pods may be created.",
        "conditions": CONDITIONS,
        "running": "Pods that run.",
        "succeeded": "Pods that ended well.",
        "failed": "Pods that failed.",
    },
    volcano.QueueSpec: {
        "weight": "Share of what no queue is entitled to.",
        "capability": "The most the queue may hold.",
        "deserved": "What it is entitled to, and gets back.",
        "guarantee": "What is kept for it even when it does not need it.",
        "reclaimable": "Whether what it holds beyond its share may be taken back; true when absent.",
        "parent": "The queue it is part of.",
        "priority": "Higher goes first.",
        "type": "Free text for Volcano's users.",
        "affinity": "Node groups it should or must use.",
        "extend_clusters": "Other clusters it may use; not read here.",
        "dequeue_strategy": "Whether a job that does not fit holds up those behind it.",
    },
    volcano.QueueStatus: {
        "state": "Whether it takes work.",
        "unknown": "Groups in phase Unknown.",
        "pending": "Groups in phase Pending.",
        "running": "Groups in phase Running.",
        "inqueue": "Groups in phase Inqueue.",
        "completed": "Groups in phase Completed.",
        "allocated": _HELD,
        "reservation": "Nodes and resources that are kept for it.",
    },
    selectors.LabelSelector: {
        "match_labels": "Labels and the value each must have.",
        "match_expressions": "Further requirements; all must hold.",
    },
    selectors.LabelSelectorRequirement: {
        "key": "The label.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "What it is compared with; none for Exists and DoesNotExist.",
    },
}

FOREIGN: Final[Mapping[type, Mapping[str, str]]] = {**_KAI, **_COSCHEDULING, **_VOLCANO}
"""By type, then by field: what the field means."""
