"""``spinney operator``: run the operator against a cluster, or check its configuration.

Exit codes are Grove's: 2 the configuration cannot be used, 5 a scheduler backend cannot be initialised, 7 multi-node
NVLink is on and the cluster lacks it, 6 anything else that keeps the operator from running.
"""

import click

from spinney.cli.options import TEXT_FILE, configuration_options, with_body


@click.command()
@configuration_options(config="", check="and print it with every default")
@click.option("--kubeconfig", type=TEXT_FILE, help="Cluster to run against.")
@with_body
def operator() -> None:
    """Run the operator against a cluster."""
