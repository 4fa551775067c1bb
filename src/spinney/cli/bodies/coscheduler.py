"""``spinney coscheduler``: run the pod-at-a-time scheduler with coscheduling against a cluster."""

from contextlib import closing
from pathlib import Path

from spinney.api.documents import InvalidConfiguration
from spinney.cli.manifests.offline_backends import Unreachable
from spinney.cli.options import ProcessOptions
from spinney.cli.processes import print_checked, run_process
from spinney.cli.running import in_one_line
from spinney.cli.settings.session import PluginText, policies_of
from spinney.cli.terminal.logs import log_to_stderr
from spinney.coscheduling.framework.registry import PluginRegistry
from spinney.coscheduling.process.configuration import (
    CoschedulerConfiguration,
    load_configuration,
)
from spinney.coscheduling.process.process import COMPONENT, CoschedulerProcess
from spinney.kube.client import Client
from spinney.kube.manager import Manager
from spinney.runtime import Runtime
from spinney.sim.policies.files import with_framework_policies


def coscheduler(
    *,
    config: Path | None,
    plugins: tuple[PluginText, ...],
    check_only: bool,
    controller: bool,
    process: ProcessOptions,
) -> None:
    log_to_stderr(process.verbosity, json=process.log_json)
    with in_one_line(ValueError):
        configuration = load_configuration(config) if config is not None else CoschedulerConfiguration()
        policies = policies_of(plugins).only_framework()
        configuration, registry = with_framework_policies(configuration, policies)
        if check_only:
            _check(configuration, registry)
            print_checked(config, configuration)
            return

    async def run(manager: Manager) -> None:
        scheduler = CoschedulerProcess(
            manager.client, configuration, manager=manager, registry=registry, with_controller=controller
        )
        manager.stop_on_signals()
        await scheduler.run()

    run_process(process, COMPONENT, run, InvalidConfiguration)


def _check(configuration: CoschedulerConfiguration, registry: PluginRegistry) -> None:
    """Make every profile with its plugins, as the process would; raises what the process would."""
    runtime = Runtime.system()
    with closing(runtime.executor):
        client = Client(Unreachable(), runtime, field_manager=COMPONENT)
        CoschedulerProcess(client, configuration, registry=registry)
