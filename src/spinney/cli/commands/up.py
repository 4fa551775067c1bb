"""``spinney up``: an embedded cluster in the foreground, for kubectl and everything else that speaks Kubernetes."""

from pathlib import Path

import click

from spinney.cli.clusters.choosing import KUBECONFIG
from spinney.cli.options import TEXT_FILE, plugin_option, with_body


@click.command()
@click.option("--nodes", default="8x8", show_default=True, help="NODESxGPUS: how many nodes, and GPUs on each.")
@click.option(
    "-f",
    "--file",
    "cluster_file",
    type=TEXT_FILE,
    help="A YAML file that describes the nodes, instead of --nodes.",
)
@click.option(
    "--config",
    "configs",
    type=TEXT_FILE,
    multiple=True,
    help="How a process is configured: the operator's file, the grouper's, a scheduler's; may be repeated.",
)
@plugin_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; by default any free one.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    default=KUBECONFIG,
    show_default=True,
    help="Where to write the kubeconfig (mode 0600).",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster's objects in this directory and go on from what is there; by default nothing is kept.",
)
@click.option(
    "--authorization",
    type=click.Choice(["AlwaysAllow", "RBAC"]),
    default="AlwaysAllow",
    show_default=True,
    help="Whether every client may do everything, or roles and bindings decide.",
)
@click.option(
    "--workloads/--no-workloads",
    default=True,
    help="Make pods of Deployments, StatefulSets and Jobs; leave that off for a controller manager of your own.",
)
@click.option(
    "--dashboard/--no-dashboard", default=True, help="Serve a page on 127.0.0.1 that shows the cluster, live."
)
@click.option("--dashboard-port", type=click.IntRange(0, 65535), default=0, help="Its port; by default any free one.")
@click.option("-v", "--verbose", count=True, help="Say more; twice for everything.")
@with_body
def up() -> None:
    """Run an embedded cluster until Ctrl-C.

    API server, simulated nodes, operator and scheduler run in this process. Point kubectl at the kubeconfig it writes.
    """
