"""``spinney coscheduler``: run the pod-at-a-time scheduler with coscheduling against a cluster."""

import click

from spinney.cli.options import configuration_options, plugin_option, process_options, with_body


@click.command()
@configuration_options(config=", in the grammar of kube-scheduler's profiles", check="with its plugins, and print it")
@plugin_option
@click.option("--controller/--no-controller", default=True, show_default=True, help="Keep the status of PodGroups too.")
@process_options(leading="Schedule")
@with_body
def coscheduler() -> None:
    """Run the coscheduler against a cluster."""
