"""The session scheduler that a process runs: its configuration, checked, and what it is composed of.

Loading this takes most of a start, so ``spinney scheduler`` does so while its cluster is being read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from spinney.api.documents import InvalidConfiguration
from spinney.api.resource import Resource
from spinney.autoscaling.provisioning import provisioning_for
from spinney.cli.running import in_one_line
from spinney.extensions.arguments import read_arguments, written
from spinney.extensions.registry import UnknownPlugin
from spinney.kube.manager import Manager
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.process import SchedulerProcess
from spinney.scheduler.process.shadow import Shadow
from spinney.scheduler.process.virtual_gangs import VirtualGangs

if TYPE_CHECKING:
    from spinney.cli.settings.session import PluginText

_LOST: Final[Mapping[str, str]] = {
    "predicates": "pods with rules about nodes wait, and no pod goes to a node that is cordoned, tainted or not ready",
    "proportion": "queues have no quotas and fair shares, and jobs in queues with a limit wait",
    "priority": "the priority of jobs does not decide who comes first",
    "elastic": "jobs below their minimum do not come before those that only grow",
    "kubeflow": "the master of a Kubeflow job is not placed before its workers",
    "ray": "the head of a Ray cluster is not placed before its workers",
    "nodeavailability": "nodes with free room are not preferred to those where something must first terminate",
    "packing": "pods and shares of GPUs are not packed, so large gangs find less room",
    "resourcetype": "pods without GPUs do not avoid GPU nodes",
    "podaffinity": "preferred affinity between pods is ignored",
    "subgrouporder": "sub-groups below their minimum do not come first",
    "taskorder": "the order that pods of a job ask for is ignored",
    "nominatednode": "a pod does not prefer the node it was nominated for",
    "dynamicresources": "pods with device claims wait",
    "minruntime": "jobs may be evicted before their min-runtime is over",
    "topology": "gangs that require a topology level wait, and preferred levels are ignored",
}
"""What a configuration loses that leaves out a default plugin."""
_INSTEAD: Final[Mapping[str, frozenset[str]]] = {
    "packing": frozenset({"nodeplacement", "gpupack", "gpuspread"}),
}
"""Plugins that do another thing in the place of a default one."""


@dataclass(frozen=True)
class SessionSettings:
    """A configuration with the plugins it names."""

    config: SchedulerConfig
    registry: PluginRegistry

    def changed(self, *, verbosity: int, scheduler_names: tuple[str, ...]) -> "SessionSettings":
        """Return it with what options of the command say."""
        config = msgspec.structs.replace(
            self.config,
            verbosity=max(self.config.verbosity, verbosity),
            scheduler_names=scheduler_names or self.config.scheduler_names,
        )
        return SessionSettings(config, self.registry)

    def spelled_out(self) -> SchedulerConfig:
        """Return the configuration with every argument that plugins declare."""
        plugins = []
        for option in self.config.plugins:
            kind = self.registry.arguments_type(option.name)
            arguments = option.arguments if kind is None else written(read_arguments(kind, option.arguments))
            plugins.append(msgspec.structs.replace(option, arguments=arguments))
        return msgspec.structs.replace(self.config, plugins=tuple(plugins))

    def losses(self) -> list[str]:
        """Return a sentence for each default plugin that is missing or disabled."""
        present = {option.name for option in self.config.plugins if option.enabled}
        return [
            f"plugins: without plugin {name} {loss}."
            for name, loss in _LOST.items()
            if name not in present and not present & _INSTEAD.get(name, frozenset())
        ]

    def composed(
        self, manager: Manager, served: frozenset[Resource], *, dry_run: bool
    ) -> tuple[SchedulerProcess, Shadow | None]:
        """Return a scheduler on a cluster that serves some optional kinds, and the shadow it is in a dry run."""
        inventory, config = Inventory.for_config(self.config), self.config
        shadow = Shadow(inventory, manager.client.runtime.clock) if dry_run else None
        requests, asking = (None, config) if dry_run else provisioning_for(manager, inventory, config, self.registry)
        with in_one_line(InvalidConfiguration, UnknownPlugin):
            process = SchedulerProcess(
                manager.client,
                asking,
                manager=manager,
                inventory=inventory,
                registry=self.registry,
                metrics=CycleMetrics(manager.metrics.registry),
                effects=shadow,
                virtual=None if dry_run else _admission(manager, inventory, config),
                node_requests=requests,
                served=served,
            )
        return process, shadow


def session_settings(config: Path | None, plugins: "tuple[PluginText, ...]") -> SessionSettings:
    """Return the configuration with the plugins of files, checked with those that are installed and with their own."""
    with in_one_line(InvalidConfiguration, UnknownPlugin):
        if plugins:
            settings, registry = _given(config, plugins)
        else:
            registry = default_registry()
            settings = load_config(config, registry) if config is not None else SchedulerConfig()
        Scheduler(settings, Inventory.for_config(settings), registry=registry)
    return SessionSettings(settings, registry)


def _given(config: Path | None, plugins: "tuple[PluginText, ...]") -> tuple[SchedulerConfig, PluginRegistry]:
    # A file may hold plugins of either scheduler, so this loads both; a process without files starts without it.
    from spinney.cli.settings.session import session_policies  # noqa: PLC0415
    from spinney.sim.policies.files import with_policies  # noqa: PLC0415

    policies = session_policies(plugins)
    settings = load_config(config, policies.registry()) if config is not None else SchedulerConfig()
    return with_policies(settings, policies)


def _admission(manager: Manager, inventory: Inventory, settings: SchedulerConfig) -> VirtualGangs | None:
    """Return what admits suspended workloads, where the configuration names kinds of them."""
    if not settings.suspended_workloads.kinds:
        return None
    from spinney.queueing.admission import admission_for  # noqa: PLC0415 - brings the grouper along

    return admission_for(manager, inventory, settings)
