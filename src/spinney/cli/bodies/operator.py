"""``spinney operator``: run the operator against a cluster, or check its configuration.

Exit codes are Grove's: 2 the configuration cannot be used, 5 a scheduler backend cannot be initialised, 7 multi-node
NVLink is on and the cluster lacks it, 6 anything else that keeps the operator from running.
"""

import asyncio
import logging
import os
import sys
from pathlib import Path

import structlog

from spinney.api.documents import InvalidDocument
from spinney.backends import InitializationFailed, every_backend
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import opened
from spinney.cli.processes import ProcessLease, managed
from spinney.cli.running import until_told_to_go
from spinney.cli.terminal.logs import log_from
from spinney.cli.terminal.output import echo
from spinney.kube.client import Client
from spinney.kube.config import in_cluster_namespace, namespace_in_cluster
from spinney.kube.errors import KubeError
from spinney.kube.lease import LeaseTimes
from spinney.kube.manager import ComponentFailed
from spinney.kube.serving import HealthServer
from spinney.operator.admission.webhooks import FIELD_MANAGER, webhook_process
from spinney.operator.configuration import (
    InitContainer,
    LeaderElectionConfiguration,
    LoadedOperatorConfiguration,
    check,
    effective,
    load,
    without_effect,
)
from spinney.operator.operator import ComputeDomainsMissing, Operator, Settings
from spinney.runtime import Runtime, settle_garbage_collector

log = structlog.get_logger()

BAD_CONFIGURATION = 2
BACKEND_FAILED = 5
START_FAILED = 6
NO_COMPUTE_DOMAINS = 7

WEBHOOKS_LINGER_SECONDS = 5.0
"""How long webhooks are answered after a stop was asked for: API servers learn a little later whom not to ask."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "error": logging.ERROR}


def operator(*, config: Path | None, check_only: bool, kubeconfig: Path | None) -> None:
    catalogue = every_backend()
    try:
        loaded = check("", catalogue) if config is None else load(config, catalogue)
    except InvalidDocument as error:
        for problem in error.problems:
            echo(str(problem), err=True)
        sys.exit(BAD_CONFIGURATION)
    if check_only:
        default = loaded.profiles.default
        names = [f"{name} (default)" if name == default else name for name in loaded.profiles.names()]
        echo(f"# {config or 'no file: defaults'}: valid. Scheduler profiles: {', '.join(names)}.")
        echo(effective(loaded), nl=False)
        for key, why in without_effect(loaded.written):
            echo(f"warning: {key} has no effect: {why}", err=True)
        return
    elects = loaded.written.leader_election
    if elects.enabled and not elects.resource_namespace and namespace_in_cluster() is None:
        echo("leaderElection.resourceNamespace: outside a cluster it has to say where the Lease is", err=True)
        sys.exit(BAD_CONFIGURATION)
    log_from(_LEVELS[loaded.written.log_level], json=loaded.written.log_format == "json")
    for key, why in without_effect(loaded.written):
        log.warning("key of the configuration has no effect", key=key, why=why)
    settle_garbage_collector()
    try:
        until_told_to_go(_run(loaded, kubeconfig))
    except InitializationFailed as error:
        echo(f"scheduler backend: {error}", err=True)
        sys.exit(BACKEND_FAILED)
    except ComputeDomainsMissing as error:
        echo(f"operator: {error}", err=True)
        sys.exit(NO_COMPUTE_DOMAINS)
    except (ComponentFailed, KubeError, OSError) as error:
        echo(f"operator: {error}", err=True)
        sys.exit(START_FAILED)


async def _run(loaded: LoadedOperatorConfiguration, kubeconfig: Path | None) -> None:
    runtime, written = Runtime.system(), loaded.written
    transport, _, _ = opened(ClusterChoice(kubeconfig), runtime)
    client = Client(transport, runtime, field_manager=FIELD_MANAGER)
    probes, served = written.server.health_probes, written.server.metrics
    namespace = namespace_in_cluster()
    manager = managed(
        client,
        lease=_lease(written.leader_election) if written.leader_election.enabled else None,
        endpoint=(probes.bind_address, probes.port) if probes.enable else None,
        setting="server.healthProbes of the configuration",
        linger_seconds=WEBHOOKS_LINGER_SECONDS if namespace else 0.0,
    )
    account = os.environ.get("GROVE_OPERATOR_SERVICE_ACCOUNT_NAME")
    user = f"system:serviceaccount:{namespace}:{account}" if namespace and account else None
    running = Operator(manager.client, Settings.of(loaded, own=_own_image(), user=user), manager=manager)
    if namespace is None:
        log.warning("webhooks are not served: this process does not run in a cluster")
    else:
        webhooks = webhook_process(
            running.admission,
            manager.unfenced,  # every replica serves them, and registers its certificate
            written,
            namespace=namespace,
            leaving=lambda: manager.stopping,
        )
        manager.add_runnable("webhooks", webhooks.run, needs_lease=False)
        manager.check_ready("webhooks", webhooks.unready)
    if served.enable and served.port != probes.port:
        endpoint = HealthServer(
            manager.metrics.registry,
            host=served.bind_address,
            port=served.port,
            setting="server.metrics of the configuration",
        )
        manager.add_runnable("metrics", lambda: _serve(endpoint), needs_lease=False)
    manager.stop_on_signals()
    try:
        await running.run()
    finally:
        await manager.abandon()
        await transport.close()
        runtime.executor.close()


def _lease(settings: LeaderElectionConfiguration) -> ProcessLease:
    return ProcessLease(
        settings.resource_name,
        settings.resource_namespace or in_cluster_namespace(),
        LeaseTimes(
            settings.lease_duration.total_seconds(),
            settings.renew_deadline.total_seconds(),
            settings.retry_period.total_seconds(),
        ),
    )


def _own_image() -> InitContainer:
    """Return how this process's image is pulled, as the installation says in the environment."""
    return InitContainer(
        image=os.environ.get("GROVE_INIT_CONTAINER_IMAGE", "spinney"),
        image_pull_policy=os.environ.get("SPINNEY_IMAGE_PULL_POLICY", ""),
        image_pull_secrets=tuple(filter(None, os.environ.get("SPINNEY_IMAGE_PULL_SECRETS", "").split(","))),
    )


async def _serve(server: HealthServer) -> None:
    await server.start()
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()
