"""``spinney grouper``: make gangs of the pods of any workload, or check the rules by which it does."""

from pathlib import Path

import click
import msgspec
import yaml

from spinney.backends import every_backend
from spinney.backends.documents import InvalidDocument
from spinney.backends.registry import InitializationFailed
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, connected
from spinney.cli.installing.rights import grouper_rights, rules
from spinney.cli.processes import managed, until_cancelled
from spinney.cli.running import until_interrupted
from spinney.cli.terminal.logs import log_to_stderr
from spinney.grouping.configuration import LoadedConfiguration, check, load
from spinney.grouping.grouper import COMPONENT, Grouper
from spinney.kube.manager import ComponentFailed
from spinney.runtime import settle_garbage_collector

DEFAULT_CONFIGURATION = (
    "kind: GrouperConfiguration\nscheduler: {profiles: [{name: spinney-scheduler, default: true}]}\n"
)


def grouper(
    *,
    config: Path | None,
    check_only: bool,
    rights: bool,
    kubeconfig: Path | None,
    verbosity: int,
    log_json: bool,
    leader_elect: bool,
    lease_namespace: str,
    metrics_address: str,
    metrics_port: int | None,
) -> None:
    """Make gangs of the pods of any workload."""
    log_to_stderr(verbosity, json=log_json)
    configuration = configured(config)
    if check_only:
        in_force = [msgspec.to_builtins(rule) for rule in configuration.rules.rules.values()]
        click.echo(f"# {config or 'no file: defaults'}: valid. The rules in force:")
        click.echo(yaml.safe_dump({"rules": in_force}, sort_keys=False), nl=False)
        return
    if rights:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": COMPONENT},
            "rules": rules(grouper_rights(configuration, every_backend())),
        }
        click.echo(yaml.safe_dump(role, sort_keys=False), nl=False)
        return
    settle_garbage_collector()
    lease = lease_namespace if leader_elect else None

    async def use(connection: Connection) -> None:
        endpoint = (metrics_address, metrics_port)
        manager = managed(connection.client, COMPONENT, lease_namespace=lease, endpoint=endpoint)
        await until_cancelled(Grouper(manager.client, configuration, manager=manager), COMPONENT)

    try:
        until_interrupted(connected(ClusterChoice(kubeconfig), use, field_manager=COMPONENT))
    except (ComponentFailed, InitializationFailed, OSError) as error:
        raise click.ClickException(str(error)) from error


def configured(config: Path | None) -> LoadedConfiguration:
    """Return the configuration of a file, or the one that holds without a file."""
    try:
        return check(DEFAULT_CONFIGURATION) if config is None else load(config)
    except InvalidDocument as error:
        raise click.ClickException("\n".join(str(problem) for problem in error.problems)) from error
