"""``spinney coscheduler``: run the pod-at-a-time scheduler with coscheduling against a cluster."""

from pathlib import Path

import click
import msgspec
import yaml

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, connected
from spinney.cli.processes import managed, until_cancelled
from spinney.cli.running import until_interrupted
from spinney.cli.settings.plugin_files import PluginText, policies_of
from spinney.cli.terminal.logs import log_to_stderr
from spinney.coscheduling.configuration import CoschedulerConfiguration, InvalidConfiguration, load_configuration
from spinney.coscheduling.framework.registry import PluginRegistry
from spinney.coscheduling.process import COMPONENT, CoschedulerProcess
from spinney.kube.client import Client
from spinney.kube.manager import ComponentFailed
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.server import ApiServer
from spinney.sim.policies import with_framework_policies
from spinney.sim.transport import InProcessTransport


def coscheduler(
    *,
    config: Path | None,
    plugins: tuple[PluginText, ...],
    check_only: bool,
    kubeconfig: Path | None,
    verbosity: int,
    log_json: bool,
    leader_elect: bool,
    lease_namespace: str,
    metrics_address: str,
    metrics_port: int | None,
    controller: bool,
) -> None:
    """Run the coscheduler against a cluster."""
    settle_garbage_collector()
    log_to_stderr(verbosity, json=log_json)
    lease = lease_namespace if leader_elect else None
    try:
        configuration = load_configuration(config) if config is not None else CoschedulerConfiguration()
        policies = policies_of(plugins).only_framework()
        configuration, registry = with_framework_policies(configuration, policies)
        if check_only:
            _check(configuration, registry)
            click.echo(f"# {config or 'no file: defaults'}: valid.")
            click.echo(yaml.safe_dump(msgspec.to_builtins(configuration), sort_keys=False), nl=False)
            return
    except ValueError as error:
        raise click.ClickException(str(error)) from error

    async def use(connection: Connection) -> None:
        endpoint = (metrics_address, metrics_port)
        manager = managed(connection.client, COMPONENT, lease_namespace=lease, endpoint=endpoint)
        process = CoschedulerProcess(
            manager.client, configuration, manager=manager, registry=registry, with_controller=controller
        )
        await until_cancelled(process, COMPONENT)

    try:
        until_interrupted(connected(ClusterChoice(kubeconfig), use, field_manager=COMPONENT))
    except (ComponentFailed, InvalidConfiguration, OSError) as error:
        raise click.ClickException(str(error)) from error


def _check(configuration: CoschedulerConfiguration, registry: PluginRegistry) -> None:
    """Make every profile with its plugins, as the process would; raises what the process would."""
    runtime = Runtime.system()
    try:
        client = Client(InProcessTransport(ApiServer(runtime)), runtime, field_manager=COMPONENT)
        CoschedulerProcess(client, configuration, registry=registry)
    finally:
        runtime.executor.close()
