"""``spinney coscheduler``: run the pod-at-a-time scheduler with coscheduling against a cluster."""

import click

from spinney.cli.options import TEXT_FILE, done_by, plugin_option


@click.command()
@click.option("--config", type=TEXT_FILE, help="Configuration file, in the grammar of kube-scheduler's profiles.")
@plugin_option
@click.option("--check", "check_only", is_flag=True, help="Only check the configuration and the plugins, and print it.")
@click.option("--kubeconfig", type=TEXT_FILE, help="Cluster; by default the one this runs in, or kubectl's.")
@click.option("-v", "verbosity", default=1, show_default=True, metavar="N", help="How much to log, as klog counts.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--leader-elect/--no-leader-elect", default=False, help="Schedule only while holding the lease.")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the lease is.")
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
@click.option("--controller/--no-controller", default=True, show_default=True, help="Keep the status of PodGroups too.")
@done_by("spinney.cli.bodies.coscheduler:coscheduler")
def coscheduler() -> None:
    """Run the coscheduler against a cluster."""
