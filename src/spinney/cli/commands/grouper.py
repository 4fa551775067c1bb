"""``spinney grouper``: make gangs of the pods of any workload, or check the rules by which it does."""

import click

from spinney.cli.options import TEXT_FILE, done_by


@click.command()
@click.option("--config", type=TEXT_FILE, help="Configuration file: rules of your own, scheduler names, fallback.")
@click.option("--check", "check_only", is_flag=True, help="Only check the configuration, and print the rules in force.")
@click.option("--rights", is_flag=True, help="Only print the ClusterRole that the enabled rules and profiles need.")
@click.option("--kubeconfig", type=TEXT_FILE, help="Cluster; by default the one this runs in, or kubectl's.")
@click.option("-v", "verbosity", default=1, show_default=True, metavar="N", help="How much to log, as klog counts.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--leader-elect/--no-leader-elect", default=False, help="Write only while holding the lease.")
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
@done_by("spinney.cli.bodies.grouper:grouper")
def grouper() -> None:
    """Make gangs of the pods of any workload: Jobs, JobSets, LeaderWorkerSets, Ray, Kubeflow, Spark and your own kinds.

    Without a configuration pods of spinney-scheduler are grouped by the built-in rules. Switch on waitForGrouper in the
    scheduler's configuration, so that no pod starts before its gang is known.
    """
