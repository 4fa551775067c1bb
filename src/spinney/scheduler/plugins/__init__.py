"""The built-in plugins, one module each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spinney.scheduler.framework.plugin import REGISTERED, Builder, PluginRegistry
from spinney.scheduler.plugins.backfill.plugin import Backfill
from spinney.scheduler.plugins.dynamicresources import DynamicResources
from spinney.scheduler.plugins.elastic import Elastic
from spinney.scheduler.plugins.gpuorder import GpuPack, GpuSpread
from spinney.scheduler.plugins.gpusharingorder import GpuSharingOrder
from spinney.scheduler.plugins.kubeflow import Kubeflow
from spinney.scheduler.plugins.largestfirst import LargestFirst
from spinney.scheduler.plugins.minruntime import MinRuntimePlugin
from spinney.scheduler.plugins.nodeavailability import NodeAvailability
from spinney.scheduler.plugins.nodeplacement import NodePlacement
from spinney.scheduler.plugins.nominatednode import NominatedNode
from spinney.scheduler.plugins.packing.plugin import Packing
from spinney.scheduler.plugins.podaffinity import PodAffinity
from spinney.scheduler.plugins.predicates import Predicates
from spinney.scheduler.plugins.priority import Priority
from spinney.scheduler.plugins.proportion import ProportionPlugin
from spinney.scheduler.plugins.ray import Ray
from spinney.scheduler.plugins.reservation import ReservationPlugin
from spinney.scheduler.plugins.resourcetype import ResourceType
from spinney.scheduler.plugins.subgrouporder import SubGroupOrder
from spinney.scheduler.plugins.taskorder import TaskOrder
from spinney.scheduler.plugins.topology.plugin import TopologyPlugin

BUILT_IN: Final[Mapping[str, Builder]] = MappingProxyType(
    {
        "podaffinity": PodAffinity,
        "packing": Packing,
        "backfill": Backfill,
        "largestfirst": LargestFirst,
        "predicates": Predicates,
        "proportion": ProportionPlugin,
        "priority": Priority,
        "elastic": Elastic,
        "kubeflow": Kubeflow,
        "ray": Ray,
        "nodeavailability": NodeAvailability,
        "gpusharingorder": GpuSharingOrder,
        "gpupack": GpuPack,
        "gpuspread": GpuSpread,
        "resourcetype": ResourceType,
        "subgrouporder": SubGroupOrder,
        "taskorder": TaskOrder,
        "nominatednode": NominatedNode,
        "dynamicresources": DynamicResources,
        "nodeplacement": NodePlacement,
        "minruntime": MinRuntimePlugin,
        "topology": TopologyPlugin,
        "reservation": ReservationPlugin,
    }
)
"""Builders by the name the configuration uses."""


def default_registry() -> PluginRegistry:
    """Return a new registry with the built-in plugins, those registered in this process and the installed ones."""
    registry = PluginRegistry(BUILT_IN)
    for name in REGISTERED:
        registry.register(name, REGISTERED.builder(name))
    registry.offer_entry_points()
    return registry
