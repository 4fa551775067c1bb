"""The built-in plugins, one module each, and the order in which a profile has them unless it says otherwise."""

from collections.abc import Mapping
from functools import partial
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
from spinney.extensions.arguments import NoArguments, read_arguments

_OWN: Final[tuple[type[FrameworkPlugin], ...]] = (
    SchedulingGates,
    DynamicResources,
    DefaultPreemption,
    DefaultBinder,
    GroupTopology,
    GroupRelocation,
    GroupPreemption,
    Coscheduling,
)
DEFAULT_PLUGINS: Final = (_OWN[0].name, *KUBE_RULES, *(plugin.name for plugin in _OWN[1:]))
"""What a profile runs by default, in order."""


def _rules(name: str, handle: Handle, arguments: Mapping[str, Any]) -> FrameworkPlugin:
    read_arguments(NoArguments, arguments)
    return KUBE_RULES[name]


BUILT_IN: Final[Mapping[str, Builder]] = {
    **{name: partial(_rules, name) for name in KUBE_RULES},
    "VolumeBinding": VolumeBinding,
    WaitForGrouper.name: WaitForGrouper,
    PrioritySort.name: PrioritySort,
    **{plugin.name: plugin for plugin in _OWN},
}
"""Builders of all built-in plugins; PrioritySort is there for profiles without Coscheduling."""
