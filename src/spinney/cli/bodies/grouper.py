"""``spinney grouper``: make gangs of the pods of any workload, or check the rules by which it does."""

from pathlib import Path

import click
import msgspec
import yaml

from spinney.backends import every_backend
from spinney.backends.documents import InvalidDocument
from spinney.backends.registry import InitializationFailed
from spinney.cli.installing.rights import grouper_rights, rules
from spinney.cli.options import ProcessOptions
from spinney.cli.processes import print_checked, run_process, until_cancelled
from spinney.cli.terminal.logs import log_to_stderr
from spinney.grouping.configuration import LoadedGrouperConfiguration, check, load
from spinney.grouping.grouper import COMPONENT, Grouper
from spinney.kube.manager import Manager

DEFAULT_CONFIGURATION = "kind: GrouperConfiguration"


def grouper(*, config: Path | None, check_only: bool, rights: bool, process: ProcessOptions) -> None:
    log_to_stderr(process.verbosity, json=process.log_json)
    configuration = configured(config)
    if check_only:
        in_force = [msgspec.to_builtins(rule) for rule in configuration.rules.rules.values()]
        print_checked(config, {"rules": in_force}, "The rules in force:")
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

    async def run(manager: Manager) -> None:
        await until_cancelled(Grouper(manager.client, configuration, manager=manager), COMPONENT)

    run_process(process, COMPONENT, run, InitializationFailed)


def configured(config: Path | None) -> LoadedGrouperConfiguration:
    """Return the configuration of a file, or the one that holds without a file."""
    try:
        return check(DEFAULT_CONFIGURATION) if config is None else load(config)
    except InvalidDocument as error:
        raise click.ClickException("\n".join(str(problem) for problem in error.problems)) from error
