"""The session scheduler: plugins over a snapshot of the cluster, actions that decide, results to carry out.

What plugin authors need is importable from here; see ``docs/plugins.md``. It is imported when it is first asked for, so
that a process can begin to read its cluster before all of the scheduler is loaded.
"""

from typing import TYPE_CHECKING

from spinney.lazy_exports import exported

if TYPE_CHECKING:
    from spinney.cluster.classes import RequestClass
    from spinney.extensions.arguments import read_arguments
    from spinney.gangs.tree import GroupSet, Member, PodSet
    from spinney.scheduler.config import PluginOption, SchedulerConfig
    from spinney.scheduler.config_files import load_config, parse_config
    from spinney.scheduler.cycle.scheduler import Scheduler
    from spinney.scheduler.fairshare.amounts import Amounts
    from spinney.scheduler.fairshare.bounds import Lot
    from spinney.scheduler.framework.events import BatchEvent, CapacityVerdict, Event, EventHandler, Scenario
    from spinney.scheduler.framework.extension_points import DoesNotFit, QueueTurn
    from spinney.scheduler.framework.jobs import PodGroupInfo
    from spinney.scheduler.framework.nodes import FirstChoice, NodeInfo, NodeSet, Scores
    from spinney.scheduler.framework.plugin import Builder, Constraint, Plugin, PluginRegistry, register_plugin_builder
    from spinney.scheduler.framework.pods_on_nodes import PodOnNode
    from spinney.scheduler.framework.results import CycleResult
    from spinney.scheduler.framework.session import Session
    from spinney.scheduler.framework.statement import Statement
    from spinney.scheduler.framework.tasks import PodInfo
    from spinney.scheduler.intake.inventory import Inventory
    from spinney.scheduler.plugins import default_registry

__all__ = [
    "Amounts",
    "BatchEvent",
    "Builder",
    "CapacityVerdict",
    "Constraint",
    "CycleResult",
    "DoesNotFit",
    "Event",
    "EventHandler",
    "FirstChoice",
    "GroupSet",
    "Inventory",
    "Lot",
    "Member",
    "NodeInfo",
    "NodeSet",
    "Plugin",
    "PluginOption",
    "PluginRegistry",
    "PodGroupInfo",
    "PodInfo",
    "PodOnNode",
    "PodSet",
    "QueueTurn",
    "RequestClass",
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

__getattr__ = exported(__name__, __file__)
