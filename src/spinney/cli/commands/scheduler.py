"""``spinney scheduler``: run the session scheduler against a cluster, or beside another scheduler without writing."""

import click

from spinney.cli.options import TEXT_FILE, done_by, plugin_option


@click.command()
@click.option("--config", type=TEXT_FILE, help="Configuration file: Spinney's own form, or a KAI SchedulingShard.")
@plugin_option
@click.option(
    "--check", "check_only", is_flag=True, help="Only check the configuration, and print it with every default."
)
@click.option("--kubeconfig", type=TEXT_FILE, help="Cluster; by default the one this runs in, or kubectl's.")
@click.option("-v", "verbosity", default=1, show_default=True, metavar="N", help="How much to log, as klog counts.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--leader-elect/--no-leader-elect", default=False, help="Schedule only while holding the lease.")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the lease is.")
@click.option("--dry-run", is_flag=True, help="Only watch: decide, write nothing, and compare with who does write.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="Serve pods of this name, instead of those the configuration lists; may be repeated.",
)
@click.option(
    "--metrics-address",
    default="",
    metavar="ADDRESS",
    help="Address to serve /metrics, /livez and /readyz on; by default all.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics, /livez and /readyz on this port; 0 takes a free one.",
)
@done_by("spinney.cli.bodies.scheduler:scheduler")
def scheduler() -> None:
    """Run the session scheduler against a cluster.

    With --dry-run it runs beside another scheduler, whose pods --scheduler-name names (default-scheduler, say), and
    never writes. It logs what it would have done, and when it is stopped it prints a comparison.
    """
