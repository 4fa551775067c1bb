"""Which cluster a command reads, and what to do about it when that does not work.

Every command that talks to a cluster has the same options, and every failure to talk to it is one sentence that says
what to try. A snapshot file stands in for a cluster wherever a command only reads.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from spinney.api.core import NODE
from spinney.cli.logs import log_to_stderr
from spinney.cli.options import KUBECONFIG
from spinney.cli.output import progress
from spinney.cli.running import until_interrupted
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
from spinney.kube.kubeconfig import kubeconfig_paths
from spinney.kube.transport import Transport
from spinney.runtime import Runtime

if TYPE_CHECKING:
    from spinney.sim.snapshot import ClusterSnapshot, Unseen

T = TypeVar("T")

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class ClusterChoice:
    """What the options say: which kubeconfig, which context, which namespace."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None

    def open(self, runtime: Runtime) -> tuple[Transport, str, str]:
        """Return a transport, the name of what it leads to, and the namespace to work in."""
        if self.kubeconfig is None and self.context is None and _inside_a_pod():
            transport = in_cluster(runtime=runtime)
            return transport, "the cluster this runs in", self.namespace or in_cluster_namespace()
        selection = select_context(self.kubeconfig, self.context)
        namespace = self.namespace or selection.namespace or DEFAULT_NAMESPACE
        return connect(selection, runtime=runtime), f"{selection.context} ({selection.cluster.server})", namespace


@dataclass(frozen=True)
class Connection:
    """An open connection and what it leads to."""

    client: Client
    source: str
    namespace: str


async def connected(
    choice: ClusterChoice, use: Callable[[Connection], Awaitable[T]], *, field_manager: str = "spinney-cli"
) -> T:
    """Return what ``use`` makes of a connection to the chosen cluster; what goes wrong with it is one sentence."""
    runtime = Runtime.system()
    try:
        transport, source, namespace = choice.open(runtime)
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
    answers: list[T] = []

    async def run() -> None:
        answers.append(await connected(choice, use))

    until_interrupted(run())
    return answers[0]


def snapshot_of(choice: ClusterChoice, from_file: Path | None) -> "tuple[ClusterSnapshot, str | None]":
    """Return a snapshot of the chosen cluster or file, and the namespace to look in; ``None`` is all of them."""
    # Here, because schedulers and operators connect as well, and ought not to wait for what only readers need.
    from spinney.sim.snapshot import KINDS, take  # noqa: PLC0415
    from spinney.sim.snapshot_files import UnreadableSnapshot, read_snapshot  # noqa: PLC0415

    log_to_stderr()
    if from_file is not None:
        try:
            with progress(f"reading {from_file}"):
                return read_snapshot(from_file), choice.namespace
        except UnreadableSnapshot as error:
            raise click.ClickException(str(error)) from error

    async def use(connection: Connection) -> "tuple[ClusterSnapshot, str | None]":
        with progress(f"reading {connection.source}", steps=len(KINDS)) as say:
            snapshot = await take(
                connection.client,
                namespace=connection.namespace,
                source=connection.source,
                on_kind=lambda resource: say(f"reading {resource} of {connection.source}"),
            )
        return snapshot, connection.namespace

    return with_cluster(choice, use)


def print_unseen(snapshot: "ClusterSnapshot") -> None:
    """Say on standard error what the answer does not take into account."""
    if snapshot.unseen:
        click.echo("\nnot seen, so the answer may be incomplete:", err=True)
        for line in _grouped(snapshot.unseen):
            click.echo(f"  {line}", err=True)
        if snapshot.refused(NODE):
            click.echo("  docs/operate.md has a read-only role that sees all of it", err=True)


def _grouped(unseen: "Iterable[Unseen]") -> list[str]:
    """Return a line per reason, with every kind it is the reason for."""
    kinds: dict[str, dict[str, None]] = {}
    for each in unseen:
        kinds.setdefault(each.reason, {})[each.what] = None
    return [
        f"{reason}: {', '.join(dict.fromkeys(what.partition('.')[0] for what in found))}"
        if reason.startswith("may not be listed")
        else f"{', '.join(found)}: {reason}"
        for reason, found in kinds.items()
    ]


def advice(error: KubeError) -> str:
    """Return what went wrong with what to do about it."""
    text = " ".join(str(error).split()).rstrip(".")
    match error:
        case ConfigurationError():
            return text + _own_cluster()
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
    """Return what else there is to connect to for somebody who has no kubeconfig at all."""
    if any(path.is_file() for path in kubeconfig_paths()):
        return ""
    if KUBECONFIG.expanduser().is_file():
        return f"; 'spinney up' has written one: export KUBECONFIG={KUBECONFIG}"
    return "; 'spinney up' starts a cluster to try things on"


def _inside_a_pod() -> bool:
    return not os.environ.get("KUBECONFIG") and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
