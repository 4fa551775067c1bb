"""The built-in plugins, one module each, and the order in which a profile has them unless it says otherwise."""

from collections.abc import Mapping
from typing import Any, Final

from spinney.coscheduling.framework import FrameworkPlugin, Handle
from spinney.coscheduling.framework.registry import Builder
from spinney.coscheduling.plugins.coscheduling import Coscheduling
from spinney.coscheduling.plugins.default_binder import DefaultBinder
from spinney.coscheduling.plugins.default_preemption import DefaultPreemption
from spinney.coscheduling.plugins.dynamic_resources import DynamicResources
from spinney.coscheduling.plugins.group_preemption import GroupPreemption
from spinney.coscheduling.plugins.group_relocation import GroupRelocation
from spinney.coscheduling.plugins.group_topology import GroupTopology
from spinney.coscheduling.plugins.kube_rules import KUBE_RULES
from spinney.coscheduling.plugins.priority_sort import PrioritySort
from spinney.coscheduling.plugins.scheduling_gates import SchedulingGates
from spinney.coscheduling.plugins.volume_binding import VolumeBinding
from spinney.coscheduling.plugins.wait_for_grouper import WaitForGrouper

DEFAULT_PLUGINS: Final = (
    SchedulingGates.name,
    *KUBE_RULES,
    DynamicResources.name,
    DefaultPreemption.name,
    DefaultBinder.name,
    GroupTopology.name,
    GroupRelocation.name,
    GroupPreemption.name,
    Coscheduling.name,
)
"""What a profile runs by default, in order."""


def _rules(name: str) -> Builder:
    def build(handle: Handle, arguments: Mapping[str, Any]) -> FrameworkPlugin:
        if arguments:
            raise ValueError(f"args: it takes none, found {', '.join(sorted(arguments))}")
        return KUBE_RULES[name]

    return build


BUILT_IN: Final[Mapping[str, Builder]] = {
    **{name: _rules(name) for name in KUBE_RULES},
    "VolumeBinding": VolumeBinding,
    SchedulingGates.name: SchedulingGates,
    WaitForGrouper.name: WaitForGrouper,
    PrioritySort.name: PrioritySort,
    DynamicResources.name: DynamicResources,
    DefaultPreemption.name: DefaultPreemption,
    DefaultBinder.name: DefaultBinder,
    GroupTopology.name: GroupTopology,
    GroupRelocation.name: GroupRelocation,
    GroupPreemption.name: GroupPreemption,
    Coscheduling.name: Coscheduling,
}
"""Builders of all built-in plugins; PrioritySort is there for profiles without Coscheduling."""
