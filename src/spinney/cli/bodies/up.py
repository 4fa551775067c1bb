"""``spinney up``: an embedded cluster in the foreground, for kubectl and everything else that speaks Kubernetes."""

import asyncio
import shlex
from pathlib import Path

import click

from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cli.logs import log_to_stderr
from spinney.cli.running import until_interrupted
from spinney.cli.settings import embedded_settings
from spinney.nodes import ClusterSpec, InvalidClusterSpec
from spinney.runtime import Runtime
from spinney.server import ServerOptions
from spinney.server.http import HttpServer, Listening
from spinney.server.store import JournalUnusable
from spinney.sim.embedded import EmbeddedCluster, StackOptions
from spinney.sim.shapes import TOPOLOGY, InvalidShape, gpu_cluster, parse_shape, topology_binding


def up(
    *,
    nodes: str,
    cluster_file: Path | None,
    port: int,
    kubeconfig: Path,
    data_dir: Path | None,
    configs: tuple[Path, ...],
    verbose: int,
) -> None:
    """Run an embedded cluster until Ctrl-C."""
    log_to_stderr(verbose)
    spec = _described(nodes, cluster_file)
    directory = data_dir.expanduser() if data_dir else None
    options = embedded_settings(spec, configs)
    until_interrupted(run(options, port=port, kubeconfig=kubeconfig.expanduser(), data_dir=directory))


async def run(options: StackOptions, *, port: int, kubeconfig: Path, data_dir: Path | None = None) -> None:
    """Run the cluster until cancelled; say how to reach it once it is ready."""
    runtime, ready = Runtime.system(), False
    try:
        cluster = EmbeddedCluster(runtime, options, server=ServerOptions(data_directory=data_dir))
        try:
            async with HttpServer(cluster.server, Listening(port=port)) as http, cluster.running(), cluster.reviewing():
                await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
                kubeconfig.parent.mkdir(parents=True, exist_ok=True)
                http.write_kubeconfig(kubeconfig)
                nodes = len(options.nodes.expanded())
                click.echo(_greeting(http.url, kubeconfig, nodes=nodes, data_dir=data_dir))
                ready = True
                await asyncio.get_running_loop().create_future()
        finally:
            cluster.server.close()
    except (JournalUnusable, OSError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    finally:
        runtime.executor.close()
        if ready:
            click.echo("\nstopped")


def _described(nodes: str, cluster_file: Path | None) -> ClusterSpec:
    try:
        spec = ClusterSpec.load(cluster_file) if cluster_file else gpu_cluster(*parse_shape(nodes))
    except InvalidShape as error:
        raise click.BadParameter(str(error), param_hint="--nodes") from error
    except InvalidClusterSpec as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    if not spec.expanded():
        raise click.ClickException(f"{cluster_file}: describes no nodes; it needs a list 'nodes' with name and count")
    return spec


def _greeting(url: str, kubeconfig: Path, *, nodes: int, data_dir: Path | None) -> str:
    kept = f"everything is kept in {data_dir}" if data_dir else "nothing is kept"
    return f"""
An embedded Kubernetes cluster with {nodes} simulated nodes is up at {url}
(topology {TOPOLOGY}: block, rack, host). Ctrl-C stops it; {kept}.

  export KUBECONFIG={shlex.quote(str(kubeconfig))}

Three things to try:
  kubectl get nodes -L topology.kubernetes.io/block,topology.kubernetes.io/rack
  kubectl apply -f examples/first-workload.yaml
  kubectl get podcliquesets,podgangs,pods -o wide
"""
