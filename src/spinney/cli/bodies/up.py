"""``spinney up``: an embedded cluster in the foreground, for kubectl and everything else that speaks Kubernetes."""

import asyncio
import gc
import shlex
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import click

from spinney.api.documents import InvalidDocument
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends.registry import InitializationFailed
from spinney.cli.clusters.owning import claimed
from spinney.cli.running import until_interrupted
from spinney.cli.settings.node_files import read_nodes
from spinney.cli.settings.session import PluginText, policies_of
from spinney.cli.settings.stack import embedded_settings, ungrouped_names
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import echo, progress
from spinney.dashboard.local import dashboard_of
from spinney.explain.amounts import counted
from spinney.kube.crds import CrdRefused
from spinney.kube.errors import InternalError, KubeError
from spinney.kube.kubeconfig import in_home
from spinney.kube.manager import ComponentFailed
from spinney.nodes import ClusterSpec
from spinney.operator.operator import ComputeDomainsMissing
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.server import HttpServer, Listening, ServerOptions
from spinney.server.authentication.identity import IdentityUnusable
from spinney.server.options import AuthorizationMode
from spinney.server.store import ChangeNotKept, JournalUnusable
from spinney.sim.embedded.shapes import TOPOLOGY, InvalidShape, gpu_cluster, parse_shape, topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.workloads import NOT_RUN

_IN_MEMORY = ServerOptions()
CANNOT_START = (
    JournalUnusable,
    IdentityUnusable,
    ChangeNotKept,
    OSError,
    InitializationFailed,
    ComputeDomainsMissing,
    ComponentFailed,
    CrdRefused,
    KubeError,
    ValueError,  # what a configuration says that no process can do
    LookupError,  # a plugin that does not exist
)
"""What ends the parts of a cluster with a sentence for the person who started it."""


def up(
    *,
    nodes: str,
    cluster_file: Path | None,
    port: int,
    kubeconfig: Path,
    data_dir: Path | None,
    configs: tuple[Path, ...],
    plugins: tuple[PluginText, ...],
    authorization: AuthorizationMode,
    workloads: bool,
    dashboard: bool,
    dashboard_port: int,
    verbose: int,
) -> None:
    log_to_stderr(verbose)
    spec = _described(nodes, cluster_file)
    directory = in_home(data_dir) if data_dir else None
    options = embedded_settings(spec, configs, policies_of(plugins))
    for name in ungrouped_names(options):
        echo(
            f"the grouper does not serve the scheduler name {name}: pods of Jobs and other workloads that ask for it "
            "wait for a group for ever; enable a backend of that name in an OperatorConfiguration (--config)",
            err=True,
        )
    options = replace(options, workloads=workloads, compute_domains=options.operator.mnnvl_enabled)
    server = ServerOptions(
        data_directory=directory,
        authorization=authorization,
        track_all_managers=True,
        inert=NOT_RUN if workloads else {},
    )
    page = dashboard_port if dashboard else None
    with claimed(in_home(kubeconfig)) as claim:
        if claim.owner:
            echo(
                f"{kubeconfig} belongs to another 'spinney up' ({claim.owner}), which goes on; "
                f"this one writes {claim.path}",
                err=True,
            )
        until_interrupted(run(options, server=server, port=port, kubeconfig=claim.path, dashboard=page))


async def run(
    options: StackOptions,
    *,
    port: int,
    kubeconfig: Path,
    server: ServerOptions = _IN_MEMORY,
    dashboard: int | None = None,
) -> None:
    """Run the cluster until cancelled; say how to reach it once it is ready.

    ``dashboard`` is the port of its page; without one there is none.
    """
    settle_garbage_collector()
    runtime, ready = Runtime.system(), False
    try:
        cluster = EmbeddedCluster(runtime, options, server=server)
        try:
            async with AsyncExitStack() as parts:
                with progress("starting the cluster"):
                    http = await parts.enter_async_context(
                        HttpServer(cluster.server, Listening(port=port, setting="--port"))
                    )
                    await parts.enter_async_context(cluster.running())
                    await parts.enter_async_context(cluster.reviewing())
                    await _apply_topology(cluster)
                    page = ""
                    if dashboard is not None:
                        page = await parts.enter_async_context(
                            dashboard_of(cluster, port=dashboard, setting="--dashboard-port")
                        )
                http.write_kubeconfig(kubeconfig)
                nodes = counted(len(cluster.stack.fleet.names), "simulated node")
                echo(_greeting(http.url, kubeconfig, page, nodes=nodes, data_dir=server.data_directory))
                ready = True
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    echo(f"\nstopping the operator, the schedulers and {nodes} ...", err=True)
                    gc.freeze()  # a process that ends need not look through a cluster's objects for cycles
        finally:
            cluster.server.close()
    except ExceptionGroup as failed:
        known, unknown = failed.split(CANNOT_START)
        if known is None or unknown is not None:
            raise
        raise click.ClickException(_sentences(known)) from failed
    except CANNOT_START as error:
        raise click.ClickException(_sentence(error)) from error
    finally:
        runtime.executor.close()
        if ready:
            echo("\nstopped")


def _sentences(failed: ExceptionGroup[Exception]) -> str:
    """Return what each part said that could not start or go on, in a line of its own."""
    said: dict[str, None] = {}
    for error in failed.exceptions:
        said[_sentences(error) if isinstance(error, ExceptionGroup) else _sentence(error)] = None
    return "\n".join(said)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())


async def _apply_topology(cluster: EmbeddedCluster) -> None:
    """Apply the binding of the topology; a cluster that has no room for a change can still be looked at."""
    try:
        await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
    except InternalError as error:
        echo(f"Warning: the cluster can be read, and not changed: {error}", err=True)


def _described(nodes: str, cluster_file: Path | None) -> ClusterSpec:
    try:
        spec = read_nodes(cluster_file) if cluster_file else gpu_cluster(*parse_shape(nodes))
    except InvalidShape as error:
        raise click.BadParameter(str(error), param_hint="--nodes") from error
    except InvalidDocument as error:
        raise click.ClickException(str(error)) from error
    if not spec.expanded():
        raise click.ClickException(f"{cluster_file}: describes no nodes; it needs a list 'nodes' with name and count")
    return spec


def _greeting(url: str, kubeconfig: Path, page: str, *, nodes: str, data_dir: Path | None) -> str:
    kept = f"everything is kept in {data_dir}" if data_dir else "nothing is kept"
    shown = f"Its dashboard is at {page}\n" if page else ""
    return f"""
An embedded Kubernetes cluster with {nodes} is up at {url}
(topology {TOPOLOGY}: block, rack, host). Ctrl-C stops it; {kept}.
{shown}
  export KUBECONFIG={shlex.quote(str(kubeconfig))}

In another terminal, with that:
  spinney apply -f examples/first-workload.yaml     a first gang; 'kubectl apply' does the same
  spinney top                                       the racks, and who is on them
  kubectl get podcliquesets,podgangs,pods -o wide   everything else works as on any cluster
"""
