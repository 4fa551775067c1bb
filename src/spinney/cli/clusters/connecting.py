"""Connecting to the cluster that was chosen, and what to do about it when that does not work.

Every failure to talk to a cluster is one sentence that says what to try.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import click

from spinney.cli.clusters.choosing import DEFAULT_NAMESPACE, KUBECONFIG, ClusterChoice
from spinney.cli.running import until_interrupted
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import echo
from spinney.kube.client import Client
from spinney.kube.config import connect, in_cluster, in_cluster_namespace, select_context
from spinney.kube.errors import (
    ConfigurationError,
    ConnectionFailed,
    Forbidden,
    KubeError,
    NotFound,
    Unauthorized,
    UndecodableResponse,
)
from spinney.kube.kubeconfig import in_home, kubeconfig_paths
from spinney.kube.transport import Transport
from spinney.runtime import Runtime

T = TypeVar("T")
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
"""What OpenSSL calls a certificate that is not of a known authority."""


@dataclass(frozen=True)
class Connection:
    """An open connection and what it leads to."""

    client: Client
    source: str
    namespace: str


def opened(choice: ClusterChoice, runtime: Runtime) -> tuple[Transport, str, str]:
    """Return a transport, the name of what it leads to, and the namespace to work in."""
    if choice.kubeconfig is None and choice.context is None and _is_inside_a_pod():
        return in_cluster(runtime=runtime), "the cluster this runs in", choice.namespace or in_cluster_namespace()
    selection = select_context(choice.kubeconfig, choice.context)
    namespace = choice.namespace or selection.namespace or DEFAULT_NAMESPACE
    return connect(selection, runtime=runtime), f"{selection.context} ({selection.cluster.server})", namespace


async def connected(
    choice: ClusterChoice, use: Callable[[Connection], Awaitable[T]], *, field_manager: str = "spinney-cli"
) -> T:
    """Return what ``use`` makes of a connection to the chosen cluster; what goes wrong with it is one sentence."""
    runtime = Runtime.system()
    try:
        transport, source, namespace = opened(choice, runtime)
        try:
            client = Client(transport, runtime, field_manager=field_manager, on_warning=_warn)
            return await use(Connection(client, source, namespace))
        finally:
            await transport.close()
    except KubeError as error:
        raise click.ClickException(advice(error)) from error
    finally:
        runtime.executor.close()


def with_cluster(choice: ClusterChoice, use: Callable[[Connection], Awaitable[T]]) -> T:
    """Run an event loop for :func:`connected`, until it is done or interrupted."""
    log_to_stderr()
    return until_interrupted(connected(choice, use))


def advice(error: KubeError) -> str:
    """Return what went wrong with what to do about it."""
    text = " ".join(str(error).split()).rstrip(".")
    match error:
        case ConfigurationError():
            return text + _own_cluster()
        case ConnectionFailed() if _UNTRUSTED in text:
            return (
                f"{text}; the kubeconfig does not name the authority of that server's certificate (clusters[].cluster."
                "certificate-authority-data): fetch it anew, or choose another with --kubeconfig or --context"
            )
        case ConnectionFailed():
            return f"{text}; is the cluster up? --kubeconfig and --context choose another"
        case Unauthorized():
            return f"the cluster does not know who is asking ({text}); log in again, or choose another --context"
        case Forbidden():
            return f"{text}; ask for that right, or choose another --context"
        case NotFound():
            return f"{text}; is the name right, and is its CRD installed? 'spinney crds' prints ours"
        case UndecodableResponse():
            return f"{text}; the cluster may have an older version of that kind: compare its CRD with 'spinney crds'"
        case _:
            return text


def _own_cluster() -> str:
    """Return what else there is to connect to for a user who has no kubeconfig at all."""
    if any(path.is_file() for path in kubeconfig_paths()):
        return ""
    if in_home(KUBECONFIG).is_file():
        return f"; 'spinney up' has written one: export KUBECONFIG={KUBECONFIG}"
    return "; 'spinney up' starts a cluster to try things on"


def _is_inside_a_pod() -> bool:
    return not os.environ.get("KUBECONFIG") and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _warn(text: str) -> None:
    echo(f"warning: {text}", err=True)
