"""The coscheduler that a process runs: its configuration and the plugins it may name.

Loading this takes most of a start, so ``spinney coscheduler`` does so while its cluster is being read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.api.resource import Resource
from spinney.cli.running import in_one_line
from spinney.coscheduling.framework.registry import FrameworkRegistry
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.process.configuration import CoschedulerConfiguration, load_configuration
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.client import Client
from spinney.kube.manager import Manager

if TYPE_CHECKING:
    from spinney.cli.settings.session import PluginText


@dataclass(frozen=True)
class CoschedulerSettings:
    """A configuration with the plugins it names."""

    configuration: CoschedulerConfiguration
    registry: FrameworkRegistry

    def composed(
        self,
        client: Client,
        manager: Manager | None = None,
        served: frozenset[Resource] | None = None,
        *,
        controller: bool = True,
    ) -> CoschedulerProcess:
        """Return a coscheduler on a cluster that serves some kinds; raises :class:`InvalidConfiguration`."""
        return CoschedulerProcess(
            client,
            self.configuration,
            manager=manager,
            registry=self.registry,
            with_controller=controller,
            served=served,
        )


def coscheduler_settings(config: Path | None, plugins: "tuple[PluginText, ...]") -> CoschedulerSettings:
    """Return the configuration with the plugins of files and those that are installed."""
    with in_one_line(ValueError):
        configuration = load_configuration(config) if config is not None else CoschedulerConfiguration()
        if plugins:
            return CoschedulerSettings(*_given(configuration, plugins))
        return CoschedulerSettings(configuration, FrameworkRegistry.installed(BUILT_IN))


def _given(
    configuration: CoschedulerConfiguration, plugins: "tuple[PluginText, ...]"
) -> tuple[CoschedulerConfiguration, FrameworkRegistry]:
    # A file may hold plugins of either scheduler, so this loads both; a process without files starts without it.
    from spinney.cli.settings.session import policies_of  # noqa: PLC0415
    from spinney.sim.policies.files import with_framework_policies  # noqa: PLC0415

    return with_framework_policies(configuration, policies_of(plugins).only_framework())
