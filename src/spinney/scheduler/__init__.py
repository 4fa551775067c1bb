"""The session scheduler: plugins over a snapshot of the cluster, actions that decide, results to carry out.

What plugin authors need is importable from here; see ``docs/plugins.md``. It is imported when it is first asked for, so
that a process can begin to read its cluster before all of the scheduler is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spinney.scheduler.config import PluginOption, SchedulerConfig, load_config, parse_config
    from spinney.scheduler.cycle.scheduler import Scheduler
    from spinney.scheduler.framework.arguments import read_arguments
    from spinney.scheduler.framework.events import BatchEvent, CapacityVerdict, Event, EventHandler, Scenario
    from spinney.scheduler.framework.extension_points import DoesNotFit
    from spinney.scheduler.framework.jobs import PodGroupInfo
    from spinney.scheduler.framework.nodes import FirstChoice, NodeInfo, NodeSet, Scores
    from spinney.scheduler.framework.plugin import (
        Builder,
        Constraint,
        Plugin,
        PluginRegistry,
        register_plugin_builder,
    )
    from spinney.scheduler.framework.results import CycleResult
    from spinney.scheduler.framework.session import Session
    from spinney.scheduler.framework.statement import Statement
    from spinney.scheduler.framework.tasks import PodInfo
    from spinney.scheduler.intake.inventory import Inventory
    from spinney.scheduler.plugins import default_registry

__all__ = [
    "BatchEvent",
    "Builder",
    "CapacityVerdict",
    "Constraint",
    "CycleResult",
    "DoesNotFit",
    "Event",
    "EventHandler",
    "FirstChoice",
    "Inventory",
    "NodeInfo",
    "NodeSet",
    "Plugin",
    "PluginOption",
    "PluginRegistry",
    "PodGroupInfo",
    "PodInfo",
    "Scenario",
    "Scheduler",
    "SchedulerConfig",
    "Scores",
    "Session",
    "Statement",
    "default_registry",
    "load_config",
    "parse_config",
    "read_arguments",
    "register_plugin_builder",
]

_HOMES: Final = {
    "BatchEvent": "framework.events",
    "Builder": "framework.plugin",
    "CapacityVerdict": "framework.events",
    "Constraint": "framework.plugin",
    "CycleResult": "framework.results",
    "DoesNotFit": "framework.extension_points",
    "Event": "framework.events",
    "EventHandler": "framework.events",
    "FirstChoice": "framework.nodes",
    "Inventory": "intake.inventory",
    "NodeInfo": "framework.nodes",
    "NodeSet": "framework.nodes",
    "Plugin": "framework.plugin",
    "PluginOption": "config",
    "PluginRegistry": "framework.plugin",
    "PodGroupInfo": "framework.jobs",
    "PodInfo": "framework.tasks",
    "Scenario": "framework.events",
    "Scheduler": "cycle.scheduler",
    "SchedulerConfig": "config",
    "Scores": "framework.nodes",
    "Session": "framework.session",
    "Statement": "framework.statement",
    "default_registry": "plugins",
    "load_config": "config",
    "parse_config": "config",
    "read_arguments": "framework.arguments",
    "register_plugin_builder": "framework.plugin",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for from the module it lives in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
