"""``spinney grouper``: make gangs of the pods of any workload, or check the rules by which it does."""

from pathlib import Path

import click
import msgspec
import structlog
import yaml

from spinney.api.admission import MUTATING_WEBHOOK_CONFIGURATION
from spinney.api.documents import InvalidDocument
from spinney.backends import every_backend
from spinney.backends.registry import InitializationFailed
from spinney.cli.installing.rights import grouper_rights, rules
from spinney.cli.options import ProcessOptions
from spinney.cli.processes import print_checked, run_process
from spinney.cli.running import in_one_line
from spinney.cli.terminal.logs import log_to_stderr
from spinney.grouping.configuration import GrouperConfiguration, LoadedGrouperConfiguration, check, load
from spinney.grouping.grouper import COMPONENT, Grouper
from spinney.grouping.webhook import WEBHOOK, webhook_process
from spinney.kube.config import namespace_in_cluster
from spinney.kube.manager import Manager
from spinney.kube.webhooks.registration import unregister

log = structlog.get_logger()

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
        running = Grouper(manager.client, configuration, manager=manager)
        await manager.reach()
        await _tell_at_creation(running, manager, configuration.written)
        manager.stop_on_signals()
        await running.run()

    run_process(process, COMPONENT, run, InitializationFailed)


async def _tell_at_creation(running: Grouper, manager: Manager, written: GrouperConfiguration) -> None:
    """Have the API server ask about new pods if it can reach this process, and no longer where that is switched off."""
    namespace = namespace_in_cluster()
    if namespace is None:
        log.info("pods are told their gang after their creation: this process does not run in a cluster")
        return
    if not written.admission.enabled:
        await unregister(manager.unfenced, MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        return
    webhook = webhook_process(running, manager.unfenced, written, namespace=namespace)
    manager.add_runnable("webhook", webhook.run, needs_lease=False)
    manager.check_ready("webhook", webhook.unready)


def configured(config: Path | None) -> LoadedGrouperConfiguration:
    """Return the configuration of a file, or the one that holds without a file."""
    with in_one_line(InvalidDocument):
        return check(DEFAULT_CONFIGURATION) if config is None else load(config)
