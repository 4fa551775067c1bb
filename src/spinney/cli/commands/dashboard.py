"""``spinney dashboard``: a page that shows a cluster's gangs, where they are, why one waits and what would help."""

import click

from spinney.cli.options import FILE, cluster_options, metrics_options, with_body


@click.command()
@cluster_options
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to serve the page on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="Port; 0 takes any free one."
)
@click.option(
    "--authentication",
    type=click.Choice(["kubeconfig", "token"]),
    help="As whom the cluster is read: as the kubeconfig's user (the default on loopback; only there), or as each "
    "viewer, by their own bearer token (the default elsewhere).",
)
@click.option("--tls-cert-file", type=FILE, help="The certificate to serve with, in PEM; needed off loopback.")
@click.option("--tls-private-key-file", type=FILE, help="Its private key.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Serve off loopback without TLS, to a proxy that has TLS and passes on each viewer's bearer token.",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Namespace to show where not all may be listed; may be repeated.",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="URL",
    help="Where a session scheduler serves /cycles (its --metrics-port): http://HOST:PORT; may be repeated.",
)
@click.option(
    "--prometheus",
    metavar="URL",
    help="A Prometheus that scrapes the scheduler: use of queues over days, beyond the two hours kept in memory.",
)
@metrics_options
@click.option("-v", "--verbose", count=True, help="Say more; twice for everything.")
@with_body
def dashboard() -> None:
    """Serve a page that shows the cluster, live: map, gangs, queues, and what would happen if. It only reads.

    On loopback the cluster is read as the kubeconfig's user. Elsewhere TLS is needed and every viewer brings a bearer
    token; each sees what that token may read.
    """
