"""``spinney scheduler``: run the session scheduler against a cluster, or beside another scheduler without writing."""

import socket
from pathlib import Path

import click
import msgspec
from prometheus_client import CollectorRegistry

from spinney.cli.logs import log_to_stderr
from spinney.cli.running import connected, until_interrupted
from spinney.kube.client import Client
from spinney.kube.fencing import FencedTransport
from spinney.kube.lease import LeaderElection
from spinney.kube.manager import ComponentFailed, Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.serving import HealthServer
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.scheduler.config import InvalidConfiguration, SchedulerConfig, load_config
from spinney.scheduler.cycle_metrics import CycleMetrics
from spinney.scheduler.plugin import UnknownPlugin
from spinney.scheduler.process import COMPONENT, SchedulerProcess

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--config", type=_FILE, help="Configuration file: Spinney's own form, or a KAI SchedulingShard.")
@click.option("--kubeconfig", type=_FILE, help="Cluster to schedule; by default the one this runs in, or kubectl's.")
@click.option("-v", "verbosity", default=1, show_default=True, metavar="N", help="How much to log, as klog counts.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--leader-elect/--no-leader-elect", default=False, help="Schedule only while holding the lease.")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the lease is.")
@click.option("--metrics-port", type=int, help="Serve /metrics, /livez and /readyz on this port; 0 takes a free one.")
def scheduler(
    *,
    config: Path | None,
    kubeconfig: Path | None,
    verbosity: int,
    log_json: bool,
    leader_elect: bool,
    lease_namespace: str,
    metrics_port: int | None,
) -> None:
    """Run the session scheduler against a cluster."""
    settle_garbage_collector()
    log_to_stderr(verbosity, json=log_json)
    try:
        settings = load_config(config) if config is not None else SchedulerConfig()
    except InvalidConfiguration as error:
        raise click.ClickException(str(error)) from error
    settings = msgspec.structs.replace(settings, verbosity=max(settings.verbosity, verbosity))
    lease = lease_namespace if leader_elect else None

    async def use(client: Client, runtime: Runtime) -> None:
        process = _process(client, runtime, settings, lease_namespace=lease, metrics_port=metrics_port)
        process.manager.stop_on_signals()
        await process.run()

    try:
        until_interrupted(connected(use, kubeconfig=kubeconfig, field_manager=COMPONENT))
    except (ComponentFailed, InvalidConfiguration, UnknownPlugin, OSError) as error:
        raise click.ClickException(str(error)) from error


def _process(
    client: Client,
    runtime: Runtime,
    config: SchedulerConfig,
    *,
    lease_namespace: str | None,
    metrics_port: int | None,
) -> SchedulerProcess:
    """Compose the process: with a lease nothing is written without holding it."""
    registry = CollectorRegistry()
    metrics = KubeMetrics(registry)
    election = None
    if lease_namespace is not None:
        identity = f"{socket.gethostname()}_{runtime.uid()}"
        election = LeaderElection(
            client, COMPONENT, lease_namespace, identity=identity, runtime=runtime, metrics=metrics
        )
        fenced = FencedTransport(client.transport, election, runtime)
        client = Client(fenced, runtime, field_manager=client.field_manager)
    health = HealthServer(registry, port=metrics_port) if metrics_port is not None else None
    manager = Manager(client, runtime, election=election, health=health, metrics=metrics)
    return SchedulerProcess(client, config, manager=manager, metrics=CycleMetrics(registry))
