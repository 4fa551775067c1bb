"""The session scheduler: plugins over a snapshot of the cluster, actions that decide, results to carry out.

What plugin authors need is importable from here; see ``docs/plugins.md``.
"""

from spinney.scheduler.arguments import read_arguments
from spinney.scheduler.config import PluginOption, SchedulerConfig, load_config, parse_config
from spinney.scheduler.events import BatchEvent, CapacityVerdict, Event, EventHandler, Scenario
from spinney.scheduler.hooks import DoesNotFit
from spinney.scheduler.inventory import Inventory
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.nodes import NodeInfo, NodeSet, Scores
from spinney.scheduler.plugin import (
    Builder,
    Constraint,
    Plugin,
    PluginRegistry,
    default_registry,
    register_plugin_builder,
)
from spinney.scheduler.results import CycleResult
from spinney.scheduler.scheduler import Scheduler
from spinney.scheduler.session import Session
from spinney.scheduler.statement import Statement
from spinney.scheduler.tasks import PodInfo

__all__ = [
    "BatchEvent",
    "Builder",
    "CapacityVerdict",
    "Constraint",
    "CycleResult",
    "DoesNotFit",
    "Event",
    "EventHandler",
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
