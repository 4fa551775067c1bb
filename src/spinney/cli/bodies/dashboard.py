"""``spinney dashboard``: a page that shows a cluster's gangs, where they are, why one waits and what would help."""

import asyncio
import ssl
from contextlib import AsyncExitStack, closing
from importlib.metadata import version
from pathlib import Path

import click
from prometheus_client import CollectorRegistry

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import advice, opened
from spinney.cli.options import METRICS_SETTING
from spinney.cli.running import in_one_line, until_told_to_go
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import echo
from spinney.dashboard.access import Access, Connect, Mode, RefusedExposure, is_loopback
from spinney.dashboard.advising import Adviser
from spinney.dashboard.history import Prometheus
from spinney.dashboard.schedulers import RemoteScheduler
from spinney.dashboard.serving import Dashboard, DashboardMetrics
from spinney.dashboard.viewers import Viewers
from spinney.kube.client import Client
from spinney.kube.credentials import Credential, FixedCredential, bearer
from spinney.kube.errors import KubeError
from spinney.kube.guarding import ReadOnlyTransport
from spinney.kube.http import HttpTransport
from spinney.kube.serving import HealthServer
from spinney.runtime import Runtime, ThreadExecutor


def dashboard(
    *,
    choice: ClusterChoice,
    address: str,
    port: int,
    authentication: Mode | None,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    behind_proxy: bool,
    namespaces: tuple[str, ...],
    schedulers: tuple[str, ...],
    prometheus: str | None,
    endpoint: tuple[str, int] | None,
    verbose: int,
) -> None:
    """Serve the page until Ctrl-C."""
    log_to_stderr(verbose)
    mode: Mode = authentication or ("kubeconfig" if is_loopback(address) else "token")
    tls = _tls(tls_cert_file, tls_private_key_file)
    with in_one_line(RefusedExposure):
        access = Access(host=address, mode=mode, tls=tls is not None, behind_proxy=behind_proxy)
    told = [RemoteScheduler(_web_address(url, "--scheduler")) for url in schedulers]
    asked = Prometheus(_web_address(prometheus, "--prometheus")) if prometheus is not None else None
    runtime, registry = Runtime.system(), CollectorRegistry()
    worker = ThreadExecutor(name="spinney-dashboard")

    async def serve() -> None:
        connect, source = _connections(choice, runtime)
        viewers = Viewers(connect, runtime, source=source, namespaces=namespaces, lasting=mode == "kubeconfig")
        served = Dashboard(
            viewers,
            access,
            Adviser(worker),
            version=version("spinney"),
            schedulers=told,
            prometheus=asked,
            metrics=DashboardMetrics(registry),
        )
        async with AsyncExitStack() as parts:
            url = await parts.enter_async_context(served.serving(port, tls=tls, setting="--port or --address"))
            if endpoint is not None:
                health = HealthServer(registry, host=endpoint[0], port=endpoint[1], setting=METRICS_SETTING)
                await health.start()
                parts.push_async_callback(health.stop)
            echo(f"The dashboard of {source} is at {url}\nCtrl-C stops it; it only reads.")
            await asyncio.get_running_loop().create_future()

    try:
        with closing(worker), closing(runtime.executor):
            until_told_to_go(serve())
    except KubeError as error:
        raise click.ClickException(advice(error)) from error
    except OSError as error:
        raise click.ClickException(str(error)) from error


def _connections(choice: ClusterChoice, runtime: Runtime) -> tuple[Connect, str]:
    """Return what connects to the chosen cluster as a viewer, and the cluster's name."""
    transport, source, _ = opened(choice, runtime)
    assert isinstance(transport, HttpTransport)
    reached = transport.endpoint  # no connection was made yet

    def connect(token: str | None) -> Client:
        if token is None:
            mine, _, _ = opened(choice, runtime)
            return Client(ReadOnlyTransport(mine), runtime, field_manager="spinney-dashboard")
        # The viewer's token alone: neither the certificate nor the impersonation of the kubeconfig goes with it.
        theirs = HttpTransport(reached, FixedCredential(Credential((bearer(token),))))
        return Client(ReadOnlyTransport(theirs), runtime, field_manager="spinney-dashboard")

    return connect, source


def _web_address(url: str, option: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"found {url!r}, expected http://HOST:PORT", param_hint=option)
    return url


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-cert-file" if certificate is None else "--tls-private-key-file"
        raise click.UsageError(f"a certificate needs its key, and the key its certificate; {missing} is missing")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise click.ClickException(f"{certificate} and {key} are not a certificate and its key: {error}") from error
    return context
