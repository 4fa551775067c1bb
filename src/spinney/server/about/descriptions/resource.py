"""Texts about devices and claims for them."""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions.texts import ITSELF, Texts

TYPES: Final[Mapping[str, Texts]] = {
    "resource.ResourceClaim": {
        ITSELF: "A request for devices, which a scheduler fills and pods then use.",
        "spec": "What devices are wanted. Fixed.",
        "status": "Which devices were found, and who uses them.",
    },
    "resource.ResourceClaimSpec": {
        ITSELF: "What devices are wanted.",
        "devices": "Requests for devices, constraints between them, and their configuration.",
    },
    "resource.ResourceClaimStatus": {
        ITSELF: "What a claim has got.",
        "allocation": "The devices, and the nodes they can be used from. Absent until a scheduler found some.",
        "reservedFor": "The pods or groups that may use the devices now.",
        "devices": "What drivers report about the devices.",
    },
    "resource.ResourceClaimTemplate": {ITSELF: "From which a claim is made for each pod that names it."},
    "resource.ResourceClaimTemplateSpec": {
        ITSELF: "What the claims look like.",
        "metadata": "Labels and annotations for the claims.",
        "spec": "The spec of the claims.",
    },
    "resource.DeviceClass": {ITSELF: "A name for a sort of devices, which claims ask by."},
    "resource.DeviceClassSpec": {
        ITSELF: "Which devices are of a class.",
        "selectors": "Expressions that hold for devices of the class.",
        "config": "Configuration for the drivers of such devices.",
        "extendedResourceName": "The plain resource by which pods can ask for such devices without a claim.",
    },
    "resource.ResourceSlice": {ITSELF: "Devices that a driver offers, usually those of one node."},
    "resource.ResourceSliceSpec": {
        ITSELF: "The devices of a slice, and where they can be used.",
        "driver": "Who manages the devices.",
        "pool": "The set of slices that this one is a part of.",
        "nodeName": "The node that has the devices.",
        "nodeSelector": "The nodes that can use the devices.",
        "allNodes": "Every node can use the devices.",
        "devices": "The devices, with attributes and capacities.",
        "perDeviceNodeSelection": "Each device says by itself which nodes can use it.",
        "sharedCounters": "Budgets that devices cut from one piece of hardware draw on.",
    },
}
