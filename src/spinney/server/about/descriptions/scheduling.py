"""Texts about priorities and native gangs."""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions.texts import ITSELF, Texts

TYPES: Final[Mapping[str, Texts]] = {
    "scheduling.PriorityClass": {
        ITSELF: "A name for how important pods are.",
        "value": "The number that pods of this class get. Higher ones are placed first. Fixed.",
        "globalDefault": "Pods that name no class are of this one. At most one class says so.",
        "description": "When to use the class, for people.",
        "preemptionPolicy": "Whether pods of this class may have less important ones evicted. Fixed.",
    },
    "scheduling.Workload": {
        ITSELF: "The plan of a workload's groups of pods: what is scheduled together, written once for its controller.",
        "spec": "The kinds of groups there are.",
    },
    "scheduling.WorkloadSpec": {
        ITSELF: "The kinds of groups that a workload consists of.",
        "controllerRef": "The object that the workload belongs to, such as a Job.",
        "podGroupTemplates": "From what groups of pods are made, by name.",
        "compositePodGroupTemplates": "From what groups of groups are made, by name.",
        "podGroups": "The groups of pods, by name.",
    },
    "scheduling.PodGroup": {
        ITSELF: "Pods that a scheduler places together: all that are needed, or none.",
        "status": "Whether the group was placed, and if not, why.",
    },
    "scheduling.PodGroupSpec": {
        ITSELF: "How a group is scheduled.",
        "parentCompositePodGroupName": "The group of groups that this one is scheduled within.",
        "workloadRef": "The workload, and the template in it, that the group was made from.",
        "podGroupTemplateRef": "The template that the group was made from.",
        "schedulingPolicy": "basic places pods one by one; gang waits until minCount of them fit at once.",
        "schedulingConstraints": "Topology: the label that all nodes of the group have to share.",
        "resourceClaims": "Devices that the pods of the group share.",
        "disruptionMode": "Whether pods may be preempted singly, or the group only as a whole.",
        "priorityClassName": "Names the class that says how important the group is.",
        "priority": "How important the group is, as a number. Filled in from the class.",
        "preemptionPolicy": "Whether less important pods may be evicted for the group.",
    },
    "scheduling.PodGroupStatus": {
        ITSELF: "What became of a group.",
        "conditions": "Whether the group was placed, or is being disrupted, and why.",
        "resourceClaimStatuses": "The claims that were made for the group.",
    },
    "scheduling.CompositePodGroup": {ITSELF: "Groups of pods that a scheduler places together, as a tree."},
    "core.PodSchedulingGroup": {
        ITSELF: "What a pod is scheduled together with.",
        "podGroupName": "The PodGroup, in the pod's namespace. Fixed.",
    },
}
